"""Loss: maximum likelihood with teacher forcing, label-smoothed, over real tokens only."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn


class LossSum(NamedTuple):
    """Sums over a batch, to be divided by counts over the batches and ranks of a step."""

    total: Tensor
    """Objective: smoothed negative log likelihood and extra losses, summed over real tokens."""
    log_likelihood: Tensor
    """Log likelihood of the gold tokens, without smoothing, in nats; detached."""
    num_correct: Tensor
    """Number of gold tokens that are the most probable ones; detached."""
    num_units: Tensor
    """Number of units: real target tokens, EOS included, or labels."""


class TrainingStep(nn.Module, ABC):
    """Model and loss as one module, the only interface that the training loop and wrappers need."""

    model: nn.Module

    @abstractmethod
    def forward(self, *tensors: Tensor) -> LossSum:
        """Compute the summed loss of a batch.

        Args:
            tensors: the arrays of `heedful.data.batch.Batch.arrays`, on the model's device.
        """
