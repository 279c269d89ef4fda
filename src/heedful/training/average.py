"""Polynomial average of the weights, which needs no fixed number of steps."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import final

import torch
from torch import Tensor, nn


@final
class PolynomialAverage:
    """average += (g + 1) / (step + g) * (weights - average): weight of step t grows with t^g.

    At any step it covers about the last 1/g of all steps so far; Shamir and Zhang 2013, arXiv:1212.1824,
    polynomial-decay averaging. The Transformer paper averages its last checkpoints for the same effect.
    """

    def __init__(self, model: nn.Module, exponent: float) -> None:
        """Start from the current weights.

        Args:
            model: model whose parameters are averaged.
            exponent: g; 0 switches averaging off.
        """
        self._names = [name for name, _ in model.named_parameters()]
        self._weights = list(model.parameters())
        self._exponent = exponent
        self._average = [parameter.detach().clone() for parameter in self._weights] if exponent else []

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Update the average with the weights after a step.

        Args:
            step: from 1.
        """
        if self._average:
            share = min(1.0, (self._exponent + 1.0) / (step + self._exponent))
            for average, weights in zip(self._average, self._weights, strict=True):
                average.lerp_(weights, share)

    @contextmanager
    def swapped_in(self) -> Generator[None]:
        """Use the average as the model's weights within a context.

        Yields:
            Nothing; the weights are restored afterwards.
        """
        originals = [parameter.data for parameter in self._weights]
        for parameter, average in zip(self._weights, self._average, strict=bool(self._average)):
            parameter.data = average
        try:
            yield
        finally:
            for parameter, data in zip(self._weights, originals, strict=True):
                parameter.data = data

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to save.

        Returns:
            Tensors by parameter name; empty if averaging is off.
        """
        return dict(zip(self._names, self._average, strict=True)) if self._average else {}

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore a saved average.

        Args:
            tensors: result of `tensors`.
        """
        for name, average in zip(self._names, self._average, strict=bool(self._average)):
            average.copy_(tensors[name])
