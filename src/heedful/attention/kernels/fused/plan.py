"""Plan of one fused attention call: sizes, masks and settings, none of which receives gradient."""

import math
from dataclasses import dataclass
from typing import Final, final

import torch
from torch import Tensor

from heedful.attention.kernels.additive.triton_ops import FEW_KEYS, Sight, batch_indices
from heedful.attention.kernels.interface import Request
from heedful.attention.lowered import LoweredAdditive, LoweredDistance, LoweredScore, broadcast
from heedful.attention.mask_bounds import MaskBounds, lead
from heedful.attention.profiles import PROFILES

ROWS: Final = 32
"""Query rows per tile. The score-gradient kernel has the same size: it skips rows that the forward kernel skipped."""
COLUMNS: Final = 64
"""Keys per tile."""
STRIP: Final = 3 << 18
"""Largest number of scores in memory at once, unless 32 queries have more; the backward pass holds as many weights
too."""
LARGE_STRIP: Final = 1 << 23
"""The same where the keys are few, and launches would take longer than the memory is worth."""

_STRIP_KIND, _DOT_KIND, _DISTANCE_KIND = 0, 1, 2


@final
@dataclass(frozen=True)
class FusedChoice:
    """Map from scores to weights: softmax, noise, or a chosen key."""

    seed: Tensor | int | None = None
    """Seed of the noise; None = no noise."""
    is_relaxed: bool = False
    """Whether weights are the softmax of the scores with noise."""
    is_one_hot: bool = False
    """Whether the best key gets all weight."""
    is_soft_backward: bool = True
    """Whether gradients reach the scores as those of the softmax."""


