"""Loops over NumPy arrays behind heedful/attention/kernels/additive_cpu.py, compiled by Numba; no PyTorch here.

With A = e^(2 (a + c)) / 2 of a query feature, B = e^(2 (b - c)) of a key feature and F = A B - 1/2,

    tanh(a + b) = F / (1 + F)

so n queries and m keys cost (n + m) exponentials a feature instead of n * m tanh. Two features share a division:

    v tanh + w tanh' = (v F + w G + (v + w) F G) / ((1 + F) (1 + G))

F comes out of one fused multiply-add, so near 0 it is as exact as A and B are, and what they lost in rounding is made
good to first order: `exponentials` keeps the relative error r of each, and sum_h v_h r_h / 2 of the row and of the key
are added to the score. That is all of it near 0, where tanh has slope 1, and too small to matter where tanh is flat.

A *slot* is a place in a row of A or B; `order[slot]` says whose feature is there, -1 = nobody's (A = 1/2, B = 1,
F = 0). Slots s and s + num_slots / 2 share a division. num_slots is a multiple of `BLOCK`, so vectors have no tails.
`limit` bounds a + b, summed over a division, so that nothing overflows; where |a + b| is above `saturated`, tanh is 1
or -1.

Traps of Numba. Flags: 'contract' alone makes the fused multiply-add; 'reassoc', which a sum over lanes needs, would
take F apart, so only functions that do no more than add have it, and the flags of a function stay with its own lines
when it is put into another. No flag says that numbers are finite: NaN must get through. Vectors: an index that might
be negative for all the compiler knows makes it gather, so loops run from 0 over slices. Bounds are not checked.
"""

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numba import njit, types

BLOCK: Final = 64
"""Slots that `gradients` takes at a time; num_slots is a multiple of it."""

# Keys, and fours of rows, that `gradients` takes at a time: what it adds up stays in the nearest cache, and sums of
# short sums lose fewer digits than one long sum.
_KEYS: Final = 64
_FOURS: Final = 16

_HALF: Final = np.float32(0.5)
_ONE: Final = np.float32(1.0)
_TWO: Final = np.float32(2.0)
_LOG2_E2: Final = np.float32(2.0 / math.log(2.0))
# ln 2 in two pieces; the first has so few digits that its product with an exponent of two is exact.
_LN2_HIGH: Final = np.float32(0.693145751953125)
_LN2_LOW: Final = np.float32(math.log(2.0) - 0.693145751953125)
# (e^t - 1 - t) / t^2 for |t| <= ln(2) / 2 with an error of 2^-32 in e^t: interpolation at Chebyshev's nodes.
_C0: Final = np.float32(0.5)
_C1: Final = np.float32(0.16666667)
_C2: Final = np.float32(0.041666456)
_C3: Final = np.float32(0.00833331)
_C4: Final = np.float32(0.0013934532)
_C5: Final = np.float32(0.00019891970)
# What a relative error, at most 1.1 * 2^-24, is multiplied by to fit sixteen bits, and half of the way back.
_ROUNDING: Final = np.float32(29000.0 * 2.0**24)
_UNROUNDING: Final = np.float32(0.5 / (29000.0 * 2.0**24))

# Typed, for a bare number would be compiled for anew.
_ZERO: Final[Any] = np.int64(0)
_HALVED: Final[Any] = np.int64(-1)


def _loop(*flags: str) -> Callable[[Callable[..., Any]], Any]:
    """Compile when first called; keep the result on disk where there is a folder for it."""

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, nogil=True, error_model="numpy", fastmath=set(flags))(function)
        except RuntimeError:
            return njit(nogil=True, error_model="numpy", fastmath=set(flags))(function)

    return compiled


