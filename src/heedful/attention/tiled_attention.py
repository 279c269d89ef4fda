"""Tiled driver: any score kernel x mask x normalizer, one tile of queries at a time, memory linear in query + key.

Only the inputs of a tile are saved; its scores and weights are recomputed for the backward pass. So sparsemax, drawn
keys or chains need linear memory with any score, without a kernel of their own.
"""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Final, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from heedful.attention.attention_inputs import AttentionInputs
from heedful.attention.interface import Attended, Need, Normalized, Normalizer
from heedful.attention.kernels.interface import Kernel, Request, ScoreKernel
from heedful.attention.lowered import LoweredScore, product
from heedful.attention.mask_bounds import MaskBounds
from heedful.attention.softmax import Softmax
from heedful.attention.stochastic import number_rows
from heedful.attention.tile_autograd import in_tiles

WHOLE: Final = 1 << 22
"""Number of scores up to which all queries form one tile and nothing is recomputed."""
LARGE_WHOLE: Final = 1 << 28
"""The same on a GPU, which launches few large operations sooner than many small ones."""
TILE: Final = 1 << 19
"""Number of scores in a tile, unless a single query has more."""

_NUMBERS_PER_BIAS: Final = 8
"""Numbers held in memory per pair of positions: relative positions and their indices, 64 bits wide."""

_FROM_WEIGHTS: Final[frozenset[Need]] = frozenset({"weights", "argmax"})
"""Results that can be computed from the weights alone."""


@final
class Tiled(Kernel):
    """Kernel composed of a score kernel and the tiled driver."""

    has_biases = True
    has_scale = True

    def __init__(
        self, scoring: ScoreKernel, memory: str = "query + key (tiles of queries, computed again backward)"
    ) -> None:
        """Wrap a score kernel."""
        self.scoring = scoring
        self.name = scoring.name
        self.memory = memory
        self.standing = scoring.standing

    def has_second_derivatives(self, request: Request) -> bool:
        return True

    def supports(self, request: Request) -> str | None:
        return self.scoring.supports(request)

    def declines_auto(self, request: Request) -> str | None:
        return self.scoring.declines_auto(request)

    def memory_of(self, request: Request) -> str:
        if request.normalizer.scope == "matrix":
            return "query * key (the normalizer needs all scores at once)"
        if request.mode != "eager":
            return "query * key (traced operations form one tile)"
        return self.memory

    def run(
        self, pairs: LoweredScore, value: Tensor, rows: MaskBounds | None, normalizer: Normalizer, request: Request
    ) -> Attended:
        row_ids = number_rows((*pairs.leading, request.num_queries), value.device) if normalizer.is_random else None
        operands = AttentionInputs(pairs, value, rows, normalizer, row_ids)
        compute = partial(run_tile, self.scoring, request)
        per_query = prod(pairs.leading) * request.num_keys * self.scoring.numbers_per_score(pairs)
        if request.has_bias:
            per_query += _NUMBERS_PER_BIAS * request.num_keys
        # A traced graph must be valid for all sizes; a normalizer of matrices needs all queries at once.
        is_one_tile = request.mode != "eager" or normalizer.scope == "matrix"
        whole = LARGE_WHOLE if request.device == "cuda" else WHOLE
        if is_one_tile or per_query * request.num_queries <= whole:
            return compute(operands)
        types = operands.types()
        return in_tiles(
            lambda tile: compute(tile.narrowed(types)), operands, request, max(1, TILE // max(1, per_query))
        )


def run_tile(scoring: ScoreKernel, request: Request, operands: AttentionInputs) -> Attended:
    """Compute attention with all scores in memory.

    Returns:
        The contexts and the requested results.
    """
    rows = operands.rows
    scores, exists = scoring.scores(operands.pairs)
    if operands.pairs.bias is not None:
        scores = operands.pairs.bias.add_to(scores)
    num_leading, factors, allowed = scores.dim() - 2, None, exists
    if rows is not None:
        mask, hidden = rows.table(num_leading, scores.shape[-1])
        if hidden is not None and exists is None and rows.gaussian is None and request.normalizer is Softmax:
            # Without empty rows a mask is nothing but scores of -inf.
            scores = scores.masked_fill(hidden, -torch.inf)
        else:
            allowed = mask if exists is None else mask & exists
        if rows.gaussian is not None:
            key_indices = torch.arange(scores.shape[-1], device=scores.device)
            factors = rows.gaussian.factors(key_indices, num_leading).to(scores.dtype)
    averaged = partial(average, operands.value)
    return read_out(scores, allowed, factors, averaged, operands.normalizer, operands.row_ids, request, scoring.name)


def average(
    value: Float[Tensor, "*#batch key value_size"], weights: Float[Tensor, "*#batch query key"]
) -> Float[Tensor, "*#batch query value_size"]:
    """Average the values.

    Args:
        value: [*batch, key, value_size].
        weights: [*batch, query, key].

    Returns:
        [*batch, query, value_size] in the type of the values.
    """
    return product(weights.to(value.dtype), value)


def read_out(
    scores: Float[Tensor, "*#batch query key"],
    allowed: Bool[Tensor, "*#batch #query key"] | None,
    factors: Float[Tensor, "*#batch #query key"] | None,
    averaged: Callable[[Tensor], Tensor],
    normalizer: Normalizer,
    row_ids: Int[Tensor, "*#batch query"] | None,
    request: Request,
    kernel: str,
) -> Attended:
    """Compute weights from scores and average the values.

    Args:
        scores: [*batch, query, key].
        allowed: [#*batch, #query, key] bool; None = all.
        factors: [#*batch, #query, key] factors of the weights after normalising; None = 1.
        averaged: function from weights to contexts [*batch, query, value_size].
        row_ids: [*batch, query] indices of the rows.
        request: facts about the call.

    Returns:
        The contexts and the requested results.
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


def _dropped(weights: Tensor, probability: float) -> Tensor:
    return functional.dropout(weights, probability) if probability else weights


def _best(weights: Tensor, allowed: Tensor | None) -> Tensor:
    """Key of the largest weight; never a forbidden key, even if a Gaussian makes all weights zero."""
    return (weights if allowed is None else weights.masked_fill(~allowed, -1.0)).argmax(dim=-1)


def _entropy(weights: Tensor) -> Tensor:
    """Entropy -sum w log w; zero weights contribute neither to it nor to its gradient, which is infinite there."""
    positive = weights.masked_fill(weights <= 0, 1.0)
    return -(positive * positive.log()).sum(dim=-1)
