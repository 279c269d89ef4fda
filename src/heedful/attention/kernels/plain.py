"""Kernel of plain PyTorch operations: every score, device, dtype and mask."""

from typing import Final, final

import torch
from torch import Tensor

from heedful.attention.kernels.formulas import additive_formula
from heedful.attention.kernels.interface import Request, ScoreKernel
from heedful.attention.lowered import GivenScores, LoweredAdditive, LoweredDistance, LoweredDot, LoweredScore, product
from heedful.attention.profiles import PROFILES, unit_of
from heedful.errors import ShapeError, UsageError

_TILES: Final = (
    "a score function is called for some of the queries at a time; for numbers by positions use Biased(score, bias)"
)


@final
class PlainScores(ScoreKernel):
    """The formulas as written."""

    name = "plain"

    def supports(self, request: Request) -> str | None:
        return None

    def scores(self, pairs: LoweredScore) -> tuple[Tensor, Tensor | None]:
        if isinstance(pairs, LoweredAdditive):
            return additive_formula(pairs.query, pairs.key, pairs.vector), None
        if isinstance(pairs, LoweredDistance):
            return _distance_scores(pairs)
        if isinstance(pairs, GivenScores):
            return _given_scores(pairs), None
        return _dot_scores(pairs), None

    def numbers_per_score(self, pairs: LoweredScore) -> int:
        return max(1, pairs.key.shape[-1]) if isinstance(pairs, LoweredAdditive | LoweredDistance) else 1


def _dot_scores(pairs: LoweredScore) -> Tensor:
    # Only float16 scores can realistically overflow, as its range ends at 65504; multiplied first, queries are smaller.
    if pairs.query.dtype == torch.float16:
        pairs = pairs.folded()
        return _finite(product(pairs.query, pairs.key.mT))
    scores = product(pairs.query, pairs.key.mT)
    # Scores are nearly always fewer numbers than queries, and those of a product are nobody else's.
    return scores.mul_(pairs.scale) if isinstance(pairs, LoweredDot) and pairs.scale != 1.0 else scores


def _distance_scores(pairs: LoweredDistance) -> tuple[Tensor, Tensor | None]:
    # Differences before squares: |q|^2 + |k|^2 - 2 q . k loses the digits of points far from the origin.
    unit = unit_of(pairs.bandwidth)
    differences = (pairs.query[..., :, None, :] - pairs.key[..., None, :, :]) * unit
    squared = _finite(differences.square().sum(dim=-1)) / (pairs.bandwidth * unit).square()
    profile = PROFILES[pairs.profile]
    scores = _finite(profile.log_kernel(squared) * pairs.inverse_temperature)
    return scores, None if profile.reach == torch.inf else squared < profile.reach**2


def _given_scores(pairs: GivenScores) -> Tensor:
    try:
        scores = pairs.function(pairs.query, pairs.key)
    except RuntimeError as error:
        error.add_note(f"attend: {_TILES}")
        raise
    if not scores.is_floating_point():
        name = str(scores.dtype).removeprefix("torch.")
        raise UsageError(f"attend: the score function gave {name}, expected a floating-point type")
    wanted = (*pairs.leading, pairs.query.shape[-2], pairs.key.shape[-2])
    if scores.shape != wanted:
        raise ShapeError(f"attend: the score function gave {list(scores.shape)}, expected {list(wanted)}; {_TILES}")
    return _finite(_finite(scores) * pairs.inverse_temperature)


def _finite(scores: Tensor) -> Tensor:
    """Scores clamped to the range of the dtype, because the difference of two infinite scores is NaN."""
    largest = torch.finfo(scores.dtype).max
    return scores.clamp(-largest, largest)
