"""Numba kernels of distance attention: squares, weights and sums of one tile of keys at a time.

Keys lie along the vector lanes: arrays of keys and values are transposed, [size, key], so that a loop over keys reads
one stream per feature. Queries walk through the keys in tiles that stay in the nearest cache; of the [query, key]
arrays only a few rows of one tile exist at a time. Points are scaled by a power of two, which is exact, so that the
bandwidth is about 2^-10 and no product of a weight and a value overflows.

gaussian, laplacian and powers of a compact kernel: weight = 2^(rate * nearest - rate * cost), where the cost is the
squared distance, the distance, or -log2 K, and `nearest` the smallest cost of the row so far. Thus the nearest key
always has weight, however far away, and nothing overflows. If it is so far that rate * cost has no fractional digits,
`nearest` is subtracted before multiplying; otherwise this would merely be slower. boxcar, triangular, epanechnikov:
weights are differences that need no exponential: [d < h], h - d, h^2 - d^2.
"""

import math
from typing import Any, Final

import numpy as np
from numba import njit

from heedful.attention.kernels.distance.arrays import (
    BOXCAR,
    FAR,
    GAUSSIAN,
    LAPLACIAN,
    LIFT,
    ROWS,
    TRIANGULAR,
    TRIANGULAR_POWER,
    Array,
    ForwardResult,
    Kernel,
    OutputGradients,
    Points,
    Room,
    Span,
    Sums,
)
from heedful.attention.kernels.distance.numba_shapes import are_gradients_right, are_inputs_right
from heedful.cpu.numba_math import FLAGS, OPTIONS, bits, exp2, from_bits, make_exp2, multiply_add

FLAT: Final = 2.0**-LIFT
"""Weight of a boxcar within its bandwidth."""
_lifted_exp2: Final = make_exp2(LIFT)

_inner: Final = njit(fastmath=FLAGS, forceinline=True, **OPTIONS)


@_inner
def _add_squares(query: Array, key: Array, i: int, c: int, count: int, span: Span, squares: Array) -> Any:
    """Add the squares of features c to c + count, a literal number in the call; for c = 0 start from zero."""
    tile, first, last = span
    nearest = bits(squares.dtype.type(np.inf))
    for j in range(first, last):
        square = squares.dtype.type(0.0)
        for f in range(c, c + count):
            difference = query[i, f] - key[f, j]
            square += difference * difference
        if c > 0:
            square += squares[j - tile]
        squares[j - tile] = square
        nearest = min(nearest, bits(square))
    return nearest


@_inner
def _squares(query: Array, key: Array, i: int, span: Span, squares: Array) -> Any:
    """Write |query - key|^2 of one query and a tile of keys; return the smallest."""
    size = query.shape[1]
    c = size & 3
    nearest = bits(squares.dtype.type(0.0))
    if c == 1:
        nearest = _add_squares(query, key, i, 0, 1, span, squares)
    elif c == 2:
        nearest = _add_squares(query, key, i, 0, 2, span, squares)
    elif c == 3:
        nearest = _add_squares(query, key, i, 0, 3, span, squares)
    elif size == 0:
        _add_squares(query, key, i, 0, 0, span, squares)
    for four in range(c, size, 4):
        nearest = _add_squares(query, key, i, four, 4, span, squares)
    return from_bits(nearest)


@_inner
def _costs(squares: Array, span: Span, nearest: Any, kernel: Kernel) -> Any:
    """Turn squares into the costs of an exponential kernel, in place; return the smallest."""
    if kernel.profile == GAUSSIAN:
        return nearest
    begin, end = span.first - span.tile, span.last - span.tile
    if kernel.profile == LAPLACIAN:
        for j in range(begin, end):
            squares[j] = np.sqrt(squares[j])
        return np.sqrt(nearest)
    whole, least = kernel.whole, np.inf
    for j in range(begin, end):
        part = np.sqrt(squares[j]) if kernel.profile == TRIANGULAR_POWER else squares[j]
        rest = (whole - part) + kernel.crumb
        # `rest` is accurate near the edge of the support, `part` near 0.
        log = math.log(rest / whole) if part + part > whole else math.log1p(-part / whole)
        cost = np.inf if rest <= 0.0 else -log / math.log(2.0)
        squares[j] = cost
        least = min(least, cost)
    return squares.dtype.type(least)


