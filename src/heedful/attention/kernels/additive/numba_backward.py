"""Numba kernels of the gradients of additive scores, over blocks of slots."""

from typing import Any, Final

import numpy as np
from numba import njit

from heedful.attention.kernels.additive.numba_exponentials import BLOCK, UNROUNDING, exponentials
from heedful.attention.kernels.additive.numba_shapes import are_operands_right, are_sums_right
from heedful.cpu.numba_cache import cached_njit

# Keys, and groups of four rows, per pass: partial sums stay in the first-level cache, and sums of short sums round less
# than one long sum.
_KEYS: Final = 64
_FOURS: Final = 16

_HALF: Final = np.float32(0.5)
_ONE: Final = np.float32(1.0)

# Typed, because an untyped literal would trigger another compilation.
_ZERO: Final[Any] = np.int64(0)
_HALVED: Final[Any] = np.int64(-1)


@njit(inline="always")
def _differentiate_four(grad: Any, i: Any, first_key: Any, width: Any, tile: Any, keys: Any, sums: Any) -> None:
    """Gradients of four rows, A in `tile`, and `width` keys: add to the sums in `tile` and to those of keys."""
    stop = first_key + width
    row0, row1, row2, row3 = (
        grad[i, first_key:stop],
        grad[i + 1, first_key:stop],
        grad[i + 2, first_key:stop],
        grad[i + 3, first_key:stop],
    )
    for j in range(width):
        g0, g1, g2, g3 = row0[j], row1[j], row2[j], row3[j]
        for k in range(BLOCK):
            f0 = tile[4 * BLOCK + k] * keys[j, k] - _HALF
            f1 = tile[5 * BLOCK + k] * keys[j, k] - _HALF
            f2 = tile[6 * BLOCK + k] * keys[j, k] - _HALF
            f3 = tile[7 * BLOCK + k] * keys[j, k] - _HALF
            t0 = f0 / (f0 + _ONE)
            t1 = f1 / (f1 + _ONE)
            t2 = f2 / (f2 + _ONE)
            t3 = f3 / (f3 + _ONE)
            p0 = g0 * t0
            p1 = g1 * t1
            p2 = g2 * t2
            p3 = g3 * t3
            q0 = g0 - p0 * t0
            q1 = g1 - p1 * t1
            q2 = g2 - p2 * t2
            q3 = g3 - p3 * t3
            tile[k] += q0
            tile[BLOCK + k] += q1
            tile[2 * BLOCK + k] += q2
            tile[3 * BLOCK + k] += q3
            sums[j, k] += (q0 + q1) + (q2 + q3)
            tile[8 * BLOCK + k] += (p0 + p1) + (p2 + p3)


@njit(inline="always")
def _differentiate_fours(
    a: Any,
    b: Any,
    v: Any,
    grad: Any,
    slot: Any,
    a_grad: Any,
    b_grad: Any,
    v_grad: Any,
    tile: Any,
    keys: Any,
    sums: Any,
) -> None:
    """Gradients of `BLOCK` slots from `slot` on, of one batch element, for its rows in complete groups of four."""
    num_fours = grad.shape[0] // 4
    zero = tile.dtype.type(0)
    for first_key in range(0, grad.shape[1], _KEYS):
        width = min(_KEYS, grad.shape[1] - first_key)
        for j in range(width):
            row = b[first_key + j]
            for k in range(BLOCK):
                keys[j, k] = row[k]
        for first_four in range(0, num_fours, _FOURS):
            for j in range(width):
                for k in range(BLOCK):
                    sums[j, k] = zero
            for four in range(first_four, min(first_four + _FOURS, num_fours)):
                for r in range(4):
                    row = a[4 * four + r]
                    for k in range(BLOCK):
                        tile[r * BLOCK + k] = zero
                        tile[(4 + r) * BLOCK + k] = row[k]
                for k in range(BLOCK):
                    tile[8 * BLOCK + k] = zero
                _differentiate_four(grad, 4 * four, first_key, width, tile, keys, sums)
                for r in range(4):
                    row = a_grad[4 * four + r, slot : slot + BLOCK]
                    for k in range(BLOCK):
                        row[k] += v[k] * tile[r * BLOCK + k]
                for k in range(BLOCK):
                    v_grad[k] += tile[8 * BLOCK + k]
            for j in range(width):
                row = b_grad[first_key + j, slot : slot + BLOCK]
                for k in range(BLOCK):
                    row[k] += v[k] * sums[j, k]


