"""Narrow windows: each query fetches the few keys it may attend, so that cost does not grow with the source."""

from dataclasses import replace
from math import prod
from typing import Final, final

import torch
from torch import Tensor

from heedful.attention.interface import Normalizer
from heedful.attention.kernels.interface import Attended, Kernel, Request, ScoreKernel
from heedful.attention.pairs import GivenScores, Pairs, broadcast
from heedful.attention.rows import Rows
from heedful.attention.tiled import TILE, WHOLE, average, in_tiles, narrowed, read_out, single, widened

NARROW: Final = 8
"""Fetching pays from so many keys for each one in the window."""


@final
class Window(Kernel):
    """Keys of each query's window fetched, then scored by plain operations; for any score and most normalizers."""

    name = "window"
    memory = "query + key (tiles of queries, computed again backward)"

    def __init__(self, scoring: ScoreKernel) -> None:
        """Choose how scores are made.

        Args:
            scoring: supports every score.
        """
        self.scoring = scoring

    def supports(self, request: Request) -> str | None:
        if request.mode == "export":
            return "not for export"
        if request.width is None or request.mask != "interval":
            return "the mask is not a window of known width"
        if request.width * NARROW > request.num_keys:
            return f"the window is wider than 1/{NARROW} of the keys"
        if request.pairs is GivenScores:
            return "a score function wants all keys"
        if request.normalizer.is_random or request.normalizer.scope == "matrix":
            return "noise and trees want all keys"
        if "weights" in request.need:
            return "writes no weights of all keys"
        return None

    def run(self, pairs: Pairs, value: Tensor, rows: Rows | None, normalizer: Normalizer, request: Request) -> Attended:
        leading = broadcast(pairs.leading, value.shape[:-2])
        if rows is None or request.width is None:
            raise TypeError("window: no mask")
        start, stop = rows.bounds(len(pairs.leading))
        start = start.clamp(0, request.num_keys).expand(*leading, request.num_queries)
        stop = stop.clamp(max=request.num_keys).expand(*leading, request.num_queries)
        width = request.width

        # Neighbours share keys, so here gradients are sums of many even in one piece.
        wide, wide_value = (widened(pairs), single(value)) if request.wants_gradient else (pairs, value)

        def one(part: slice) -> Attended:
            places = start[..., part, None] + torch.arange(width, device=start.device)
            fetched = places.clamp(max=request.num_keys - 1)
            own = wide.of_queries(part).with_own_keys(_fetch(wide.key, fetched))
            values = _fetch(wide_value, fetched).to(value.dtype)
            gaussian = rows.of_queries(part).gaussian
            factors = None if gaussian is None else gaussian.factors(places, len(pairs.leading))
            allowed = places < stop[..., part, None]
            return self._near(narrowed(own, pairs), values, places, allowed, factors, normalizer, request)

        per_query = prod(leading) * width * (pairs.key.shape[-1] + value.shape[-1])
        if request.mode != "eager" or per_query * request.num_queries <= WHOLE:
            return one(slice(None))
        return in_tiles(one, request, max(1, TILE // max(1, per_query)))

    def _near(
        self,
        pairs: Pairs,
        values: Tensor,
        places: Tensor,
        allowed: Tensor,
        factors: Tensor | None,
        normalizer: Normalizer,
        request: Request,
    ) -> Attended:
        """Attend the keys at `places` [*leading, query, width], each query its own."""
        # Scored as one query each; then a row of near keys stands where a row of all keys would, so that what a
        # normalizer holds for each head finds the head.
        scores, exists = self.scoring.scores(pairs)
        scores = scores.squeeze(-2)
        if exists is not None:
            allowed = allowed & exists.squeeze(-2)

        def averaged(weights: Tensor) -> Tensor:
            return average(values, weights[..., None, :]).squeeze(-2)

        if factors is not None:
            factors = factors.to(scores.dtype)
        near = read_out(scores, allowed, factors, averaged, normalizer, None, request, self.name)
        if near.argmax is None:
            return near
        return replace(near, argmax=torch.where(allowed.any(dim=-1), near.argmax + places[..., 0], 0))


def _fetch(tensor: Tensor, places: Tensor) -> Tensor:
    """Take rows of [*#leading, key, size] at [*leading, query, width], without copying what is merely repeated."""
    leading, num_keys = places.shape[:-2], tensor.shape[-2]
    offsets = torch.zeros((1,) * places.dim(), dtype=torch.int64, device=places.device)
    size = num_keys
    for axis in range(1, len(leading) + 1):
        given = tensor.shape[-2 - axis] if axis <= tensor.dim() - 2 else 1
        if given > 1:
            steps = torch.arange(given, device=places.device) * size
            offsets = offsets + steps.reshape(-1, *(1,) * (axis + 1))
            size *= given
    rows = tensor.reshape(-1, tensor.shape[-1])
    return rows.index_select(0, (places + offsets).flatten()).unflatten(0, tuple(places.shape))
