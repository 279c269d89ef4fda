"""Averages of the weights: over the steps, which needs no fixed number of them, and with the weights of the start."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, final

import torch
from torch import Tensor, nn

_torch: Final[Any] = torch
"""PyTorch with its operations on lists of tensors, which have no public names."""


@final
class PolynomialAverage:
    """average += (g + 1) / (step + g) * (weights - average): weight of step t grows with t^g.

    At any step it covers about the last 1/g of all steps so far; Shamir and Zhang 2013, arXiv:1212.1824,
    polynomial-decay averaging. The Transformer paper averages its last checkpoints for the same effect.

    The evaluated weights may hold a share of the weights of the start, so that a model that goes on from a trained one
    forgets less; Wortsman et al. 2022, arXiv:2109.01903, section 3.
    """

    def __init__(self, model: nn.Module, exponent: float, start_share: float = 0.0) -> None:
        """Start from the current weights.

        Args:
            model: model whose parameters are averaged.
            exponent: g; 0 switches averaging off.
            start_share: share of the weights of the start in the evaluated ones, in [0, 1).
        """
        self._names = [name for name, _ in model.named_parameters()]
        self._weights = list(model.parameters())
        self._exponent = exponent
        self._average = [parameter.detach().clone() for parameter in self._weights] if exponent else []
        self._start_share = start_share
        self._start = [parameter.detach().clone() for parameter in self._weights] if start_share else []

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Update the average with the weights after a step.

        Args:
            step: from 1.
        """
        if self._average:
            share = min(1.0, (self._exponent + 1.0) / (step + self._exponent))
            _torch._foreach_lerp_(self._average, self._weights, share)

    @torch.no_grad()
    def evaluated(self) -> dict[str, Tensor]:
        """Return the weights to validate and to keep.

        Returns:
            Tensors by parameter name; the next update may change them.
        """
        weights = self._average or [parameter.data for parameter in self._weights]
        if self._start:
            pairs = zip(weights, self._start, strict=True)
            weights = [weight.lerp(start, self._start_share) for weight, start in pairs]
        return dict(zip(self._names, weights, strict=True))

    @contextmanager
    def swapped_in(self) -> Generator[None]:
        """Use the evaluated weights as the model's within a context.

        Yields:
            Nothing; the weights are restored afterwards.
        """
        originals = [parameter.data for parameter in self._weights]
        for parameter, weight in zip(self._weights, self.evaluated().values(), strict=True):
            parameter.data = weight
        try:
            yield
        finally:
            for parameter, data in zip(self._weights, originals, strict=True):
                parameter.data = data

    def tensors(self) -> dict[str, Tensor]:
        """Return the average over the steps, for a checkpoint.

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