@_inner
def _shift(costs: Array, span: Span, nearest: Any, rate: Any) -> Any:
    """Base that rate * cost is measured from; where the nearest key is very far, costs are shifted in place."""
    shift = rate * nearest
    if shift > FAR:
        for j in range(span.first - span.tile, span.last - span.tile):
            costs[j] -= nearest
        shift = costs.dtype.type(0.0)
    return shift


@_inner
def _exponential_weights(costs: Array, value: Array, span: Span, kernel: Kernel, shift: Any, rate: Any) -> Any:
    """Turn costs into weights, in place; return the sums of weights and of weights times the first values."""
    tile, first, last = span
    lowest, is_score_missing = kernel.lowest + costs.dtype.type(LIFT), len(value) > 1
    total = weighted = costs.dtype.type(0.0)
    for j in range(first, last):
        exponent = shift - rate * costs[j - tile]
        weight = _lifted_exp2(lowest if exponent < lowest else exponent)
        if is_score_missing:
            costs[j - tile] = weight
        total += weight
        weighted += weight * value[0, j]
    return total, weighted


@_inner
def _difference_weight(square: Any, kernel: Kernel, zero: Any, flat: Any) -> Any:
    """Weight of a compact kernel; the comparisons keep NaN."""
    if kernel.profile == BOXCAR:
        return zero if square >= kernel.whole else (flat if square < kernel.whole else square)
    part = np.sqrt(square) if kernel.profile == TRIANGULAR else square
    difference = (kernel.whole - part) + kernel.crumb
    return zero if difference < zero else difference


@_inner
def _difference_weights(squares: Array, span: Span, kernel: Kernel) -> Any:
    """Turn squares into weights of a compact kernel, in place; return their sum."""
    total = zero = squares.dtype.type(0.0)
    flat = squares.dtype.type(FLAT)
    for j in range(span.first - span.tile, span.last - span.tile):
        weight = _difference_weight(squares[j], kernel, zero, flat)
        squares[j] = weight
        total += weight
    return total


@_inner
def _read_out(weights: Array, value: Array, c: int, span: Span, i: int, sums: Array) -> None:
    """Add weights times values of a tile to the sums of row i, from column c on, in fours where there are as many."""
    tile, first, last = span
    while c < len(value):
        s0 = s1 = s2 = s3 = weights.dtype.type(0.0)
        if len(value) - c < 4:
            for j in range(first, last):
                s0 += weights[j - tile] * value[c, j]
            sums[i, c] += s0
            c += 1
        else:
            for j in range(first, last):
                s0 += weights[j - tile] * value[c, j]
                s1 += weights[j - tile] * value[c + 1, j]
                s2 += weights[j - tile] * value[c + 2, j]
                s3 += weights[j - tile] * value[c + 3, j]
            sums[i, c] += s0
            sums[i, c + 1] += s1
            sums[i, c + 2] += s2
            sums[i, c + 3] += s3
            c += 4


@_inner
def _base(nearest: Any, rate: Any) -> Any:
    """Base that exponents are measured from, exactly; see `_shift`."""
    shift = rate * nearest
    return np.float64(rate) * np.float64(nearest) if shift > FAR else np.float64(shift)


@_inner
def _come_nearer(least: Any, rate: Any, i: int, result: ForwardResult, sums: Array) -> Any:
    """Move the base of a row to its nearest key so far, and rescale the sums."""
    if least < result.nearest[i]:
        if result.totals[i] > 0.0:
            factor = 2.0 ** (_base(least, rate) - _base(result.nearest[i], rate))
            result.totals[i] *= factor
            for c in range(sums.shape[1]):
                sums[i, c] *= factor
        result.nearest[i] = least
    return result.nearest[i]