@njit(inline="always")
def _differentiate_one(
    a: Any, b: Any, v: Any, g: Any, slot: Any, a_grad: Any, b_grad: Any, v_grad: Any, tile: Any, is_alone: Any
) -> None:
    """Gradients of one row of one batch element, slots from `slot` on; `is_alone`: no other row adds to `b_grad`."""
    size = b.shape[1]
    zero = tile.dtype.type(0)
    row_grad = a_grad[slot : slot + size]
    own, sums, v_sums = tile[:size], tile[size : 2 * size], tile[2 * size : 3 * size]
    for k in range(size):
        own[k] = a[k]
    for first_key in range(0, b.shape[0], _KEYS):
        for k in range(size):
            sums[k] = zero
            v_sums[k] = zero
        for j in range(first_key, min(first_key + _KEYS, b.shape[0])):
            key, key_grad = b[j], b_grad[j, slot : slot + size]
            g0 = g[j]
            if is_alone:
                for k in range(size):
                    f = own[k] * key[k] - _HALF
                    t = f / (f + _ONE)
                    p = g0 * t
                    q = g0 - p * t
                    sums[k] += q
                    v_sums[k] += p
                    key_grad[k] = v[k] * q
            else:
                for k in range(size):
                    f = own[k] * key[k] - _HALF
                    t = f / (f + _ONE)
                    p = g0 * t
                    q = g0 - p * t
                    sums[k] += q
                    v_sums[k] += p
                    key_grad[k] += v[k] * q
        for k in range(size):
            row_grad[k] += v[k] * sums[k]
            v_grad[k] += v_sums[k]


@njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _sum_both_ways(grad: np.ndarray, of_rows: np.ndarray, of_keys: np.ndarray) -> None:
    """Sums of rows and of columns."""
    for j in range(grad.shape[1]):
        of_keys[j] = 0
    for i in range(grad.shape[0]):
        row = grad[i]
        total = grad.dtype.type(0)
        for j in range(grad.shape[1]):
            total += row[j]
            of_keys[j] += row[j]
        of_rows[i] = total


@njit(inline="always")
def _return_lost(a_rounding: Any, of_rows: Any, b_rounding: Any, of_keys: Any, v_grad: Any, sums: Any) -> None:
    """Add the rounding term sum_i r_i / 2 sum_j g_ij to the gradient of the weights; few digits suffice."""
    size = len(v_grad)
    for k in range(size):
        sums[k] = 0
    for rounding, totals in ((a_rounding, of_rows), (b_rounding, of_keys)):
        for i in range(len(totals)):
            row, total = rounding[i], totals[i] * UNROUNDING
            for k in range(size):
                sums[k] += total * row[k]
    for k in range(size):
        v_grad[k] += sums[k]


@njit(inline="always")
def _clear(sums: Any, start: Any, stop: Any, slot: Any, width: Any, batch: Any) -> None:
    """Zero the sums that elements `start` to `stop` add to; all sums if elements share them."""
    for source in range(start if len(sums) == batch else 0, stop if len(sums) == batch else len(sums)):
        for i in range(sums.shape[1]):
            row = sums[source, i, slot : slot + width]
            for k in range(width):
                row[k] = 0


