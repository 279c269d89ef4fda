"""A running average of the weights that needs no horizon."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import final

import torch
from torch import Tensor, nn


@final
class PolynomialAverage:
    """average += (g + 1) / (step + g) * (weights - average): weight of step t grows with t^g.

    It covers about the last 1/g of all steps so far, whenever one stops; Shamir and Zhang 2013, arXiv:1212.1824,
    polynomial-decay averaging. The Transformer paper averages its last checkpoints for the same effect.
    """

    def __init__(self, model: nn.Module, exponent: float) -> None:
        """Begin with the weights as they are.

        Args:
            model: whose parameters.
            exponent: g; 0 switches averaging off.
        """
        self._names = [name for name, _ in model.named_parameters()]
        self._weights = list(model.parameters())
        self._exponent = exponent
        self._average = [parameter.detach().clone() for parameter in self._weights] if exponent else []

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after a step.

        Args:
            step: from 1.
        """
        if self._average:
            share = min(1.0, (self._exponent + 1.0) / (step + self._exponent))
            for average, weights in zip(self._average, self._weights, strict=True):
                average.lerp_(weights, share)

    @contextmanager
    def swapped_in(self) -> Generator[None]:
        """Let the model have the average as its weights for a while.

        Yields:
            Nothing; afterwards the weights are back.
        """
        held = [parameter.data for parameter in self._weights]
        for parameter, average in zip(self._weights, self._average, strict=bool(self._average)):
            parameter.data = average
        try:
            yield
        finally:
            for parameter, data in zip(self._weights, held, strict=True):
                parameter.data = data

    def tensors(self) -> dict[str, Tensor]:
        """Give the average for saving.

        Returns:
            By parameter name; empty when switched off.
        """
        return dict(zip(self._names, self._average, strict=True)) if self._average else {}

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from a saved average.

        Args:
            tensors: what `tensors` gave.
        """
        for name, average in zip(self._names, self._average, strict=bool(self._average)):
            average.copy_(tensors[name])
