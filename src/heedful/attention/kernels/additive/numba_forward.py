"""Numba kernels of additive scores, over tiles of four rows."""

from typing import Any, Final

import numpy as np
from numba import njit

from heedful.attention.kernels.additive.numba_exponentials import UNROUNDING, exponentials, limit_queries
from heedful.attention.kernels.additive.numba_shapes import are_operands_right, are_tiles_right
from heedful.cpu.numba_cache import cached_njit

_HALF: Final = np.float32(0.5)
_ONE: Final = np.float32(1.0)

# Typed, because an untyped literal would trigger another compilation.
_ZERO: Final[Any] = np.int64(0)
_HALVED: Final[Any] = np.int64(-1)


@njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _lost(rounding: np.ndarray, weights: np.ndarray, lost: np.ndarray) -> None:
    """Rounding correction of each row's scores: the sum over slots of weights * r / 2."""
    for i in range(rounding.shape[0]):
        total = lost.dtype.type(0)
        for s in range(rounding.shape[1]):
            total += weights[s] * np.float32(rounding[i, s])
        lost[i] = total * UNROUNDING


@njit(error_model="numpy", fastmath={"contract"})
def _two(a: Any, b: Any, c: Any, d: Any, v: Any, w: Any, both: Any) -> Any:
    """Weighted tanh of the pair A = a, B = b plus that of A = c, B = d; `both` is v + w."""
    f = a * b - _HALF
    g = c * d - _HALF
    whole = f + _ONE
    return (v * f + g * (both * f + w)) / (whole * g + whole)


@njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _score_four(a: np.ndarray, b: np.ndarray, weights: np.ndarray, sums: np.ndarray) -> None:
    """Scores [4, key] of A [4, slot] and B [key, slot]."""
    half = a.shape[1] // 2
    v, w, both = weights[:half], weights[half : 2 * half], weights[2 * half :]
    a0, a1, a2, a3 = a[0, :half], a[1, :half], a[2, :half], a[3, :half]
    c0, c1, c2, c3 = a[0, half:], a[1, half:], a[2, half:], a[3, half:]
    for j in range(b.shape[0]):
        s0 = s1 = s2 = s3 = sums.dtype.type(0)
        b0, d0 = b[j, :half], b[j, half:]
        for k in range(half):
            s0 += _two(a0[k], b0[k], c0[k], d0[k], v[k], w[k], both[k])
            s1 += _two(a1[k], b0[k], c1[k], d0[k], v[k], w[k], both[k])
            s2 += _two(a2[k], b0[k], c2[k], d0[k], v[k], w[k], both[k])
            s3 += _two(a3[k], b0[k], c3[k], d0[k], v[k], w[k], both[k])
        sums[0, j] = s0
        sums[1, j] = s1
        sums[2, j] = s2
        sums[3, j] = s3


@njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _score_one(a: np.ndarray, b: np.ndarray, weights: np.ndarray, sums: np.ndarray) -> None:
    """Scores [key] of A [slot] and B [key, slot]."""
    half = a.shape[0] // 2
    v, w, both = weights[:half], weights[half : 2 * half], weights[2 * half :]
    a0, c0 = a[:half], a[half:]
    num_keys = b.shape[0]
    for j in range(0, num_keys - 3, 4):
        s0 = s1 = s2 = s3 = sums.dtype.type(0)
        b0, b1, b2, b3 = b[j, :half], b[j + 1, :half], b[j + 2, :half], b[j + 3, :half]
        d0, d1, d2, d3 = b[j, half:], b[j + 1, half:], b[j + 2, half:], b[j + 3, half:]
        for k in range(half):
            s0 += _two(a0[k], b0[k], c0[k], d0[k], v[k], w[k], both[k])
            s1 += _two(a0[k], b1[k], c0[k], d1[k], v[k], w[k], both[k])
            s2 += _two(a0[k], b2[k], c0[k], d2[k], v[k], w[k], both[k])
            s3 += _two(a0[k], b3[k], c0[k], d3[k], v[k], w[k], both[k])
        sums[j] = s0
        sums[j + 1] = s1
        sums[j + 2] = s2
        sums[j + 3] = s3
    for j in range(num_keys // 4 * 4, num_keys):
        s0 = sums.dtype.type(0)
        b0, d0 = b[j, :half], b[j, half:]
        for k in range(half):
            s0 += _two(a0[k], b0[k], c0[k], d0[k], v[k], w[k], both[k])
        sums[j] = s0


@njit(error_model="numpy", fastmath={"contract"})
def _add_lost(sums: np.ndarray, factor: Any, lost: np.ndarray, lost_key: np.ndarray) -> None:
    """Add what rounding took from scores [row, key], and scale them."""
    for i in range(sums.shape[0]):
        for j in range(sums.shape[1]):
            sums[i, j] = factor * (sums[i, j] + (lost[i] + lost_key[j]))


@cached_njit("contract")
def scores(
    query: np.ndarray,
    query_index: np.ndarray,
    query_bounds: np.ndarray,
    key: np.ndarray,
    key_index: np.ndarray,
    key_bounds: np.ndarray,
    exp_key: np.ndarray,
    exp_rounding: np.ndarray,
    order: np.ndarray,
    weights: np.ndarray,
    scale: float,
    start: int,
    stop: int,
    score: np.ndarray,
) -> bool:
    """Score some tiles of four rows.

    Tiles are numbered across the batch; the last tile of an element may have fewer rows. The sums of a tile always have
    the same order, so no score depends on the thread that computes it.

    Args:
        query: [query batch, row, hidden].
        query_index: [batch] int64 index into the query batch of each batch element.
        query_bounds: [3, slot] of `limit_queries`.
        key: [key batch, key, hidden]; ignored where `exp_key` has elements.
        key_index: [batch] int64.
        key_bounds: [3, slot] of `plan`.
        exp_key: [key batch, key, slot] B; [0, 0, 0] to compute it here, anew for every element.
        exp_rounding: as `exp_key`, int16.
        order: [slot].
        weights: [3 * slot / 2] of `limit_queries`.
        start: first tile.
        stop: index after the last tile.
        score: [batch, row, key] out.

    Returns:
        Whether shapes, indices and tiles are right; if not, nothing was computed.
    """
    num_rows, num_keys, num_slots = score.shape[1], score.shape[2], order.shape[0]
    num_tiles = (num_rows + 3) // 4
    queries, keys, exponents = (query, query_index), (key, key_bounds), (exp_key, exp_rounding, key_index)
    are_bounds_right = query_bounds.shape[1] == num_slots and are_tiles_right(query_bounds, weights, start, stop, score)
    if not are_bounds_right or not are_operands_right(queries, keys, exponents, order, score):
        return False
    has_exp_key = exp_key.shape[0] > 0
    scratch = np.empty((0 if has_exp_key else num_keys, num_slots), score.dtype)
    scratch_rounding = np.empty((0 if has_exp_key else num_keys, num_slots), np.int16)
    a, rounding = np.empty((4, num_slots), score.dtype), np.empty((4, num_slots), np.int16)
    lost, lost_key = np.empty(4, score.dtype), np.empty(num_keys, score.dtype)
    factor, present = score.dtype.type(scale), -1
    for tile in range(start, stop):
        element = tile // num_tiles
        source = key_index[element]
        b, b_rounding = (exp_key[source], exp_rounding[source]) if has_exp_key else (scratch, scratch_rounding)
        if source != present:
            if not has_exp_key:
                exponentials(key[source], order, key_bounds, _ZERO, _ZERO, scratch, scratch_rounding)
            _lost(b_rounding, weights, lost_key)
            present = source
        row = 4 * (tile - element * num_tiles)
        count = min(4, num_rows - row)
        rows = query[query_index[element], row : row + count]
        exponentials(rows, order, query_bounds, _HALVED, _ZERO, a[:count], rounding[:count])
        _lost(rounding[:count], weights, lost)
        sums = score[element, row : row + count]
        if count == 4:
            _score_four(a, b, weights, sums)
        else:
            for i in range(count):
                _score_one(a[i], b, weights, sums[i])
        _add_lost(sums, factor, lost, lost_key)
    return True


@cached_njit()
def score_all(
    query: np.ndarray,
    query_index: np.ndarray,
    vector: np.ndarray,
    key: np.ndarray,
    key_index: np.ndarray,
    key_bounds: np.ndarray,
    exp_key: np.ndarray,
    exp_rounding: np.ndarray,
    centre: np.ndarray,
    lowest: np.ndarray,
    highest: np.ndarray,
    order: np.ndarray,
    limit: float,
    saturated: float,
    score: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float, np.ndarray] | None:
    """Run `limit_queries` and all tiles of `scores` in one call.

    Args:
        query: [query batch, row, hidden].
        query_index: [batch] int64.
        vector: [hidden].
        key: [key batch, key, hidden]; ignored where `exp_key` has elements.
        key_index: [batch] int64.
        key_bounds: [3, slot] of `plan`.
        exp_key: [key batch, key, slot] B, or [0, 0, 0].
        exp_rounding: as `exp_key`, int16.
        centre: [hidden] of `plan`, like the next three.
        lowest: [hidden].
        highest: [hidden].
        order: [slot].
        limit: see numba_kernels.py.
        saturated: see numba_kernels.py.
        score: [batch, row, key] out.

    Returns:
        The result of `limit_queries`; None if shapes or indices are wrong, and nothing was computed.
    """
    queries, keys, exponents = (query, query_index), (key, key_bounds), (exp_key, exp_rounding, key_index)
    is_vector_right = vector.shape[0] == centre.shape[0] == lowest.shape[0] == highest.shape[0] == query.shape[2]
    if not is_vector_right or not are_operands_right(queries, keys, exponents, order, score):
        return None
    rows = query.reshape((query.shape[0] * query.shape[1], query.shape[2]))
    bounds, weights, scale, left_out = limit_queries(rows, vector, centre, lowest, highest, order, limit, saturated)
    scores(
        query,
        query_index,
        bounds,
        key,
        key_index,
        key_bounds,
        exp_key,
        exp_rounding,
        order,
        weights,
        scale,
        _ZERO,
        score.shape[0] * ((score.shape[1] + 3) // 4),
        score,
    )
    return bounds, weights, scale, left_out
