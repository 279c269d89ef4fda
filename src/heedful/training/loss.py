"""Training steps: model and loss as one module, whatever the task."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn


class LossSum(NamedTuple):
    """Sums over a batch, to be divided by counts over as many batches or ranks as make a step."""

    total: Tensor
    """Loss that is minimised: negative log likelihood, smoothed, and extra losses, summed over the units."""
    log_likelihood: Tensor
    """Log likelihood of the gold units, without smoothing, in nats; detached."""
    num_correct: Tensor
    """Number of gold units that are the most probable ones; detached."""
    num_units: Tensor
    """Number of units: real target tokens, EOS included, or labels."""


class TrainingStep(nn.Module, ABC):
    """Model and loss as one module: all that the training loop, and any wrapper around it, has to know."""

    model: nn.Module

    @abstractmethod
    def forward(self, *tensors: Tensor) -> LossSum:
        """Compute the summed loss of a batch.

        Args:
            tensors: those that `heedful.data.batch.Batch.arrays` of the task's batches lists, on the model's device.

        Returns:
            Sums over the batch.
        """
