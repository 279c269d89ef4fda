"""Kernel of narrow windows: each query gathers its few keys, so that the cost does not grow with the source."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import prod
from typing import Final, final

import torch
from torch import Tensor

from heedful.attention.attention_inputs import AttentionInputs
from heedful.attention.interface import Attended, Normalizer
from heedful.attention.kernels.interface import Kernel, Request, ScoreKernel
from heedful.attention.lowered import GivenScores, LoweredScore, broadcast
from heedful.attention.mask_bounds import MaskBounds
from heedful.attention.tile_autograd import in_tiles
from heedful.attention.tiled_attention import TILE, WHOLE, average, read_out

NARROW: Final = 8
"""Ratio of keys to window width from which gathering pays off."""


@final
class Window(Kernel):
    """Gathered keys of each query's window, scored by plain operations; for any score and most normalizers."""

    name = "window"
    has_scale = True
    memory = "query + key (tiles of queries, computed again backward)"

    def __init__(self, scoring: ScoreKernel) -> None:
        """Choose the kernel of the scores.

        Args:
            scoring: score kernel that supports every score.
        """
        self.scoring = scoring

    def has_second_derivatives(self, request: Request) -> bool:
        return True

    def supports(self, request: Request) -> str | None:
        if request.mode in {"export", "transform"}:
            return f"not for {request.mode}"
        if request.width is None or request.mask != "interval":
            return "the mask is not a window of known width"
        if request.width * NARROW > request.num_keys:
            return f"the window is wider than 1/{NARROW} of the keys"
        if request.pairs is GivenScores:
            return "a score function needs all keys"
        if request.normalizer.is_random or request.normalizer.scope == "matrix":
            return "noise and trees need all keys"
        if "weights" in request.need:
            return "gives no weights over all keys"
        return None

    def run(
        self, pairs: LoweredScore, value: Tensor, rows: MaskBounds | None, normalizer: Normalizer, request: Request
    ) -> Attended:
        if rows is None or request.width is None:
            raise TypeError("window: no mask")
        leading = broadcast(pairs.leading, value.shape[:-2])
        start, stop = rows.bounds(len(pairs.leading))
        shape = (*leading, request.num_queries)
        start = start.clamp(0, request.num_keys).expand(shape)
        stop = stop.clamp(max=request.num_keys).expand(shape)
        operands = AttentionInputs(pairs, value, replace(rows, start=start, stop=stop), normalizer)
        compute = partial(self._fetch_and_run, request, operands.types())
        per_query = prod(leading) * request.width * (pairs.key.shape[-1] + value.shape[-1])
        if request.mode != "eager" or per_query * request.num_queries <= WHOLE:
            # Neighbouring queries share keys, so gradients are sums of many terms even within one tile.
            return compute(operands.widened() if request.wants_gradient else operands)
        return in_tiles(compute, operands, request, max(1, TILE // max(1, per_query)))

    def _fetch_and_run(self, request: Request, types: Mapping[str, torch.dtype], tile: AttentionInputs) -> Attended:
        """Attention of some queries on gathered keys and values.

        Raises:
            TypeError: there is no window.
        """
        rows, num_leading, num_keys = tile.rows, len(tile.pairs.leading), request.num_keys
        if rows is None or rows.start is None or request.width is None:
            raise TypeError("window: no mask")
        positions = rows.start[..., None] + torch.arange(request.width, device=rows.start.device)
        fetched = positions.clamp(max=num_keys - 1)
        near = replace(
            tile,
            pairs=tile.pairs.with_own_keys(_fetch(tile.pairs.key, fetched)),
            value=_fetch(tile.value, fetched),
        ).narrowed(types)
        factors = None if rows.gaussian is None else rows.gaussian.factors(positions, num_leading)
        return self._near(near, positions, positions < rows.stop[..., None], factors, request)

    def _near(
        self, near: AttentionInputs, positions: Tensor, allowed: Tensor, factors: Tensor | None, request: Request
    ) -> Attended:
        """Attention on gathered keys at `positions` [*leading, query, width]."""
        # Each query is scored alone with its gathered keys, then the query axis is restored, so that per-head
        # parameters of a normalizer still align with the head axis.
        scores, exists = self.scoring.scores(near.pairs)
        scores = scores.squeeze(-2)
        if exists is not None:
            allowed = allowed & exists.squeeze(-2)

        def averaged(weights: Tensor) -> Tensor:
            return average(near.value, weights[..., None, :]).squeeze(-2)

        if factors is not None:
            factors = factors.to(scores.dtype)
        attended = read_out(scores, allowed, factors, averaged, near.normalizer, None, request, self.name)
        if attended.argmax is None:
            return attended
        return replace(attended, argmax=torch.where(allowed.any(dim=-1), attended.argmax + positions[..., 0], 0))


def _fetch(tensor: Tensor, positions: Tensor) -> Tensor:
    """Gather rows of [*#leading, key, size] at [*leading, query, width], without copying repeated axes."""
    leading, num_keys = positions.shape[:-2], tensor.shape[-2]
    offsets = torch.zeros((1,) * positions.dim(), dtype=torch.int64, device=positions.device)
    size = num_keys
    for axis in range(1, len(leading) + 1):
        own_size = tensor.shape[-2 - axis] if axis <= tensor.dim() - 2 else 1
        if own_size > 1:
            steps = torch.arange(own_size, device=positions.device) * size
            offsets = offsets + steps.reshape(-1, *(1,) * (axis + 1))
            size *= own_size
    rows = tensor.reshape(-1, tensor.shape[-1])
    return rows.index_select(0, (positions + offsets).flatten()).unflatten(0, tuple(positions.shape))