@njit
def _aligned(num_rows: int, size: int, like: np.ndarray) -> np.ndarray:
    """Array that starts at a cache line: vectors that straddle two lines are slow."""
    line = 64 // like.itemsize
    memory = np.empty(num_rows * size + line, like.dtype)
    first = (-(memory.ctypes.data // like.itemsize)) % line
    return memory[first : first + num_rows * size].reshape((num_rows, size))


@njit
def _pair(num_rows: int, width: int, like: np.ndarray) -> Any:
    """Arrays for exponentials and their roundings."""
    return _aligned(num_rows, width, like), np.empty((num_rows, width), np.int16)


@njit
def _room(num_rows: int, num_keys: int, width: int, like: np.ndarray) -> Any:
    """Arrays of sums.

    A, the sums of four rows and the sum of the weights lie in one array at offsets known at compile time, so that the
    compiler need not check whether they overlap.
    """
    tile = _aligned(1, max(9 * BLOCK, 3 * width), like)[0]
    of_rows, of_keys = np.empty(num_rows, like.dtype), np.empty(num_keys, like.dtype)
    return of_rows, of_keys, tile, _aligned(_KEYS, BLOCK, like), _aligned(_KEYS, BLOCK, like)


@njit(inline="always")
def _copy(rows: Any, roundings: Any, slot: Any, block: Any, block_rounding: Any) -> None:
    for j in range(block.shape[0]):
        row, rounding = rows[j, slot:], roundings[j, slot:]
        for k in range(block.shape[1]):
            block[j, k] = row[k]
            block_rounding[j, k] = rounding[k]


@njit(error_model="numpy", fastmath={"contract"})
def _add_gradients(
    queries: Any, keys: Any, exponents: Any, order: Any, weights: Any, grad: Any, ranges: Any, sums: Any
) -> None:
    """Gradients of `gradients`, whose arguments come in groups, once they are known to be right."""
    query, query_index, query_bounds = queries
    key_index, key, key_bounds = keys
    exp_key, exp_rounding, exp_index = exponents
    start, stop, start_slot, stop_slot = ranges
    query_grad, key_grad, weights_grad = sums
    num_elements, num_rows, num_keys = grad.shape
    width = BLOCK if num_rows >= 4 else stop_slot - start_slot
    is_alone = num_rows == 1 and len(key_grad) == num_elements
    a, a_rounding = _pair(num_rows, width, grad)
    scratch, scratch_rounding = _pair(num_keys, width, grad)
    of_rows, of_keys, tile, scaled, totals = _room(num_rows, num_keys, width, grad)
    for slot in range(start_slot, stop_slot, width):
        v, v_grad = weights[slot : slot + width], weights_grad[slot : slot + width]
        _clear(query_grad, start, stop, slot, width, num_elements)
        _clear(key_grad, stop if is_alone else start, stop, slot, width, num_elements)
        present = -1
        for element in range(start, stop):
            source, target, own = key_index[element], query_index[element], exp_index[element]
            b, b_rounding = scratch, scratch_rounding
            if len(exp_key) and width == len(order):
                b, b_rounding = exp_key[own], exp_rounding[own]
            elif len(exp_key):
                _copy(exp_key[own], exp_rounding[own], slot, scratch, scratch_rounding)
            elif source != present:
                exponentials(key[source], order, key_bounds, _ZERO, slot, scratch, scratch_rounding)
                present = source
            exponentials(query[target], order, query_bounds, _HALVED, slot, a, a_rounding)
            g, a_grad, b_grad = grad[element], query_grad[target], key_grad[source]
            _sum_both_ways(g, of_rows, of_keys)
            if num_rows >= 4:
                _differentiate_fours(a, b, v, g, slot, a_grad, b_grad, v_grad, tile, scaled, totals)
            for i in range(num_rows // 4 * 4, num_rows):
                _differentiate_one(a[i], b, v, g[i], slot, a_grad[i], b_grad, v_grad, tile, is_alone)
            _return_lost(a_rounding, of_rows, b_rounding, of_keys, v_grad, tile)


@cached_njit("contract")
def gradients(
    query: np.ndarray,
    query_index: np.ndarray,
    query_bounds: np.ndarray,
    key: np.ndarray,
    key_index: np.ndarray,
    key_bounds: np.ndarray,
    exp_key: np.ndarray,
    exp_rounding: np.ndarray,
    exp_index: np.ndarray,
    order: np.ndarray,
    weights: np.ndarray,
    grad: np.ndarray,
    start: int,
    stop: int,
    start_slot: int,
    stop_slot: int,
    query_grad: np.ndarray,
    key_grad: np.ndarray,
    weights_grad: np.ndarray,
) -> bool:
    """Compute the gradients of some slots and some elements of the batch.

    With t = tanh: weights * sum_j g_ij (1 - t^2) of a query feature, the same over i of a key feature, and
    sum_ij g_ij t of a weight, where t is recomputed. The gradient of a weight is corrected for the rounding of A and B,
    as a score is; the others need no correction, because 1 - t^2 is flat near 0.

    Args:
        query: [query batch, row, hidden].
        query_index: [batch] int64.
        query_bounds: [3, slot] of `limit_queries`.
        key: [key batch, key, hidden]; ignored where `exp_key` has elements.
        key_index: [batch] int64.
        key_bounds: [3, slot] of `plan`.
        exp_key: [exp batch, key, slot] B, or [0, 0, 0].
        exp_rounding: as `exp_key`, int16.
        exp_index: [batch] int64.
        order: [slot].
        weights: [slot] the vector, unscaled.
        grad: [batch, row, key] of the scores.
        start: first element of the batch.
        stop: index after the last element.
        start_slot: first slot, a multiple of `BLOCK`.
        stop_slot: index after the last slot, a multiple of `BLOCK`.
        query_grad: [query batch, row, slot] out: the entries of these slots and elements; of these slots in all
            elements where elements share a query.
        key_grad: [key batch, key, slot] out in the same way.
        weights_grad: [slot] float64, added to.

    Returns:
        Whether shapes, indices and ranges are right; if not, nothing was computed.
    """
    num_elements = len(grad)
    queries, keys, exponents = (query, query_index), (key, key_bounds), (exp_key, exp_rounding, exp_index)
    ranges, sums = (start, stop, start_slot, stop_slot), (query_grad, key_grad, weights_grad)
    is_query_right = query_bounds.shape == (3, order.shape[0]) and query_grad.shape[:2] == query.shape[:2]
    are_sizes_right = is_query_right and len(weights) == len(order) and len(key_index) == num_elements
    if not are_sizes_right or not are_sums_right(key_index, key, weights, ranges, sums):
        return False
    if not are_operands_right(queries, keys, exponents, order, grad):
        return False
    _add_gradients((*queries, query_bounds), (key_index, *keys), exponents, order, weights, grad, ranges, sums)
    return True
