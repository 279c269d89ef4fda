"""The driver: any score kernel x mask x normalizer, a tile of queries at a time, in memory linear in query + key.

Of a tile only the inputs are kept; its scores and weights are computed again for the backward pass. So sparsemax, drawn
keys or chains are linear in memory over any score, without a kernel of their own.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from math import prod
from typing import Final, final

import torch
from torch import Tensor
from torch.nn import functional

from heedful.attention.interface import Need, Normalized, Normalizer
from heedful.attention.kernels.interface import Attended, Kernel, Request, ScoreKernel
from heedful.attention.pairs import Pairs
from heedful.attention.recomputation import Recomputation
from heedful.attention.rows import Rows
from heedful.attention.stochastic import number_rows

WHOLE: Final = 1 << 22
"""Numbers up to which all queries are one tile and nothing is computed twice."""
TILE: Final = 1 << 19
"""Numbers a tile may hold where there are more, if a single query does not hold more already."""

_HALF: Final = frozenset({torch.bfloat16, torch.float16})

_FROM_WEIGHTS: Final[frozenset[Need]] = frozenset({"weights", "argmax"})
"""What needs nothing but weights."""


@final
class Tiled(Kernel):
    """The driver over one kernel of scores."""

    def __init__(
        self, scoring: ScoreKernel, memory: str = "query + key (tiles of queries, computed again backward)"
    ) -> None:
        """Drive a score kernel.

        Args:
            scoring: makes the scores of a tile.
            memory: what it allocates, in words.
        """
        self.scoring = scoring
        self.name = scoring.name
        self.memory = memory

    def supports(self, request: Request) -> str | None:
        return self.scoring.supports(request)

    def passes(self, request: Request) -> str | None:
        return self.scoring.passes(request)

    def memory_of(self, request: Request) -> str:
        if request.normalizer.scope == "matrix":
            return "query * key (a tree needs all scores at once)"
        if request.mode != "eager":
            return "query * key (recorded operations are one tile)"
        return self.memory

    def run(self, pairs: Pairs, value: Tensor, rows: Rows | None, normalizer: Normalizer, request: Request) -> Attended:
        row_ids = number_rows((*pairs.leading, request.num_queries), value.device) if normalizer.is_random else None
        per_query = prod(pairs.leading) * request.num_keys * self.scoring.numbers_per_score(pairs)
        whole = partial(run_tile, self.scoring, value=value, normalizer=normalizer, request=request)
        # What is recorded must hold for any size; a tree needs all queries at once.
        is_one_tile = request.mode != "eager" or normalizer.scope == "matrix"
        if is_one_tile or per_query * request.num_queries <= WHOLE:
            return whole(pairs, rows=rows, row_ids=row_ids)

        wide, wide_value = (widened(pairs), single(value)) if request.wants_gradient else (pairs, value)

        def one(part: slice) -> Attended:
            return whole(
                narrowed(wide.of_queries(part), pairs),
                value=wide_value.to(value.dtype),
                rows=None if rows is None else rows.of_queries(part),
                row_ids=None if row_ids is None else row_ids[..., part],
            )

        return in_tiles(one, request, max(1, TILE // max(1, per_query)))


def widened(pairs: Pairs) -> Pairs:
    """Hold in float32 what is shared in half precision, so that gradients of many tiles are summed in float32.

    In half precision a sum of many would lose what each adds.

    Args:
        pairs: of all queries.

    Returns:
        The same in numbers; tiles are to be `narrowed` before anything is computed.
    """
    return replace(pairs, **{name: single(tensor) for name, tensor in pairs.shared().items()})


def narrowed(wide: Pairs, like: Pairs) -> Pairs:
    """Undo `widened`.

    Args:
        wide: widened pairs, or a part of them.
        like: what was widened.

    Returns:
        What is shared in the types it had.
    """
    types = {name: tensor.dtype for name, tensor in like.shared().items()}
    return replace(wide, **{name: tensor.to(types[name]) for name, tensor in wide.shared().items()})


def single(tensor: Tensor) -> Tensor:
    """Hold in float32 what is in half precision.

    Args:
        tensor: of any type.

    Returns:
        The same numbers.
    """
    return tensor.float() if tensor.dtype in _HALF else tensor


def run_tile(
    scoring: ScoreKernel,
    pairs: Pairs,
    value: Tensor,
    rows: Rows | None,
    normalizer: Normalizer,
    row_ids: Tensor | None,
    request: Request,
) -> Attended:
    """Attend with all scores in memory.

    Args:
        scoring: makes the scores.
        pairs: of some queries.
        value: [*batch, key, value_size].
        rows: who may attend whom, of those queries; None = all.
        normalizer: scores to weights.
        row_ids: [*batch, query] numbers of those queries.
        request: of the whole call.

    Returns:
        The contexts and all that was asked.
    """
    scores, exists = scoring.scores(pairs)
    num_leading, factors, allowed = scores.dim() - 2, None, exists
    if rows is not None:
        mask = rows.allowed(num_leading, scores.shape[-1])
        allowed = mask if exists is None else mask & exists
        if rows.gaussian is not None:
            places = torch.arange(scores.shape[-1], device=scores.device)
            factors = rows.gaussian.factors(places, num_leading).to(scores.dtype)
    return read_out(scores, allowed, factors, partial(average, value), normalizer, row_ids, request, scoring.name)


def average(value: Tensor, weights: Tensor) -> Tensor:
    """Average the values.

    Args:
        value: [*batch, key, value_size].
        weights: [*batch, query, key].

    Returns:
        [*batch, query, value_size] in the type of the values.
    """
    return weights.to(value.dtype) @ value


def read_out(
    scores: Tensor,
    allowed: Tensor | None,
    factors: Tensor | None,
    averaged: Callable[[Tensor], Tensor],
    normalizer: Normalizer,
    row_ids: Tensor | None,
    request: Request,
    kernel: str,
) -> Attended:
    """Turn scores into weights and average the values.

    Args:
        scores: [*batch, query, key].
        allowed: [#*batch, #query, key] bool; None = all.
        factors: [#*batch, #query, key] of the weights after normalising; None = 1.
        averaged: contexts [*batch, query, value_size] from weights.
        normalizer: scores to weights.
        row_ids: [*batch, query] numbers of the rows.
        request: says what is needed.
        kernel: name to report.

    Returns:
        The contexts and all that was asked.
    """
    need = request.need
    if need <= _FROM_WEIGHTS:
        normalized = Normalized(normalizer.weigh(scores, allowed, row_ids))
    else:
        normalized = normalizer.normalize(scores, allowed, row_ids)
    weights = normalized.weights if factors is None else normalized.weights * factors
    entropy = None
    if "entropy" in need:
        entropy = _entropy(weights) if normalized.entropy is None else normalized.entropy
    return Attended(
        context=averaged(_dropped(weights, request.dropout)),
        kernel=kernel,
        weights=weights if "weights" in need else None,
        log_normalizer=normalized.log_normalizer if "log_normalizer" in need else None,
        argmax=_best(weights, allowed) if "argmax" in need else None,
        entropy=entropy,
        log_prob=normalized.log_prob if "log_prob" in need else None,
    )


def in_tiles(one: Callable[[slice], Attended], request: Request, num_rows: int) -> Attended:
    """Attend tile by tile, keeping of each what it was given and what it gave.

    Args:
        one: attends for a slice of the queries.
        request: of the whole call.
        num_rows: queries of a tile.

    Returns:
        The parts side by side.
    """
    slices = [slice(row, min(row + num_rows, request.num_queries)) for row in range(0, request.num_queries, num_rows)]
    if not request.wants_gradient:
        return join([_moved(one(part)) for part in slices])
    # Only dropout draws from PyTorch's generator: normalizers make their noise from the numbers of the rows.
    compute = _seeded(one, request.device) if request.dropout else one
    again = Recomputation(request.device)
    return join([_moved(again.call(partial(compute, part))) for part in slices])


def _moved(attended: Attended) -> Attended:
    """Copy results to where a tile's scores were.

    They came into memory after the scores, which have gone: where they are, they would keep the next tile from using
    the same memory, and the process would grow by all query-key pairs.
    """
    parts = {each.name: getattr(attended, each.name) for each in fields(Attended)}
    return replace(attended, **{name: part.clone() for name, part in parts.items() if isinstance(part, Tensor)})


def _seeded(one: Callable[[slice], Attended], device: str) -> Callable[[slice], Attended]:
    """Let each tile draw the same numbers whenever it is computed; the caller's generator gives one, for all tiles."""
    seed = int(torch.randint(1 << 62, ()))
    is_cuda = device == "cuda"
    devices = [torch.cuda.current_device()] if is_cuda else []
    # Not torch.manual_seed, which seeds every device there is.
    start = torch.cuda.manual_seed if is_cuda else torch.default_generator.manual_seed

    def again(part: slice) -> Attended:
        with torch.random.fork_rng(devices):
            start(seed + part.start)
            return one(part)

    return again


def join(parts: list[Attended]) -> Attended:
    """Put the attention of successive queries side by side.

    Args:
        parts: at least one.

    Returns:
        All of them along the query axis.
    """

    def column(name: str) -> Tensor | None:
        found = [part for attended in parts if isinstance(part := getattr(attended, name), Tensor)]
        return torch.cat(found, dim=-2 if name in {"context", "weights"} else -1) if found else None

    names = [field.name for field in fields(Attended) if field.name not in {"context", "kernel"}]
    context = torch.cat([attended.context for attended in parts], dim=-2)
    return Attended(context, parts[0].kernel, **{name: column(name) for name in names})


def _dropped(weights: Tensor, probability: float) -> Tensor:
    return functional.dropout(weights, probability) if probability else weights


def _best(weights: Tensor, allowed: Tensor | None) -> Tensor:
    """The key of largest weight; one that may not be attended is never it, even where a Gaussian leaves only zeros."""
    return (weights if allowed is None else weights.masked_fill(~allowed, -1.0)).argmax(dim=-1)


def _entropy(weights: Tensor) -> Tensor:
    """-sum w log w; where a weight is zero it adds nothing, nor to the gradient, whose limit there is infinite."""
    positive = weights.masked_fill(weights <= 0, 1.0)
    return -(positive * positive.log()).sum(dim=-1)