@_loop()
def extremes(rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Find the smallest and largest of each column; NaN where one is not finite.

    Args:
        rows: [row, hidden].
        low: [hidden] out.
        high: [hidden] out.
    """
    zero = rows.dtype.type(0)
    stray = np.zeros(rows.shape[1], rows.dtype)
    for k in range(rows.shape[1]):
        low[k] = np.inf
        high[k] = -np.inf
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            low[k] = min(low[k], rows[i, k])
            high[k] = max(high[k], rows[i, k])
            stray[k] += rows[i, k] * zero
    for k in range(rows.shape[1]):
        if stray[k] != zero:
            low[k] = np.nan
            high[k] = np.nan


@_loop()
def plan(
    key: np.ndarray, query: np.ndarray, limit: float, saturated: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Give every feature a centre and a slot.

    Args:
        key: [row, hidden].
        query: [row, hidden]; without rows queries are taken to reach as far as the keys.
        limit: see above.
        saturated: see above.

    Returns:
        centre [hidden], 0 where keys lie about 0; lowest and highest [hidden] of key - centre, infinite where the
        feature does not fit here; order [slot] int64; bounds [3, slot]: what to add to a key, and where to cut the sum,
        all 0 for a slot that holds B = 1.
    """
    size = key.shape[1]
    centre, lowest, highest = np.zeros(size, key.dtype), np.empty(size, key.dtype), np.empty(size, key.dtype)
    least, most = np.empty(size, key.dtype), np.empty(size, key.dtype)
    extremes(key, lowest, highest)
    extremes(query, least, most)
    near = (limit - 3.0) / 2.0
    is_wide = np.zeros(size, np.bool_)
    num_wide = 0
    for f in range(size):
        spread = highest[f] - lowest[f]
        if not spread <= limit - saturated:
            lowest[f] = -np.inf
            highest[f] = np.inf
            continue
        # Where keys have a sign in common, a middle within a factor of two of all is taken off without an error.
        is_above, is_below = lowest[f] > 0.0, highest[f] < 0.0
        is_aside = (is_above and highest[f] <= 3.0 * lowest[f]) or (is_below and lowest[f] >= 3.0 * highest[f])
        if is_aside or lowest[f] < -near or highest[f] > near:
            centre[f] = lowest[f] + spread * _HALF
            lowest[f] -= centre[f]
            highest[f] -= centre[f]
        reach = most[f] + centre[f] if query.shape[0] else max(highest[f], -lowest[f])
        # A query so far out that tanh is 1 for every key may be moved in; else such a feature needs its own division.
        is_wide[f] = reach + highest[f] > limit / 2.0 and spread > limit / 2.0 - saturated
        num_wide += is_wide[f]
    order = _give_slots(is_wide, num_wide)
    bounds = np.zeros((3, order.shape[0]), key.dtype)
    for s in range(order.shape[0]):
        f = order[s]
        if f >= 0 and highest[f] < np.inf:
            bounds[0, s] = -centre[f]
            bounds[1, s] = -limit
            bounds[2, s] = limit
    return centre, lowest, highest, order, bounds


@njit
def _give_slots(is_wide: np.ndarray, num_wide: int) -> np.ndarray:
    """Slots in the order of features where none is wide; else wide ones alone in a division, the others in pairs."""
    size = is_wide.shape[0]
    divisions = num_wide + (size - num_wide + 1) // 2
    half = (2 * divisions + BLOCK - 1) // BLOCK * BLOCK // 2
    order = np.empty(2 * half, np.int64)
    for s in range(2 * half):
        order[s] = s if s < size and not num_wide else -1
    slot = 0
    waiting = -1
    for f in range(size if num_wide else 0):
        if is_wide[f]:
            order[slot] = f
            slot += 1
        elif waiting < 0:
            waiting = f
        else:
            order[slot] = waiting
            order[half + slot] = f
            waiting = -1
            slot += 1
    if waiting >= 0:
        order[slot] = waiting
    return order


@_loop()
def limit_queries(
    query: np.ndarray,
    vector: np.ndarray,
    centre: np.ndarray,
    lowest: np.ndarray,
    highest: np.ndarray,
    order: np.ndarray,
    limit: float,
    saturated: float,
) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """Say how to take the exponentials of queries, and which features the formula must not be used for.

    Args:
        query: [row, hidden].
        vector: [hidden].
        centre: [hidden] of `plan`, as are the next three.
        lowest: [hidden].
        highest: [hidden].
        order: [slot].
        limit: see above.
        saturated: see above.

    Returns:
        [3, slot] bounds as from `plan`; [3 * slot / 2] the vector over `scale` in slots, then the sums of the two of a
        division; scale, a power of two; [left out] int64 features left out, whose weights are 0.
    """
    half = order.shape[0] // 2
    bounds = np.zeros((3, order.shape[0]), query.dtype)
    weights = np.zeros(3 * half, query.dtype)
    left_out = np.empty(query.shape[1], np.int64)
    num_left_out = 0
    least, most = np.empty(query.shape[1], query.dtype), np.empty(query.shape[1], query.dtype)
    extremes(query, least, most)
    largest = 0.0
    for s in range(order.shape[0]):
        f = order[s]
        if f < 0:
            continue
        is_alone = order[s - half if s >= half else s + half] < 0
        top = min((limit if is_alone else limit / 2.0) - highest[f], limit)
        fits = most[f] + centre[f] <= top or (most[f] < np.inf and top + lowest[f] >= saturated)
        if not (fits and highest[f] < np.inf and abs(vector[f]) < np.inf):
            left_out[num_left_out] = f
            num_left_out += 1
            continue
        bounds[0, s] = centre[f]
        bounds[1, s] = -2.0 * saturated - highest[f]
        bounds[2, s] = top
        weights[s] = vector[f]
        largest = max(largest, abs(vector[f]))
    # So that weights times products of two F stay finite. A power of two changes no digit.
    scale = 2.0 ** (math.frexp(largest)[1] - 1)
    for s in range(2 * half):
        weights[s] /= scale
    for s in range(half):
        weights[2 * half + s] = weights[s] + weights[half + s]
    return bounds, weights, scale, left_out[:num_left_out]


@_loop("contract")
def exponentials(
    rows: np.ndarray,
    order: np.ndarray,
    bounds: np.ndarray,
    exponent: int,
    first_slot: int,
    exponential: np.ndarray,
    rounding: np.ndarray,
) -> None:
    """Compute 2^exponent e^(2 x) of some slots, and in float32 its rounding error.

    Args:
        rows: [row, hidden].
        order: [slot].
        bounds: [3, slot] of `plan` or `limit_queries`.
        exponent: -1 for queries, 0 for keys.
        first_slot: where to start.
        exponential: [row, width] out: from there on.
        rounding: [row, width] int16 out: times 2^-24 / 29000, how much larger the exact value is, relatively; 0 for
            float64, whose last bit nobody misses.
    """
    num_slots = exponential.shape[1]
    own = order[first_slot : first_slot + num_slots]
    shift = bounds[0, first_slot : first_slot + num_slots]
    low = bounds[1, first_slot : first_slot + num_slots]
    high = bounds[2, first_slot : first_slot + num_slots]
    placed = np.zeros(num_slots, rows.dtype)
    num_plain = 0
    while num_plain < num_slots and own[num_plain] == first_slot + num_plain:
        num_plain += 1
    for i in range(rows.shape[0]):
        row = rows[i, first_slot:]
        for s in range(num_plain):
            placed[s] = row[s]
        for s in range(num_plain, num_slots):
            if own[s] >= 0:
                placed[s] = rows[i, own[s]]
        for s in range(num_slots):
            # A slot without a feature stays 0, for so are its bounds. NaN takes the bounds: its feature is left out
            # and must not spoil the others.
            x = placed[s] + shift[s]
            x = x if x > low[s] else low[s]
            placed[s] = x if x < high[s] else high[s]
        if rows.itemsize == 8:
            for s in range(num_slots):
                exponential[i, s] = math.exp(2.0 * placed[s]) * 2.0**exponent
                rounding[i, s] = 0
        else:
            # e^(2 x) = 2^k e^t = 2^k (1 + t + rest), where t and the sum are in two pieces each.
            for s in range(num_slots):
                k = np.floor(placed[s] * _LOG2_E2 + _HALF)
                t = _TWO * placed[s] - k * _LN2_HIGH
                rest = k * _LN2_LOW
                u = t - rest
                rest = (t - u) - rest
                rest = u * u * (_C0 + u * (_C1 + u * (_C2 + u * (_C3 + u * (_C4 + u * _C5))))) + (rest * u + rest)
                t = u + rest
                rest = (u - t) + rest
                whole = _ONE + t
                rest = ((_ONE - whole) + t) + rest
                rounding[i, s] = np.int16(np.int32(rest / whole * _ROUNDING))
                steps = np.int32(np.int32(k) + exponent)
                bits = np.int32(np.float32(whole).view(np.int32) + (steps << np.int32(23)))
                exponential[i, s] = bits.view(np.float32)


@njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _lost(rounding: np.ndarray, weights: np.ndarray, lost: np.ndarray) -> None:
    """Sum over slots of weights * r / 2 for each row: what its scores lack."""
    for i in range(rounding.shape[0]):
        total = lost.dtype.type(0)
        for s in range(rounding.shape[1]):
            total += weights[s] * np.float32(rounding[i, s])
        lost[i] = total * _UNROUNDING


@njit(error_model="numpy", fastmath={"contract"})
def _two(a: Any, b: Any, c: Any, d: Any, v: Any, w: Any, both: Any) -> Any:
    """Weighted tanh of A = a, B = b plus that of A = c, B = d; `both` is v + w."""
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


@_loop("contract")
def scores(
    query: np.ndarray,
    query_index: np.ndarray,
    query_bounds: np.ndarray,
    key: np.ndarray,
    key_index: np.ndarray,
    key_bounds: np.ndarray,
    given: np.ndarray,
    given_rounding: np.ndarray,
    order: np.ndarray,
    weights: np.ndarray,
    scale: float,
    start: int,
    stop: int,
    score: np.ndarray,
) -> None:
    """Score some tiles of four rows.

    Tiles of all elements of the batch are counted through; the last of an element may have fewer rows. A tile is always
    added up in the same order, so no score depends on who computes it.

    Args:
        query: [query batch, row, hidden].
        query_index: [batch] int64, which of the query batch an element of the batch is.
        query_bounds: [3, slot] of `limit_queries`.
        key: [key batch, key, hidden]; not looked at when B is given.
        key_index: [batch] int64.
        key_bounds: [3, slot] of `plan`.
        given: [key batch, key, slot] B; [0, 0, 0] to have it made here, again for every element.
        given_rounding: as `given`, int16.
        order: [slot].
        weights: [3 * slot / 2] of `limit_queries`.
        scale: what the weights were divided by.
        start: first tile.
        stop: the tile after the last.
        score: [batch, row, key] out.
    """
    num_rows, num_keys, num_slots = score.shape[1], score.shape[2], order.shape[0]
    num_tiles = (num_rows + 3) // 4
    is_given = given.shape[0] > 0
    made = np.empty((0 if is_given else num_keys, num_slots), score.dtype)
    made_rounding = np.empty((0 if is_given else num_keys, num_slots), np.int16)
    a = np.empty((4, num_slots), score.dtype)
    rounding = np.empty((4, num_slots), np.int16)
    lost, lost_key = np.empty(4, score.dtype), np.empty(num_keys, score.dtype)
    factor = score.dtype.type(scale)
    present = -1
    for tile in range(start, stop):
        element = tile // num_tiles
        source = key_index[element]
        b, b_rounding = (given[source], given_rounding[source]) if is_given else (made, made_rounding)
        if source != present:
            if not is_given:
                exponentials(key[source], order, key_bounds, _ZERO, _ZERO, made, made_rounding)
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
        for i in range(count):
            for j in range(num_keys):
                sums[i, j] = factor * (sums[i, j] + (lost[i] + lost_key[j]))


@_loop()
def score_all(
    query: np.ndarray,
    query_index: np.ndarray,
    vector: np.ndarray,
    key: np.ndarray,
    key_index: np.ndarray,
    key_bounds: np.ndarray,
    given: np.ndarray,
    given_rounding: np.ndarray,
    centre: np.ndarray,
    lowest: np.ndarray,
    highest: np.ndarray,
    order: np.ndarray,
    limit: float,
    saturated: float,
    score: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """Do `limit_queries` and all tiles of `scores` in one call.

    Args:
        query: [query batch, row, hidden].
        query_index: [batch] int64.
        vector: [hidden].
        key: [key batch, key, hidden]; not looked at when B is given.
        key_index: [batch] int64.
        key_bounds: [3, slot] of `plan`.
        given: [key batch, key, slot] B, or [0, 0, 0].
        given_rounding: as `given`, int16.
        centre: [hidden] of `plan`, as are the next three.
        lowest: [hidden].
        highest: [hidden].
        order: [slot].
        limit: see above.
        saturated: see above.
        score: [batch, row, key] out.

    Returns:
        What `limit_queries` returns.
    """
    rows = query.reshape((query.shape[0] * query.shape[1], query.shape[2]))
    bounds, weights, scale, left_out = limit_queries(rows, vector, centre, lowest, highest, order, limit, saturated)
    scores(
        query,
        query_index,
        bounds,
        key,
        key_index,
        key_bounds,
        given,
        given_rounding,
        order,
        weights,
        scale,
        _ZERO,
        score.shape[0] * ((score.shape[1] + 3) // 4),
        score,
    )
    return bounds, weights, scale, left_out


@njit(inline="always")
def _differentiate_four(grad: Any, i: Any, first_key: Any, width: Any, tile: Any, keys: Any, sums: Any) -> None:
    """Four rows, A in `tile`, and `width` keys: add to the sums of rows and weights in `tile`, and to those of keys."""
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
    """`BLOCK` slots from `slot` on of one element of the batch, as many rows as make fours."""
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
    a: Any, b: Any, v: Any, g: Any, slot: Any, a_grad: Any, b_grad: Any, v_grad: Any, tile: Any
) -> None:
    """One row of one element of the batch, as many slots from `slot` on as B has."""
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
def _return_lost(rounding: Any, totals: Any, v_grad: Any) -> None:
    """Add sum_i r_i / 2 sum_j g_ij to the gradient of the weights."""
    for i in range(rounding.shape[0]):
        row = rounding[i]
        total = np.float64(totals[i]) * _UNROUNDING
        for k in range(rounding.shape[1]):
            v_grad[k] += total * row[k]


@njit(inline="always")
def _clear(sums: Any, start: Any, stop: Any, slot: Any, width: Any, batch: Any) -> None:
    """Set to 0 what elements `start` to `stop` add to; all where elements share."""
    for source in range(start if len(sums) == batch else 0, stop if len(sums) == batch else len(sums)):
        for i in range(sums.shape[1]):
            row = sums[source, i, slot : slot + width]
            for k in range(width):
                row[k] = 0


@njit
def _aligned(num_rows: int, size: int, like: np.ndarray) -> np.ndarray:
    """Memory that starts where a line of the cache does: vectors that straddle two are slow to store and load."""
    line = 64 // like.itemsize
    memory = np.empty(num_rows * size + line, like.dtype)
    first = (-(memory.ctypes.data // like.itemsize)) % line
    return memory[first : first + num_rows * size].reshape((num_rows, size))


@_loop("contract")
def gradients(
    query: np.ndarray,
    query_index: np.ndarray,
    query_bounds: np.ndarray,
    key: np.ndarray,
    key_index: np.ndarray,
    key_bounds: np.ndarray,
    given: np.ndarray,
    given_rounding: np.ndarray,
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
) -> None:
    """Compute the gradients of some slots and some elements of the batch.

    With t = tanh: weights * sum_j g_ij (1 - t^2) of a query feature, the same over i of a key feature, and
    sum_ij g_ij t of a weight, where t is made again. Like a score, the last lacks what A and B lost in rounding; the
    others do not, for 1 - t^2 is flat near 0.

    Args:
        query: [query batch, row, hidden].
        query_index: [batch] int64.
        query_bounds: [3, slot] of `limit_queries`.
        key: [key batch, key, hidden]; not looked at when B is given.
        key_index: [batch] int64.
        key_bounds: [3, slot] of `plan`.
        given: [key batch, key, slot] B, or [0, 0, 0].
        given_rounding: as `given`, int16.
        order: [slot].
        weights: [slot] the vector, not scaled.
        grad: [batch, row, key] of the scores.
        start: first element of the batch.
        stop: the element after the last.
        start_slot: a multiple of `BLOCK`, as the next.
        stop_slot: the slot after the last.
        query_grad: [query batch, row, slot] out: what belongs to these slots and elements, or to these slots alone
            where elements share a query.
        key_grad: [key batch, key, slot] out in the same way.
        weights_grad: [slot] float64, added to.
    """
    num_rows, num_keys, num_slots = grad.shape[1], grad.shape[2], order.shape[0]
    width = BLOCK if num_rows >= 4 else stop_slot - start_slot
    is_given = given.shape[0] > 0
    a, a_rounding = _aligned(num_rows, width, grad), np.empty((num_rows, width), np.int16)
    made, made_rounding = _aligned(num_keys, width, grad), np.empty((num_keys, width), np.int16)
    # A and the sums of four rows, and the sum of the weights, in one array with places known when compiling: the
    # compiler then has few overlaps to rule out.
    tile = _aligned(1, max(9 * BLOCK, 3 * width), grad)[0]
    keys, sums = _aligned(_KEYS, BLOCK, grad), _aligned(_KEYS, BLOCK, grad)
    of_rows, of_keys = np.empty(num_rows, grad.dtype), np.empty(num_keys, grad.dtype)
    for slot in range(start_slot, stop_slot, width):
        v, v_grad = weights[slot : slot + width], weights_grad[slot : slot + width]
        _clear(query_grad, start, stop, slot, width, grad.shape[0])
        _clear(key_grad, start, stop, slot, width, grad.shape[0])
        present = -1
        for element in range(start, stop):
            source, target = key_index[element], query_index[element]
            b, b_rounding = made, made_rounding
            if is_given and width == num_slots:
                b, b_rounding = given[source], given_rounding[source]
            elif is_given:
                for j in range(num_keys):
                    row, row_rounding = given[source, j, slot:], given_rounding[source, j, slot:]
                    for k in range(width):
                        made[j, k] = row[k]
                        made_rounding[j, k] = row_rounding[k]
            elif source != present:
                exponentials(key[source], order, key_bounds, _ZERO, slot, made, made_rounding)
                present = source
            exponentials(query[target], order, query_bounds, _HALVED, slot, a, a_rounding)
            g, a_grad, b_grad = grad[element], query_grad[target], key_grad[source]
            _sum_both_ways(g, of_rows, of_keys)
            if num_rows >= 4:
                _differentiate_fours(a, b, v, g, slot, a_grad, b_grad, v_grad, tile, keys, sums)
            for i in range(num_rows // 4 * 4, num_rows):
                _differentiate_one(a[i], b, v, g[i], slot, a_grad[i], b_grad, v_grad, tile)
            _return_lost(a_rounding, of_rows, v_grad)
            _return_lost(b_rounding, of_keys, v_grad)


def compile_loops(dtype: np.dtype) -> None:
    """Compile all loops for a width of numbers, or load them from disk.

    Args:
        dtype: float32 or float64.

    Cost: 5 s the first time on a machine, 0.3 s in each process after it.
    """
    number = types.float64 if dtype == np.float64 else types.float32
    row, table, cube = number[::1], number[:, ::1], number[:, :, ::1]
    small, small_cube = types.int16[:, ::1], types.int16[:, :, ::1]
    whole, real, places = types.int64, types.float64, types.int64[::1]
    extent = (real, real)
    key = (cube, places, table, cube, small_cube)
    signatures: tuple[tuple[Any, tuple[Any, ...]], ...] = (
        (plan, (table, table, *extent)),
        (limit_queries, (table, row, row, row, row, places, *extent)),
        (exponentials, (table, places, table, whole, whole, table, small)),
        (scores, (cube, places, table, *key, places, row, real, whole, whole, cube)),
        (score_all, (cube, places, row, *key, row, row, row, places, *extent, cube)),
        (gradients, (cube, places, table, *key, places, row, cube, whole, whole, whole, whole, cube, cube, real[::1])),
    )
    for loop, arguments in signatures:
        try:
            loop.compile(arguments)
        except OSError:
            # Compiled, but the disk would not take it.
            continue
