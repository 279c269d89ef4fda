"""Log likelihood of gold targets by forced decoding, summed over a corpus."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from heedful.data.batch import Batch
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
    total, num_units = 0.0, 0
    with torch.inference_mode():
        for batch in batches:
            sums: LossSum = step(*(torch.from_numpy(array).to(device) for array in batch.arrays()))
            total += float(sums.log_likelihood)
            num_units += batch.num_units
    return Likelihood(total, num_units)