@_inner
def _block(points: Points, result: ForwardResult, row: int, end: int) -> Any:
    """Next block of rows: the batch item, its first and last row, and their part of the arrays."""
    num_queries = points.query.shape[1]
    b, first = row // num_queries, row % num_queries
    last = min(first + ROWS, num_queries, first + end - row)
    query, start, stop = points.query[b, first:last], points.start[b, first:last], points.stop[b, first:last]
    found_here = ForwardResult(
        result.context[b, first:last], result.nearest[b, first:last], result.totals[b, first:last]
    )
    return b, first, last, Points(query, points.key[b], points.value[b], start, stop), found_here


@_inner
def _extent(points: Points, width: int) -> Any:
    """First tile edge and last key that any of these rows may need."""
    begin, end = points.start[0], points.stop[0]
    for i in range(1, len(points.start)):
        begin, end = min(begin, points.start[i]), max(end, points.stop[i])
    return begin - begin % width, end


@_inner
def _span(points: Points, i: int, edge: int, width: int) -> Span:
    """Keys of a tile that row i may attend to."""
    first = max(edge, points.start[i])
    last = max(first, min(edge + width, points.stop[i]))
    return Span(np.uint64(edge), np.uint64(first), np.uint64(last))


@_inner
def _attend_rows(points: Points, kernel: Kernel, rate: Any, result: ForwardResult, buffer: Array, sums: Array) -> None:
    """Attention of one block of rows over all its keys, tile by tile."""
    query, key, value = points.query, points.key, points.value
    for i in range(len(query)):
        result.totals[i], result.nearest[i] = 0.0, kernel.farthest
        for c in range(len(value)):
            sums[i, c] = 0.0
    width = len(buffer)
    begin, end = _extent(points, width)
    for edge in range(begin, end, width):
        for i in range(len(query)):
            span = _span(points, i, edge, width)
            if span.first == span.last:
                continue
            nearest = _squares(query, key, i, span, buffer)
            if rate is not None:
                least = _costs(buffer, span, nearest, kernel)
                if kernel.is_finite and rate * (result.nearest[i] - least) <= kernel.lowest:
                    continue
                nearest = _come_nearer(least, rate, i, result, sums)
                shift = _shift(buffer, span, nearest, rate)
                total, weighted = _exponential_weights(buffer, value, span, kernel, shift, rate)
                result.totals[i] += total
                sums[i, 0] += weighted
                _read_out(buffer, value, 1, span, i, sums)
            elif not kernel.is_finite or nearest < kernel.bound:
                result.totals[i] += _difference_weights(buffer, span, kernel)
                _read_out(buffer, value, 0, span, i, sums)
    for i in range(len(query)):
        total = result.totals[i]
        for c in range(len(value)):
            result.context[i, c] = sums[i, c] / total if total != 0.0 else 0.0


def forward(
    points: Points, kernel: Kernel, rate: Any, row: int, end: int, result: ForwardResult, buffer: Array, sums: Array
) -> bool:
    """Compute attention; compiled by `compile.forward`.

    Args:
        points: queries, keys and values.
        kernel: the shape of the weights.
        rate: factor of the costs; None for profiles from `BOXCAR` on.
        row: first query, counted across the batch.
        end: one past the last query.
        buffer: [key] work array, as long as a tile.
        sums: [ROWS, value_size] float64 work array.

    Returns:
        Whether shapes and ranges are right; if not, nothing was computed.
    """
    if not are_inputs_right(points, row, end, result) or sums.shape != (ROWS, points.value.shape[1]):
        return False
    while row < end:
        _, first, last, here, found_here = _block(points, result, row, end)
        _attend_rows(here, kernel, rate, found_here, buffer, sums)
        row += last - first
    return True


