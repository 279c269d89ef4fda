"""Plain PyTorch operations: every score, every mask, every summary, any dtype. Memory grows with query * key."""

from typing import final

import torch
from torch import Tensor
from torch.nn import functional

from heedful.attention.kernels.interface import Attended, Kernel, Request
from heedful.attention.masks import Rows
from heedful.attention.normalizers import Normalizer
from heedful.attention.pairs import AdditivePairs, Pairs


@final
class Eager(Kernel):
    """The formulas as written."""

    name = "eager"
    memory = "query * key (additive: query * key * hidden)"

    def supports(self, request: Request) -> str | None:
        return None

    def run(self, pairs: Pairs, value: Tensor, rows: Rows | None, normalizer: Normalizer, request: Request) -> Attended:
        scores = make_scores(pairs)
        allowed = None if rows is None else rows.allowed(scores.dim() - 2, scores.shape[-1])
        normalized = normalizer.normalize(scores, allowed)
        weights = normalized.weights
        need = request.need
        return Attended(
            context=functional.dropout(weights, request.dropout) @ value,
            kernel=self.name,
            weights=weights if "weights" in need else None,
            log_normalizer=normalized.log_normalizer if "log_normalizer" in need else None,
            argmax=weights.argmax(dim=-1) if "argmax" in need else None,
            entropy=_entropy(weights) if "entropy" in need else None,
        )


def make_scores(pairs: Pairs) -> Tensor:
    """Compute all scores.

    Args:
        pairs: queries and keys.

    Returns:
        [*batch, query, key].
    """
    if isinstance(pairs, AdditivePairs):
        return torch.tanh(pairs.query[..., :, None, :] + pairs.key[..., None, :, :]) @ pairs.vector
    return pairs.query @ pairs.key.mT


def _entropy(weights: Tensor) -> Tensor:
    """-sum w log w; where a weight is zero it adds nothing, nor to the gradient, whose limit there is infinite."""
    positive = weights.masked_fill(weights <= 0, 1.0)
    return -(positive * positive.log()).sum(dim=-1)
