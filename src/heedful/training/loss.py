"""Loss: maximum likelihood with teacher forcing, label-smoothed, over real tokens only."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray
from torch import Tensor, nn


class LossSum(NamedTuple):
    """Sums over a batch, to be divided by counts over the batches and ranks of a step.

    Example:
        >>> import torch
        >>> loss = LossSum(torch.tensor(6.0), torch.tensor(-5.0), torch.tensor(1), torch.tensor(4))
        >>> (loss.total / loss.num_units).item()
        1.5
    """

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
    has_fixed_shape: bool = False
    """Whether no shape within a step may depend on how much of a batch is padding, as in a recording."""

    @property
    def recording_problem(self) -> str:
        """Reason why steps cannot be recorded and replayed; empty = they can."""
        return "the task has no padded batches"

    def pad(self, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Pad a batch to one of few shapes, for steps that can be recorded; the padding counts for nothing.

        Args:
            arrays: those of `heedful.data.batch.Batch.arrays`.
        """
        return [*arrays]

    @abstractmethod
    def forward(self, *tensors: Tensor) -> LossSum:
        """Compute the summed loss of a batch.

        Args:
            tensors: the arrays of `heedful.data.batch.Batch.arrays`, on the model's device.
        """
