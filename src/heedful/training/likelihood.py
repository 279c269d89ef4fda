"""How probable a model finds gold targets: forced decoding, summed over a corpus."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from heedful.data.batching import make_batch
from heedful.data.encoded import EncodedCorpus
from heedful.models.interface import Seq2Seq
from heedful.training.loss import TrainingStep

BATCH_PAIRS: Final = 128


@dataclass(frozen=True)
class Likelihood:
    """What a model gives the targets of a corpus."""

    log_prob: float
    """Of all targets together, in nats, at most 0."""
    num_tokens: int
    """Target tokens, end marks included; at least 1."""

    @property
    def loss(self) -> float:
        """Mean negative log probability of a token, in nats."""
        return -self.log_prob / self.num_tokens

    @property
    def perplexity(self) -> float:
        """exp(loss): comparable only between models with the same target tokens."""
        return math.exp(min(self.loss, 700.0))


def log_likelihood(model: Seq2Seq, corpus: EncodedCorpus) -> Likelihood:
    """Sum the log probabilities of gold targets.

    Args:
        model: in evaluation mode.
        corpus: encoded pairs, at least one.

    Returns:
        The sums.
    """
    step = TrainingStep(model, label_smoothing=0.0).eval()
    device = next(model.parameters()).device
    total, num_tokens = 0.0, 0
    order = np.argsort(corpus.target.lengths, kind="stable")
    with torch.inference_mode():
        for start in range(0, len(order), BATCH_PAIRS):
            batch = make_batch(corpus, order[start : start + BATCH_PAIRS])
            arrays = (batch.source, batch.source_lengths, batch.target_in, batch.target_out)
            sums = step(*(torch.from_numpy(array).to(device) for array in arrays))
            total += float(sums.log_likelihood)
            num_tokens += batch.num_target_tokens
    return Likelihood(total, num_tokens)
