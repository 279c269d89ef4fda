"""PyTorch operation for exact additive scores on a GPU, with Triton kernels: no array of query * key * hidden.

score_ij = vector . tanh(query_i + key_j), Bahdanau, Cho and Bengio 2015, arXiv:1409.0473, section A.1.2 after both
projections. triton_kernels.py states the method. This module computes the exponentials, one per element of query and
key, in float64; the kernels compute everything of size query * key * hidden, and recompute it for the gradients, in
float32 and without atomic additions.

Triton is imported when the first score is computed, not before.
"""

import importlib
import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, final

import torch
from torch import Tensor

from heedful.attention.kernels.devices import UNTIMED, against_auto, supports_device
from heedful.attention.kernels.formulas import additive_formula
from heedful.attention.kernels.interface import Request, ScoreKernel
from heedful.attention.lowered import LoweredAdditive, LoweredScore
from heedful.cpu.derivatives import differentiable_by
from heedful.errors import ShapeError

ROWS: Final = 32
"""Queries of a tile of scores, and rows of a tile of gradients."""
COLUMNS: Final = 64
"""Keys of a tile of scores; a block of keys is a multiple of it."""

QUICK: Final = 21.0
"""Largest sum for which the product of two denominators of the quick form stays in range."""
LARGE: Final = 0.5
"""Sum that a feature must reach somewhere for the error of the quick form to be negligible."""
MANY: Final = 128
"""Number of features from which constant errors are no larger than those of tanh in float32."""
BUSY: Final = 42
"""Number of tiles per launch, if there are as many: fewer would leave the device idle, more need memory."""
FEW_KEYS: Final = 512
"""Number of keys that are always one block, because launches would take longer than its memory is worth."""


@final
class TritonAdditiveScores(ScoreKernel):
    """Additive scores in exponential form on a GPU, compiled by Triton."""

    name = "additive_triton"
    standing = UNTIMED

    def supports(self, request: Request) -> str | None:
        if request.pairs is not LoweredAdditive:
            return "only additive scores"
        return supports_device(request.mode, request.device, request.dtype)

    def declines_auto(self, request: Request) -> str | None:
        return against_auto(request.device, request.num_numbers)

    def scores(self, pairs: LoweredScore) -> tuple[Tensor, Tensor | None]:
        if not isinstance(pairs, LoweredAdditive):
            raise TypeError(f"additive_triton: got {type(pairs).__name__}")
        return additive_scores(pairs.query, pairs.key, pairs.vector), None

    def numbers_per_score(self, pairs: LoweredScore) -> int:
        return 1


def additive_scores(query: Tensor, key: Tensor, vector: Tensor) -> Tensor:
    """Score every query against every key: score_ij = vector . tanh(query_i + key_j).

    Bahdanau, Cho and Bengio 2015, arXiv:1409.0473, section A.1.2, after both projections. Computed in float32 at least;
    the same to the bit in every run on one device. NaN and infinities give what the formula gives.
    Gradients of gradients are those of the formula, [query, key, hidden] in memory.

    Args:
        query: [*batch, query, hidden] on a GPU, or anywhere in Triton's interpreter.
        key: [*batch, key, hidden]; leading axes broadcast without copies.
        vector: [hidden].

    Returns:
        [*batch, query, key] in the type that query, key and vector promote to.

    Raises:
        ShapeError: hidden sizes differ, or leading axes do not broadcast.

    Cost: query * key * hidden times three and a half to six operations and half a reciprocal, gradients twice six and a
    half; memory six numbers for each of query and key beside the scores (of a block of the keys, where there are many),
    and for gradients one each for every element of the batch.
    """
    batch = _require_shapes(query, key, vector)
    dtype = torch.promote_types(torch.promote_types(query.dtype, key.dtype), vector.dtype)
    if not (query.numel() and key.numel() and math.prod(batch)):
        # Nothing to be fast at, but gradients of the right shapes to be made.
        return additive_formula(query, key, vector).to(dtype)
    # Conversions stand outside, so that their gradients are PyTorch's.
    real = torch.promote_types(dtype, torch.float32)
    scores: Tensor = _AdditiveScores.apply(query.to(real), key.to(real), vector.to(real), batch)  # pyright: ignore
    return scores.to(dtype)