@_inner
def _gains(gains: Array, value: Array, i: int, span: Span, r: int, slopes: Array) -> None:
    """Write gain . value - shared part of row i: the gain from a little more weight on each key."""
    tile, first, last = span
    g0, shared = gains[i, 0], gains[i, len(value)]
    for j in range(first, last):
        slopes[r, j - tile] = g0 * value[0, j] - shared
    c = 1
    while c < len(value):
        g0 = gains[i, c]
        if len(value) - c < 4:
            for j in range(first, last):
                slopes[r, j - tile] += g0 * value[c, j]
            c += 1
        else:
            g1, g2, g3 = gains[i, c + 1], gains[i, c + 2], gains[i, c + 3]
            for j in range(first, last):
                one = g0 * value[c, j] + g1 * value[c + 1, j]
                slopes[r, j - tile] += one + (g2 * value[c + 2, j] + g3 * value[c + 3, j])
            c += 4


@_inner
def _exponential_slopes(room: Room, r: int, span: Span, kernel: Kernel, shift: Any, rate: Any) -> Any:
    """Turn costs into weights and gains into slopes = weights * gains; return the sum of slopes * log2(weights)."""
    costs, weights, slopes, lowest = room.costs, room.weights, room.slopes, kernel.lowest
    turning = costs.dtype.type(0.0)
    for j in range(span.first - span.tile, span.last - span.tile):
        exponent = shift - rate * costs[j]
        exponent = lowest if exponent < lowest else exponent
        weight = exp2(exponent)
        slope = weight * slopes[r, j]
        weights[r, j] = weight
        slopes[r, j] = slope
        turning += slope * exponent
    return turning


# The next two functions turn slopes by the score into slopes by (query - key), up to a constant factor. They read all
# operands unconditionally, because conditional reads would be slower.


@_inner
def _divided_slopes(room: Room, r: int, span: Span, kernel: Kernel) -> Any:
    """Compute slopes from distances (laplacian) or squares (powers); return the sum of slopes * squares of powers."""
    costs, slopes, whole, crumb = room.costs, room.slopes, kernel.whole, kernel.crumb
    stretch = zero = costs.dtype.type(0.0)
    for j in range(span.first - span.tile, span.last - span.tile):
        cost = costs[j]
        divisor = cost
        if kernel.profile == TRIANGULAR_POWER:
            distance = np.sqrt(cost)
            divisor = ((whole - distance) + crumb) * distance
        elif kernel.profile != LAPLACIAN:
            divisor = (whole - cost) + crumb
        quotient = slopes[r, j] / divisor
        slope = zero if divisor <= zero else quotient
        slopes[r, j] = slope
        stretch += slope * (zero if divisor <= zero else cost)
    return stretch


@_inner
def _difference_slopes(room: Room, r: int, span: Span, kernel: Kernel) -> Any:
    """Turn squares into weights and gains into slopes; return the sum of slopes * squares."""
    squares, weights, slopes = room.costs, room.weights, room.slopes
    stretch = zero = squares.dtype.type(0.0)
    flat = squares.dtype.type(FLAT)
    for j in range(span.first - span.tile, span.last - span.tile):
        square, gain = squares[j], slopes[r, j]
        weight = _difference_weight(square, kernel, zero, flat)
        weights[r, j] = weight
        is_flat = weight == zero or kernel.profile == BOXCAR
        slope = zero if is_flat else gain
        if kernel.profile == TRIANGULAR:
            distance = np.sqrt(square)
            quotient = slope / distance
            slope = zero if distance == zero else quotient
        slopes[r, j] = slope
        stretch += slope * (zero if is_flat else square)
    return stretch


