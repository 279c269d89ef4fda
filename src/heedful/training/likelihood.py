"""Log likelihood of gold targets by forced decoding, summed over a corpus."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.data.batch import Batch
from heedful.models.device_memory import as_memory_allows
from heedful.training.loss import LossSum, TrainingStep


@dataclass(frozen=True)
class Likelihood:
    """Log likelihood of the targets of a corpus."""

    log_prob: float
    """Log probability of all targets together, in nats, at most 0."""
    num_units: int
    """Number of target tokens, EOS included; at least 1."""

    @property
    def loss(self) -> float:
        """Mean negative log probability of a token, in nats."""
        return -self.log_prob / self.num_units

    @property
    def perplexity(self) -> float:
        """Perplexity exp(loss): comparable only between models with the same target tokens."""
        return math.exp(min(self.loss, 700.0))


def log_likelihood(step: TrainingStep, batches: Iterable[Batch]) -> Likelihood:
    """Sum the log likelihoods of gold units.

    Args:
        step: model and loss, put into evaluation mode.
        batches: one or more, of the step's task.
    """
    step.eval()
    device = next(step.parameters()).device
    log_probs, num_units = list[Tensor](), 0
    with torch.inference_mode():
        for batch in batches:
            sums: LossSum = step(*(torch.from_numpy(array).to(device) for array in batch.arrays()))
            log_probs.append(sums.log_likelihood)  # read at the end: a device need not be waited for
            num_units += batch.num_units
    return Likelihood(sum(map(float, log_probs)), num_units)


def validation_loss(step: TrainingStep, batches_of: Callable[[int], Iterable[Batch]], num_examples: int) -> float:
    """Compute the loss of held-out examples, on a device in batches as large as its memory allows.

    Args:
        step: model and loss, put into evaluation mode.
        batches_of: function of the largest number of examples in a batch; gives all batches, anew each time.
        num_examples: number of examples in a batch that suits a CPU.

    Returns:
        Mean negative log probability of a unit, in nats.

    Raises:
        OutOfMemoryError: memory does not hold one example.
    """
    device = next(step.parameters()).device
    return as_memory_allows(lambda number: log_likelihood(step, batches_of(number)), num_examples, device).loss