@final
@dataclass(frozen=True)
class FusedPlan:
    """Settings of one call."""

    batch: tuple[int, ...]
    """Leading axes of the contexts."""
    leading: tuple[int, ...]
    """Leading axes of the scores."""
    num_queries: int
    num_keys: int
    kind: int
    """Kind of scores: a strip in memory, dot products, distances."""
    profile: int
    """Index of the distance profile in PROFILES."""
    choice: FusedChoice
    index: Tensor
    """[6, batch] int64 indices of the tensors' batch elements, see triton_kernels.py."""
    seeds: Tensor
    """[3] int64: seeds of noise and of dropout, and 2^53 times the probability of dropout."""
    numbers: tuple[float, float, float]
    """Inverse temperatures of distances and of noise where they are constants, and the scale of kept weights in
    dropout."""
    sigma: float
    """Standard deviation of the local-p Gaussian when it is a constant."""
    sight: Sight | None
    """Intervals of keys; None = all."""
    dense: Tensor | None
    """[table batch, query or 1, key] bool, True = may attend."""
    has_gaussian: bool
    has_weights: bool
    has_dropout: bool

    @staticmethod
    def make(
        pairs: LoweredScore, value: Tensor, rows: MaskBounds | None, choice: FusedChoice, request: Request
    ) -> "FusedPlan":
        """Plan a call.

        Args:
            value: [*batch, key, value_size].
            rows: who may attend whom; None = all.
            choice: map from scores to weights.
        """
        leading = tuple(pairs.leading)
        batch = tuple(broadcast(pairs.leading, value.shape[:-2]))
        sight, dense = _masks(rows, leading, request.num_queries, request.num_keys)
        gaussian = None if rows is None else rows.gaussian
        factor = pairs.inverse_temperature if isinstance(pairs, LoweredDistance) else 1.0
        return FusedPlan(
            batch,
            leading,
            request.num_queries,
            request.num_keys,
            _kind(pairs),
            list(PROFILES).index(pairs.profile) if isinstance(pairs, LoweredDistance) else 0,
            choice,
            _index(pairs, value, batch, leading, dense),
            _seeds(choice, request.dropout, value.device),
            (1.0 if isinstance(factor, Tensor) else factor, 1.0, 1.0 / (1.0 - request.dropout)),
            1.0 if gaussian is None or isinstance(gaussian.sigma, Tensor) else gaussian.sigma,
            sight,
            dense,
            gaussian is not None,
            "weights" in request.need,
            request.dropout > 0.0,
        )

    @property
    def columns(self) -> int:
        """Keys per tile; distances need more registers."""
        return COLUMNS // 2 if self.kind == _DISTANCE_KIND else COLUMNS

    @property
    def num_elements(self) -> int:
        """Number of batch elements."""
        return math.prod(self.batch)

    def strips(self) -> list[slice]:
        """Divide the queries into strips with few scores each.

        Returns:
            Slices of whole tiles, except for the last.
        """
        per_row = max(1, self.num_elements * self.num_keys)
        scores = LARGE_STRIP if self.num_keys <= FEW_KEYS else STRIP
        size = max(1, scores // per_row // ROWS) * ROWS
        return [slice(row, min(row + size, self.num_queries)) for row in range(0, self.num_queries, size)]


def compact(tensor: Tensor) -> Tensor:
    """Collapse leading axes that were merely repeated.

    Args:
        tensor: [*leading, row, size].

    Returns:
        The same with axes of 1 where elements repeat.
    """
    for axis in range(tensor.dim() - 2):
        if tensor.stride(axis) == 0 and tensor.shape[axis] > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def _kind(pairs: LoweredScore) -> int:
    if isinstance(pairs, LoweredAdditive):
        return _STRIP_KIND
    return _DISTANCE_KIND if isinstance(pairs, LoweredDistance) else _DOT_KIND


def _index(
    pairs: LoweredScore, value: Tensor, batch: tuple[int, ...], leading: tuple[int, ...], dense: Tensor | None
) -> Tensor:
    shapes = [tuple(compact(part).shape[:-2]) for part in (pairs.query, pairs.key, value)]
    missing = len(leading) - (0 if dense is None else dense.dim() - 2)
    tables = (1,) * len(leading) if dense is None else (*dense.shape[:-2], *(1,) * missing)
    # Computed on the device, because a recorded graph cannot copy from the host.
    device = value.device
    index = torch.zeros(6, math.prod(batch), dtype=torch.int64, device=device)
    index[:5] = batch_indices(batch, device, *shapes, leading, tables)
    if dense is not None:
        index[4] *= math.prod(dense.shape[-2:])
    # Marks the first element of each shared row, so that the row is differentiated once.
    index[5].fill_(1)
    if batch != leading:
        first = torch.full((math.prod(leading),), math.prod(batch), device=device)
        first.scatter_reduce_(0, index[3], torch.arange(math.prod(batch), device=device), "amin")
        index[5] = torch.zeros_like(index[5]).index_fill_(0, first, 1)
    return index


def _seeds(choice: FusedChoice, dropout: float, device: torch.device) -> Tensor:
    seeds = torch.zeros(3, dtype=torch.int64, device=device)
    if isinstance(choice.seed, Tensor):
        seeds[0] = choice.seed
    elif choice.seed is not None:
        # Two's complement, to fit a larger number into int64.
        seeds[0].fill_((choice.seed + (1 << 63)) % (1 << 64) - (1 << 63))
    if dropout:
        # From the device's generator, so that a recorded graph draws anew in each replay.
        seeds[1] = torch.randint(1 << 62, (), device=device)
        seeds[2].fill_(int(dropout * 2.0**53))
    return seeds


def _masks(
    rows: MaskBounds | None, leading: tuple[int, ...], num_queries: int, num_keys: int
) -> tuple[Sight | None, Tensor | None]:
    if rows is None:
        return None, None
    bounds = [bound.expand(*leading, num_queries).reshape(-1, num_queries) for bound in rows.bounds(len(leading))]
    start, stop = (bound.clamp(0, num_keys).long().contiguous() for bound in bounds)
    dense = None if rows.dense is None else lead(rows.dense, len(leading), 2).contiguous()
    return Sight(start, stop), dense