@_inner
def _follow_row(
    points: Points,
    kernel: Kernel,
    rate: Any,
    nearest: Any,
    wants: bool,
    i: int,
    r: int,
    span: Span,
    room: Room,
    sums: Sums,
) -> bool:
    """Fill row r of weights and slopes with those of query i; return whether any weight is above zero."""
    least = _squares(points.query, points.key, i, span, room.costs)
    if rate is None:
        has_weight = not kernel.is_finite or least < kernel.bound
    else:
        least = _costs(room.costs, span, least, kernel)
        has_weight = not kernel.is_finite or rate * (nearest - least) > kernel.lowest
    if has_weight:
        if wants:
            _gains(room.gains, points.value, i, span, r, room.slopes)
        if rate is None:
            sums.kernel[i, 1] += _difference_slopes(room, r, span, kernel)
        else:
            shift = _shift(room.costs, span, nearest, rate)
            sums.kernel[i, 0] += _exponential_slopes(room, r, span, kernel, shift, rate)
            if kernel.profile != GAUSSIAN:
                if kernel.profile != LAPLACIAN or shift == 0.0:
                    least = _squares(points.query, points.key, i, span, room.costs)
                if kernel.profile == LAPLACIAN and shift == 0.0:
                    _costs(room.costs, span, least, kernel)
                sums.kernel[i, 1] += _divided_slopes(room, r, span, kernel)
    return has_weight


@_inner
def _clear(room: Room, r: int, begin: Any, end: Any) -> None:
    for j in range(begin, end):
        room.weights[r, j] = 0.0
        room.slopes[r, j] = 0.0


@_inner
def _four(array: Array, i: int, c: int, count: int) -> Any:
    """Column c of the rows from i on, of which there are `count`; 0 beyond."""
    zero = array.dtype.type(0.0)
    a1 = array[i + 1, c] if count > 1 else zero
    a2 = array[i + 2, c] if count > 2 else zero
    a3 = array[i + 3, c] if count > 3 else zero
    return array[i, c], a1, a2, a3


@_inner
def _add_value_gradients(room: Room, i: int, c: int, count: int, span: Span, row: int) -> None:
    """Add weight * gain of four rows to the gradient of each value."""
    weights, local = room.weights, room.local
    g0, g1, g2, g3 = _four(room.gains, i, c, count)
    for j in range(span.first - span.tile, span.last - span.tile):
        local[row, j] += (g0 * weights[0, j] + g1 * weights[1, j]) + (g2 * weights[2, j] + g3 * weights[3, j])


@_inner
def _add_point_gradients(points: Points, room: Room, i: int, c: int, count: int, span: Span) -> Any:
    """Subtract slope * (query - key) of four rows from the gradient of each key; return their sums by row."""
    key, slopes, local = points.key, room.slopes, room.local
    q0, q1, q2, q3 = _four(points.query, i, c, count)
    s0 = s1 = s2 = s3 = slopes.dtype.type(0.0)
    for j in range(span.first - span.tile, span.last - span.tile):
        k = key[c, j + span.tile]
        d0, d1, d2, d3 = q0 - k, q1 - k, q2 - k, q3 - k
        s0 = multiply_add(slopes[0, j], d0, s0)
        s1 = multiply_add(slopes[1, j], d1, s1)
        s2 = multiply_add(slopes[2, j], d2, s2)
        s3 = multiply_add(slopes[3, j], d3, s3)
        one = multiply_add(slopes[0, j], d0, slopes[1, j] * d1)
        two = multiply_add(slopes[2, j], d2, slopes[3, j] * d3)
        local[c, j] -= one + two
    return s0, s1, s2, s3


@_inner
def _add_gradients(
    points: Points, grads: OutputGradients, room: Room, i: int, count: int, span: Span, sums: Sums
) -> None:
    """Add the gradients of up to four rows."""
    size = points.query.shape[1]
    if grads.wants_value:
        for c in range(len(points.value)):
            _add_value_gradients(room, i, c, count, span, size + c)
    if grads.wants_points:
        for c in range(size):
            rows = _add_point_gradients(points, room, i, c, count, span)
            for r in range(count):
                sums.query[i + r, c] += rows[r]


