"""Numba kernels of feature exponentials for additive scores: range, slots and rounding errors."""

import math
from typing import Any, Final

import numpy as np
from numba import njit

from heedful.cpu.numba_cache import cached_njit

BLOCK: Final = 64
"""Slots that gradients process at a time; num_slots is a multiple of it."""
UNROUNDING: Final = np.float32(0.5 / (29000.0 * 2.0**24))
"""Factor from a rounding of `exponentials` to half of a relative error."""

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
# Factor that scales a relative error, at most 1.1 * 2^-24, to sixteen bits.
_ROUNDING: Final = np.float32(29000.0 * 2.0**24)


@cached_njit()
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


@cached_njit()
def plan(
    key: np.ndarray, query: np.ndarray, limit: float, saturated: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Assign every feature a centre and a slot.

    Args:
        key: [row, hidden].
        query: [row, hidden]; without rows, queries are assumed to have the range of the keys.
        limit: see numba_kernels.py.
        saturated: see numba_kernels.py.

    Returns:
        centre [hidden], 0 where keys lie around 0; lowest and highest [hidden] of key - centre, infinite for a feature
        that needs tanh itself; order [slot] int64; bounds [3, slot]: offset added to a key, lower and upper limit of
        the sum, all 0 for a slot that holds B = 1.
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
        # If all keys have one sign, subtracting a centre within a factor of two of each is exact.
        is_above, is_below = lowest[f] > 0.0, highest[f] < 0.0
        is_aside = (is_above and highest[f] <= 3.0 * lowest[f]) or (is_below and lowest[f] >= 3.0 * highest[f])
        if is_aside or lowest[f] < -near or highest[f] > near:
            centre[f] = lowest[f] + spread * _HALF
            lowest[f] -= centre[f]
            highest[f] -= centre[f]
        reach = most[f] + centre[f] if query.shape[0] else max(highest[f], -lowest[f])
        # A query for which tanh is 1 with every key may be clamped; otherwise such a feature needs a division of its
        # own.
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
    """Slots of features: in order if no feature is wide; else wide features get a division each, others pair."""
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


@cached_njit()
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
    """Choose the exponents for queries, and exclude the features that need tanh itself.

    Args:
        query: [row, hidden].
        vector: [hidden].
        centre: [hidden] of `plan`, like the next three.
        lowest: [hidden].
        highest: [hidden].
        order: [slot].
        limit: see numba_kernels.py.
        saturated: see numba_kernels.py.

    Returns:
        [3, slot] bounds as from `plan`; [3 * slot / 2] the vector divided by `scale`, by slot, then the sum of the two
        weights of each division; scale, a power of two; [excluded] int64 excluded features, whose weights are 0.
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
    # The scale keeps weights times products of two F finite; a power of two scales exactly.
    scale = 2.0 ** (math.frexp(largest)[1] - 1)
    for s in range(2 * half):
        weights[s] /= scale
    for s in range(half):
        weights[2 * half + s] = weights[s] + weights[half + s]
    return bounds, weights, scale, left_out[:num_left_out]


@njit(inline="always")
def _split_exponential(placed: Any, slip: Any, exponent: Any, exponential: Any, rounding: Any) -> None:
    """Exponential e^(2 x) = 2^k e^t = 2^k (1 + t + rest), where x, t and the sum are in two pieces each."""
    for s in range(placed.shape[0]):
        k = np.floor(placed[s] * _LOG2_E2 + _HALF)
        t = _TWO * placed[s] - k * _LN2_HIGH
        rest = k * _LN2_LOW - _TWO * slip[s]
        u = t - rest
        rest = (t - u) - rest
        rest = u * u * (_C0 + u * (_C1 + u * (_C2 + u * (_C3 + u * (_C4 + u * _C5))))) + (rest * u + rest)
        t = u + rest
        rest = (u - t) + rest
        whole = _ONE + t
        rest = ((_ONE - whole) + t) + rest
        rounding[s] = np.int16(np.int32(rest / whole * _ROUNDING))
        steps = np.int32(np.int32(k) + exponent)
        bits = np.int32(np.float32(whole).view(np.int32) + (steps << np.int32(23)))
        exponential[s] = bits.view(np.float32)


@cached_njit("contract")
def exponentials(
    rows: np.ndarray,
    order: np.ndarray,
    bounds: np.ndarray,
    exponent: int,
    first_slot: int,
    exponential: np.ndarray,
    rounding: np.ndarray,
) -> None:
    """Compute 2^exponent e^(2 x) of some slots and, in float32, the rounding error.

    Args:
        rows: [row, hidden].
        order: [slot].
        bounds: [3, slot] of `plan` or `limit_queries`.
        exponent: -1 for queries, 0 for keys.
        first_slot: first slot to compute.
        exponential: [row, width] out: the slots from `first_slot` on.
        rounding: [row, width] int16 out: relative excess of the exact value, in units of 2^-24 / 29000; 0 for float64,
            where no correction is needed.
    """
    num_slots = exponential.shape[1]
    own = order[first_slot : first_slot + num_slots]
    shift = bounds[0, first_slot : first_slot + num_slots]
    low = bounds[1, first_slot : first_slot + num_slots]
    high = bounds[2, first_slot : first_slot + num_slots]
    placed, slip = np.zeros(num_slots, rows.dtype), np.empty(num_slots, rows.dtype)
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
            # A slot without a feature stays 0, because its bounds are 0. NaN is clamped to the bounds: its feature is
            # excluded and must not affect the others.
            x = placed[s] + shift[s]
            part = x - placed[s]
            rest = (placed[s] - (x - part)) + (shift[s] - part)
            slip[s] = rest if low[s] < x < high[s] else 0.0
            x = x if x > low[s] else low[s]
            placed[s] = x if x < high[s] else high[s]
        if rows.itemsize == 8:
            for s in range(num_slots):
                exponential[i, s] = math.exp(2.0 * placed[s]) * 2.0**exponent
                rounding[i, s] = 0
        else:
            _split_exponential(placed, slip, exponent, exponential[i], rounding[i])