@final
class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, query: Tensor, key: Tensor, vector: Tensor, batch: tuple[int, ...]
    ) -> Tensor:
        ctx.save_for_backward(query, key, vector)
        ctx.batch = batch
        scores = query.new_empty((math.prod(batch), query.shape[-2], key.shape[-2]))
        index = batch_indices(batch, query.device, query.shape[:-2], key.shape[:-2])
        fill_scores(scores, _flat(query), _flat(key), vector, index)
        return scores.reshape(*batch, *scores.shape[1:])

    @staticmethod
    @differentiable_by(lambda _, *inputs: additive_formula(*inputs), num_inputs=3)
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        query, key, vector = ctx.saved_tensors
        index = batch_indices(ctx.batch, query.device, query.shape[:-2], key.shape[:-2])
        grad = grad_outputs[0].reshape(-1, query.shape[-2], key.shape[-2])
        sums = Gradients.zeros(query, key, vector, math.prod(ctx.batch), ctx.needs_input_grad)
        add_gradients(sums, grad, _flat(query), _flat(key), vector, index)
        return *sums.finish(query, key, vector, ctx.batch), None


@final
@dataclass(frozen=True)
class Sight:
    """Intervals of keys of all queries; tiles outside them are skipped."""

    start: Tensor
    """[rows batch, query] int64 first keys."""
    stop: Tensor
    """[rows batch, query] int64 index after the last key."""


