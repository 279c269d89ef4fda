"""Numba kernels of packed attention: heads in and out of packed rows, and softmax.

Numbers are bfloat16, passed as their bits in int16; arithmetic is float32.
"""

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np
from numba import types

from heedful.cpu.checked_kernel import checked
from heedful.cpu.numba_cache import cached_njit
from heedful.cpu.numba_math import FLAGS, exp2, inlined, narrowed, widened
from heedful.cpu.numba_ranges import are_spans_within

_LOG2_E: Final = 1.0 / math.log(2.0)
_LOWEST: Final = np.float32(-127.0)
"""Exponent of two whose power is exactly 0."""
_ZERO: Final = np.float32(0.0)


def _is_taken_within(arguments: tuple[Any, ...], sizes: Mapping[str, int]) -> bool:
    _, column, bias, starts, lengths, first, _ = arguments
    return _are_heads_within(column, bias, (starts, lengths, first), sizes)


def _is_put_within(arguments: tuple[Any, ...], sizes: Mapping[str, int]) -> bool:
    _, starts, lengths, first, column, _, sums = arguments
    return _are_heads_within(column, sums, (starts, lengths, first), sizes)


def _are_heads_within(
    column: int, shifts: np.ndarray, spans: tuple[np.ndarray, np.ndarray, int], sizes: Mapping[str, int]
) -> bool:
    """Whether sequences, and the columns of their heads, lie within the packed rows."""
    size = sizes["head"] * sizes["depth"]
    return (
        0 <= column <= sizes["width"] - size
        and len(shifts) in (0, size)
        and are_spans_within(*spans, sizes["group"], sizes["row"], sizes["position"])
    )


# Indices are unsigned, because indices that could be negative keep loops from being vectorised. A slice per row would
# take longer than the copy.
@inlined()
def _copy(source: np.ndarray, start: int, out: np.ndarray, target: int, size: int) -> None:
    for k in range(size):
        out[np.uint64(target + k)] = source[np.uint64(start + k)]


@inlined()
def _copy_shifted(
    source: np.ndarray, start: int, bias: np.ndarray, shift: int, out: np.ndarray, target: int, size: int
) -> None:
    for k in range(size):
        out[np.uint64(target + k)] = narrowed(widened(source[np.uint64(start + k)]) + bias[np.uint64(shift + k)])


@inlined()
def _add(source: np.ndarray, start: int, sums: np.ndarray, target: int, size: int) -> None:
    for k in range(size):
        sums[np.uint64(target + k)] += widened(source[np.uint64(start + k)])


@checked(
    _is_taken_within,
    rows="row width",
    bias="none or shift",
    starts="sequence",
    lengths="sequence",
    heads="group head position depth",
)
@cached_njit("contract")
def take(
    rows: np.ndarray,
    column: int,
    bias: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    first: int,
    heads: np.ndarray,
) -> None:
    """Lay out heads of consecutive sequences, zeros after each.

    Args:
        rows: [row, feature] of all sequences, one after the other.
        column: where the features of the first head begin.
        bias: [head * depth] float32 that is added, or [0] for none.
        starts: [sequence] first row of each.
        lengths: [sequence] rows of each.
        first: sequence that is laid out first.
        heads: [sequence, head, position, depth] out; zeros beyond the last sequence.
    """
    num_heads, num_positions, depth = heads.shape[1:]
    flat_rows, out, width = rows.reshape(-1), heads.reshape(-1), rows.shape[1]
    for i in range(heads.shape[0]):
        length = lengths[first + i] if first + i < lengths.shape[0] else 0
        row = starts[first + i] if length else 0
        if bias.shape[0]:
            # Iterate over rows within a head, so that the head's part of the bias stays in registers.
            for head in range(num_heads):
                start = row * width + column + head * depth
                target = (i * num_heads + head) * num_positions * depth
                for _ in range(length):
                    _copy_shifted(flat_rows, start, bias, head * depth, out, target, depth)
                    start += width
                    target += depth
        else:
            # Iterate over heads within a row, because a row is contiguous in distant memory.
            for position in range(length):
                start = (row + position) * width + column
                target = (i * num_heads * num_positions + position) * depth
                for _ in range(num_heads):
                    _copy(flat_rows, start, out, target, depth)
                    start += depth
                    target += num_positions * depth
        for head in range(num_heads):
            heads[i, head, length:] = 0