@_inner
def _share_gradients(points: Points, rate: Any, result: ForwardResult, grads: OutputGradients, room: Room) -> None:
    """Divide gradients by the sums of weights; a row without weight has none."""
    lift = 1.0 if rate is None else 2.0**LIFT
    columns = len(points.value)
    for i in range(len(points.query)):
        total = result.totals[i] * lift
        inverse = 0.0 if total == 0.0 else 1.0 / total
        shared = -grads.log_normalizer[i]
        for c in range(columns):
            gain = np.float64(grads.context[i, c]) if inverse != 0.0 else 0.0
            room.gains[i, c] = gain * inverse
            shared += gain * np.float64(result.context[i, c])
        room.gains[i, columns] = shared * inverse


@_inner
def _follow_rows(
    points: Points, kernel: Kernel, rate: Any, result: ForwardResult, grads: OutputGradients, room: Room, sums: Sums
) -> None:
    """Add the gradients of one block of rows to `sums`."""
    num_rows, width = len(points.query), len(room.costs)
    _share_gradients(points, rate, result, grads, room)
    # Rows are processed in fours, with weight 0 on the keys of the others; one by one if points are not finite, because
    # 0 times infinity is not 0.
    step = 4 if kernel.is_finite else 1
    begin, end = _extent(points, width)
    for edge in range(begin, end, width):
        for c in range(len(room.local)):
            for j in range(width):
                room.local[c, j] = 0.0
        tile = np.uint64(edge)
        for i in range(0, num_rows, step):
            count = min(step, num_rows - i)
            low, high = tile + np.uint64(width), tile
            for at in range(i, i + count):
                span = _span(points, at, edge, width)
                if result.totals[at] != 0.0 and span.first < span.last:
                    low, high = min(low, span.first), max(high, span.last)
            is_reached = False
            for r in range(4 if low < high else 0):
                at = min(i + r, num_rows - 1)
                span = _span(points, at, edge, width)
                has_weight = r < count and result.totals[at] != 0.0 and span.first < span.last
                if has_weight:
                    nearest, wants = result.nearest[at], grads.wants_slopes
                    has_weight = _follow_row(points, kernel, rate, nearest, wants, at, r, span, room, sums)
                if has_weight:
                    is_reached = True
                    _clear(room, r, low - tile, span.first - tile)
                    _clear(room, r, span.last - tile, high - tile)
                else:
                    _clear(room, r, low - tile, high - tile)
            if is_reached:
                _add_gradients(points, grads, room, i, count, Span(tile, low, high), sums)
        for c in range(len(room.local)):
            for j in range(min(width, sums.key.shape[1] - edge)):
                sums.key[c, edge + j] += room.local[c, j]


def backward(
    points: Points,
    kernel: Kernel,
    rate: Any,
    row: int,
    end: int,
    result: ForwardResult,
    grads: OutputGradients,
    room: Room,
    sums: Sums,
) -> bool:
    """Compute gradients with recomputed weights; compiled by `compile.backward`.

    Args:
        points: as in `forward`.
        kernel: as in `forward`.
        rate: as in `forward`.
        row: as in `forward`.
        end: as in `forward`.
        result: result of `forward`.

    Returns:
        As `forward`.
    """
    if not are_inputs_right(points, row, end, result) or not are_gradients_right(points, grads, room, sums):
        return False
    while row < end:
        b, first, last, here, found_here = _block(points, result, row, end)
        context, log_normalizer = grads.context[b, first:last], grads.log_normalizer[b, first:last]
        wants = (grads.wants_slopes, grads.wants_points, grads.wants_value)
        given_here = OutputGradients(context, log_normalizer, wants[0], wants[1], wants[2])
        sums_here = Sums(sums.query[b, first:last], sums.key[b], sums.kernel[b, first:last])
        _follow_rows(here, kernel, rate, found_here, given_here, room, sums_here)
        row += last - first
    return True