@final
@dataclass(frozen=True)
class Gradients:
    """Sums of gradients over strips of queries, for each batch element; None = not needed."""

    query: Tensor | None
    """[batch, query, padded hidden], without the factor of the vector."""
    key: Tensor | None
    """[batch, key, padded hidden], without the factor of the vector."""
    vector: Tensor | None
    """[padded hidden] float64."""

    @staticmethod
    def zeros(query: Tensor, key: Tensor, vector: Tensor, num_elements: int, wanted: tuple[bool, ...]) -> "Gradients":
        """Return sums of zero.

        Args:
            query: [*, query, hidden].
            key: [*, key, hidden].
            vector: [hidden].
            wanted: whether the gradients of query, key and vector are needed; the vector's come with the queries'.
        """
        size = -(-len(vector) // _programs().BLOCK.value) * _programs().BLOCK.value
        has_query, has_key, has_vector = wanted[:3]
        return Gradients(
            vector.new_zeros(num_elements, query.shape[-2], size) if has_query or has_vector else None,
            vector.new_zeros(num_elements, key.shape[-2], size) if has_key else None,
            vector.new_zeros(size, dtype=torch.float64) if has_vector else None,
        )

    def finish(
        self, query: Tensor, key: Tensor, vector: Tensor, batch: tuple[int, ...]
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Multiply by the vector, and sum over batch elements that share a row.

        Args:
            query: [*#batch, query, hidden].
            key: [*#batch, key, hidden].
            vector: [hidden].
            batch: leading axes of the scores.

        Returns:
            Gradients of query, key and vector, of their shapes.
        """

        def reduce(own: Tensor | None, like: Tensor) -> Tensor | None:
            if own is None:
                return None
            own = own[..., : len(vector)]
            own = own.mul_(vector)
            return own.reshape(*batch, *like.shape[-2:]).sum_to_size(like.shape)

        by_vector = None if self.vector is None else self.vector[: len(vector)].to(vector.dtype)
        return reduce(self.query, query), reduce(self.key, key), by_vector


def fill_scores(
    scores: Tensor,
    query: Tensor,
    key: Tensor,
    vector: Tensor,
    index: Tensor,
    sight: Sight | None = None,
    first_query: int = 0,
) -> None:
    """Score a strip of queries against all keys.

    Args:
        scores: [batch, query, key], out; with `sight` only tiles in which a query sees a key are written.
        query: [query batch, query, hidden] the strip.
        key: [key batch, key, hidden].
        vector: [hidden] float32 or float64, as the scores.
        index: [2 or 6, batch] int64 from `places`.
        first_query: number of the strip's first query among all.
    """
    num_elements, num_queries = scores.shape[:2]
    row_tiles = -(-num_queries // ROWS)
    start, stop, total = _from(sight, first_query, index)
    for block in _blocks(num_elements * row_tiles, key.shape[-2]):
        operands = _prepare(query, key[:, block], vector, is_transposed=True)
        queries, keys, _ = operands
        num_keys, hidden = keys.shape[-1], keys.shape[-2]
        planes, sizes = (queries[0].numel(), keys[0].numel()), (num_queries, num_keys, hidden)
        _programs().score_tile[(num_elements * row_tiles * -(-num_keys // COLUMNS),)](
            *operands, index, start, stop, scores[:, :, block], num_elements, *planes, *sizes,
            *scores.stride()[:2], block.start, total, HAS_ROWS=sight is not None, ROWS=ROWS, COLUMNS=COLUMNS,
        )  # fmt: skip
        # Free one block before the next: two at once would need too much memory.
        del operands, queries, keys


def add_gradients(
    sums: Gradients,
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    vector: Tensor,
    index: Tensor,
    sight: Sight | None = None,
    first_query: int = 0,
) -> None:
    """Add the gradients of a strip of queries.

    Args:
        grad: [batch, query, key] of the strip's scores; with `sight`, read where tiles of queries see keys.
        query: [query batch, query, hidden], the strip.
        key: [key batch, key, hidden].
        vector: [hidden].
        index: [2 or 6, batch] int64 from `places`.
        first_query: number of the strip's first query among all.
    """
    num_elements, num_queries = grad.shape[:2]
    for block in _blocks(num_elements * -(-num_queries // ROWS), key.shape[-2]):
        operands = _prepare(query, key[:, block], vector, is_transposed=False)
        part = grad[:, :, block]
        if sums.query is not None:
            _add_side(sums, operands, part, index, (sight, first_query, block.start), is_query=True)
        if sums.key is not None:
            _add_side(sums, operands, part, index, (sight, first_query, block.start), is_query=False)
        # Free one block before the next: two at once would need too much memory.
        del operands


def _add_side(
    sums: Gradients,
    operands: tuple[Tensor, Tensor, Tensor],
    grad: Tensor,
    index: Tensor,
    where: tuple[Sight | None, int, int],
    is_query: bool,
) -> None:
    """Add the gradients of the queries, or of the keys, from the scores of a strip of queries and a block of keys."""
    queries, keys, features = operands
    sight, first_query, first_key = where
    start, stop, total = _from(sight, first_query, index)
    if is_query:
        own_grad, own, other, outer, first_own, first_other = sums.query, queries, keys, grad, first_query, first_key
    else:
        own_grad, own, other, outer, first_own, first_other = sums.key, keys, queries, grad.mT, first_key, 0
        index = torch.cat((index[:2].flip(0), index[2:]))
    if own_grad is None:
        return
    num_elements = grad.shape[0]
    (num_rows, hidden), num_others = own.shape[-2:], other.shape[-2]
    num_tiles, has_vector = -(-num_rows // ROWS), is_query and sums.vector is not None
    shares = own.new_empty((num_elements * num_tiles if has_vector else 1, hidden))
    sizes = (own[0].numel(), other[0].numel(), num_rows, num_others, hidden, *outer.stride())
    _programs().gradient_tile[(num_elements * num_tiles * (hidden // _programs().BLOCK.value),)](
        own, other, features, index, outer, start, stop, own_grad, shares, num_elements, *sizes,
        own_grad.shape[1], first_own, first_other, total,
        ROWS=ROWS, HAS_VECTOR=has_vector, HAS_ROWS=sight is not None, IS_QUERY=is_query,
    )  # fmt: skip
    if has_vector and sums.vector is not None:
        sums.vector.add_(shares.sum(dim=0, dtype=torch.float64))


def batch_indices(batch: tuple[int, ...], device: torch.device, *leading: tuple[int, ...]) -> Tensor:
    """Return the index into its own leading axes of each element of a batch.

    Args:
        device: device on which the indices are created; a copy from the host could not be part of a recorded graph.
        leading: of each part, broadcastable to them.

    Returns:
        [part, batch] int64.
    """
    indices = {
        lead: torch.arange(math.prod(lead), device=device).reshape(lead).expand(batch).reshape(-1)
        for lead in dict.fromkeys(leading)
    }
    return torch.stack([indices[lead] for lead in leading])


def _flat(rows: Tensor) -> Tensor:
    return rows.reshape(-1, *rows.shape[-2:])


def _blocks(num_row_tiles: int, num_keys: int) -> list[slice]:
    """Blocks of keys: all at once where they are few; else as few as keep the device busy, each with its operands."""
    size = max(FEW_KEYS, -(-BUSY // max(1, num_row_tiles)) * COLUMNS)
    return [slice(first, min(first + size, num_keys)) for first in range(0, num_keys, size)]


def _from(sight: Sight | None, first_query: int, index: Tensor) -> tuple[Tensor, Tensor, int]:
    if sight is None:
        return index, index, 0
    return sight.start[:, first_query:], sight.stop[:, first_query:], sight.start.shape[1]


def _prepare(query: Tensor, key: Tensor, vector: Tensor, is_transposed: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Operands [3, batch, row, hidden] of both sides (transposed: [3, batch, hidden, row]) and features [3, hidden]."""
    programs, size = _programs(), vector.shape[0]
    width = -(-size // programs.BLOCK.value) * programs.BLOCK.value
    # NaN propagates through the extremes.
    ranges = [end for part in (query, key) for end in part.reshape(-1, size).aminmax(dim=0)]
    moves = vector.new_empty(2, size, dtype=torch.float64)
    features = vector.new_empty(3, width)
    programs.feature_tile[(1,)](
        *ranges, vector.contiguous(), moves, features, size, width,
        QUICK=QUICK, LARGE=LARGE, IS_MANY=size >= MANY, WIDTH=1 << (width - 1).bit_length(),
    )  # fmt: skip
    operands: list[Tensor] = []
    for part, move in zip((query, key), moves, strict=True):
        num_rows = part.shape[1]
        operand = vector.new_empty(3, len(part), *((width, num_rows) if is_transposed else (num_rows, width)))
        grid = len(part) * -(-num_rows // ROWS) * (width // programs.BLOCK.value)
        programs.operand_tile[(grid,)](
            part, move, operand, num_rows, size, width, *part.stride(), operand[0].numel(),
            IS_TRANSPOSED=is_transposed, ROWS=ROWS,
        )  # fmt: skip
        operands.append(operand)
    return operands[0], operands[1], features


def _require_shapes(query: Tensor, key: Tensor, vector: Tensor) -> tuple[int, ...]:
    size = query.shape[-1] if query.dim() >= 2 else -1
    if key.dim() < 2 or key.shape[-1] != size or vector.shape != (size,):
        raise ShapeError(
            f"additive scores: query {list(query.shape)}, key {list(key.shape)} and vector {list(vector.shape)} "
            "must end in the same size"
        )
    try:
        return torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    except RuntimeError as error:
        raise ShapeError(
            f"additive scores: leading axes {list(query.shape[:-2])} of query and {list(key.shape[:-2])} of key do not "
            "broadcast"
        ) from error


@cache
def _programs() -> Any:
    """Triton kernels; imported here because Triton is not installed everywhere."""
    return importlib.import_module("heedful.attention.kernels.additive.triton_kernels")