@checked(
    _is_put_within,
    heads="group head position depth",
    starts="sequence",
    lengths="sequence",
    rows="row width",
    sums="none or shift",
)
@cached_njit("contract")
def put(
    heads: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    first: int,
    column: int,
    rows: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Invert `take`.

    Args:
        heads: [sequence, head, position, depth].
        starts: as for `take`, like the next three.
        first: first.
        rows: [row, feature] out; only these sequences and columns are written.
        sums: [head * depth] float32 sums of the rows, added to, or [0] for none.
    """
    num_heads, num_positions, depth = heads.shape[1:]
    flat_heads, out, width = heads.reshape(-1), rows.reshape(-1), rows.shape[1]
    for i in range(min(heads.shape[0], lengths.shape[0] - first)):
        for position in range(lengths[first + i]):
            start = (i * num_heads * num_positions + position) * depth
            target = (starts[first + i] + position) * width + column
            for head in range(num_heads):
                _copy(flat_heads, start, out, target, depth)
                if sums.shape[0]:
                    _add(flat_heads, start, sums, head * depth, depth)
                start += num_positions * depth
                target += depth


@inlined(*FLAGS)
def _weigh(scores: np.ndarray, num_keys: int, scale: Any, row: np.ndarray) -> None:
    """Replace scores by softmax(scale scores) over the first keys, at least one."""
    largest = np.float32(-np.inf)
    for k in range(scores.shape[0]):
        row[k] = widened(scores[k]) * scale if k < num_keys else _NEVER
        largest = max(largest, row[k])
    total = _ZERO
    for k in range(scores.shape[0]):
        power = row[k] - largest
        row[k] = exp2(_LOWEST if power < _LOWEST else power)
        total += row[k]
    factor = np.float32(1.0) / total
    for k in range(scores.shape[0]):
        scores[k] = narrowed(row[k] * factor)


_NEVER: Final = np.float32(-3.0e38)


@checked(
    lambda arguments, _: arguments[3] >= 0,
    scores="group head query key",
    query_lengths="sequence",
    key_lengths="sequence",
)
@cached_njit("contract")
def weigh(
    scores: np.ndarray, query_lengths: np.ndarray, key_lengths: np.ndarray, first: int, is_causal: bool, scale: float
) -> None:
    """Replace scores by weights; zero where a query or a key is beyond its sequence.

    Args:
        scores: [sequence, head, query, key].
        query_lengths: [sequence] lengths of all sequences.
        key_lengths: [sequence] lengths of all sequences.
        first: index of the first sequence in `scores`.
        is_causal: whether a query may attend only keys up to its own position.
    """
    row = np.empty(scores.shape[3], np.float32)
    factor = np.float32(scale * _LOG2_E)
    for i in range(scores.shape[0]):
        is_there = first + i < key_lengths.shape[0]
        num_queries = query_lengths[first + i] if is_there else 0
        num_keys = key_lengths[first + i] if is_there else 0
        for head in range(scores.shape[1]):
            for query in range(scores.shape[2]):
                allowed = min(num_keys, query + 1) if is_causal else num_keys
                if query < num_queries and allowed > 0:
                    _weigh(scores[i, head, query], allowed, factor, row)
                else:
                    scores[i, head, query] = 0


@checked(weights="row key", gradients="row key")
@cached_njit("contract", "reassoc")
def differentiate(weights: np.ndarray, gradients: np.ndarray, scale: float) -> None:
    """Replace the gradients of weights by those of scores.

    Args:
        weights: [row, key] of `weigh`.
        gradients: [row, key] of the weights.
    """
    factor = np.float32(scale)
    for i in range(weights.shape[0]):
        weight, gradient = weights[i], gradients[i]
        mean = _ZERO
        for k in range(weight.shape[0]):
            mean += widened(weight[k]) * widened(gradient[k])
        for k in range(weight.shape[0]):
            gradient[k] = narrowed(widened(weight[k]) * (widened(gradient[k]) - mean) * factor)


@cache
def compile_all() -> None:
    """Compile all loops, or load them from disk; they release the interpreter lock.

    Cost: a few seconds the first time on a machine.
    """
    narrow, whole, count = types.int16, types.int64, types.int64[::1]
    table, heads, wide = narrow[:, ::1], narrow[:, :, :, ::1], types.float32[::1]
    signatures: tuple[tuple[Any, tuple[Any, ...]], ...] = (
        (take, (table, whole, wide, count, count, whole, heads)),
        (put, (heads, count, count, whole, whole, table, wide)),
        (weigh, (heads, count, count, whole, types.boolean, types.float64)),
        (differentiate, (table, table, types.float64)),
    )
    for loop, signature in signatures:
        loop.compile(signature)
