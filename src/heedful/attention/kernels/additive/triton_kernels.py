"""Triton kernels of additive scores and their gradients, for GPUs.

tanh(a + b) = (E - 1) / (E + 1) with E = A B, A = e^2(a - c), B = e^2(b + c), where c is the largest a of a feature.
With q = B - 1 and p = A - 1, each rounded once, E - 1 = A q + p: small numbers keep all digits, and because A is at
most 1, nothing larger than the result cancels. E + 1 = (E - 1) + 2. Two divisions become one: n1 / d1 + n2 / d2 = (n1
d2 + n2 d1) / (d1 d2). E is clamped at 2^60, where tanh is 1 in float32, so that a product of two stays in range. If
there are many features and their sums are not small, 1 - 2 / d with d = A B + 1 is as accurate as tanh in float32, and
takes three and a half operations instead of six: v1 + v2 - 2 (v1 d2 + v2 d1) / (d1 d2). Features for which c - a or b +
c exceeds `LIMIT`, or is not finite, are computed by tanh of the sum. Sums are blocked, which keeps rounding small, and
always have the same order.

Operands are [3, batch, ...] float32 (float64 in the interpreter): the numbers, their exponentials, and the exponentials
minus 1. Features are [3, hidden]: the vector divided by a power of two; 1 for tanh of the sum, -1 for the quick form;
the power. `index` is [2, batch]: the query element (in gradients, the own side's) and the key element (the other
side's) of each batch element. If queries see intervals of keys, tiles outside all intervals are skipped.
"""

# Type checkers run without Triton, and its kernels have no Python types.
# pyright: reportMissingImports=false, reportUntypedFunctionDecorator=false, reportMissingParameterType=false

import triton
import triton.language as tl

LIMIT: tl.constexpr = tl.constexpr(43.0)
"""Largest exponent: e^86 and its inverse are normal float32 numbers."""
BLOCK: tl.constexpr = tl.constexpr(32)
"""Features of a block; hidden is a multiple of it."""

_LARGEST: tl.constexpr = tl.constexpr(2.0**60)
_CHUNK: tl.constexpr = tl.constexpr(16)


@triton.jit
def tanh(x):
    """Compute tanh to two units in the last place in float32, to 1e-16 in float64.

    Args:
        x: any shape.

    Returns:
        The same shape.
    """
    decay = tl.exp(-2.0 * tl.abs(x))
    large = (1.0 - decay) / (1.0 + decay)
    if x.dtype == tl.float64:
        return tl.where(x < 0.0, -large, large)
    # tanh(x) / x as a polynomial in x^2 up to 0.6, interpolated at Chebyshev's nodes.
    s = x * x
    small = -0.333333298 + s * (0.133328615 + s * (-0.0538651981 + s * (0.0210666309 - s * 0.00620025785)))
    return tl.where(tl.abs(x) < 0.6, x + x * (s * small), tl.where(x < 0.0, -large, large))


@triton.jit
def slope(x):
    """Compute 1 - tanh(x)^2, exact where tanh is flat.

    Args:
        x: any shape.

    Returns:
        The same shape.
    """
    decay = tl.exp(-2.0 * tl.abs(x))
    return 4.0 * decay / ((1.0 + decay) * (1.0 + decay))


@triton.jit
def feature_tile(
    lowest_query, highest_query, lowest_key, highest_key, vector, moves, features, size, width,
    QUICK: tl.constexpr, LARGE: tl.constexpr, IS_MANY: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Choose the form of each feature by the ranges of queries and keys, in one program.

    Args:
        lowest_query: [size] smallest number of each feature of all queries; NaN where there is one.
        highest_query: [size] the largest.
        lowest_key: [size] the same of all keys.
        highest_key: [size] the largest.
        vector: [size].
        moves: [2, size] float64, out: addends of queries and keys.
        features: [3, width], out, see above.
        width: a multiple of `BLOCK`.
        QUICK: largest sum of the quick form.
        LARGE: sum that a feature must reach somewhere for the quick form.
        IS_MANY: whether there are enough features for the quick form.
        WIDTH: power of two, at least width.
    """
    h = tl.arange(0, WIDTH)
    inside = h < size
    numbers = tl.load(vector + h, inside, 0.0)
    lowest = tl.load(lowest_query + h, inside, 0.0).to(tl.float64)
    centre = tl.load(highest_query + h, inside, 0.0).to(tl.float64)
    low = tl.load(lowest_key + h, inside, 0.0).to(tl.float64)
    sums = tl.load(highest_key + h, inside, 0.0).to(tl.float64) + centre
    # Comparisons with NaN are false, and so are those of infinity with the limit.
    fits = (centre - lowest <= LIMIT) & (sums <= LIMIT) & (sums >= -3.0e38)
    is_quick = fits & (sums <= QUICK) & (tl.maximum(sums, -lowest - low) >= LARGE)
    way = tl.where(fits, 0.0, 1.0)
    if IS_MANY:
        way = tl.where(is_quick, -1.0, way)
    # Scaling by a power of two is exact, and keeps products with a denominator in range.
    largest = tl.max(tl.abs(numbers), axis=0)
    if numbers.dtype == tl.float64:
        exponent = (largest.to(tl.int64, bitcast=True) >> 52) & 2047
        power = (exponent << 52).to(tl.float64, bitcast=True)
        is_normal = (exponent > 0) & (exponent < 2047)
    else:
        exponent = (largest.to(tl.int32, bitcast=True) >> 23) & 255
        power = (exponent << 23).to(tl.float32, bitcast=True)
        is_normal = (exponent > 0) & (exponent < 254)
    power = tl.where(is_normal, power, 1.0)
    tl.store(moves + h, -centre, inside)
    tl.store(moves + size + h, centre, inside)
    is_there = h < width
    tl.store(features + h, numbers / power, is_there)
    tl.store(features + width + h, tl.where(inside, way, 0.0).to(numbers.dtype), is_there)
    tl.store(features + 2 * width + h, tl.zeros_like(numbers) + power, is_there)


@triton.jit
def operand_tile(
    rows, move, operands, num_rows, size, width, batch_stride, row_stride, feature_stride, plane,
    IS_TRANSPOSED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Compute exponentials of a tile of queries or keys in float64, rounded once.

    Args:
        rows: [batch, row, size] by its strides.
        move: [size] float64, added before.
        operands: [3, batch, row, width], or [3, batch, width, row] where IS_TRANSPOSED, out: zeros beyond size.
        width: a multiple of `BLOCK`.
        plane: batch * row * width.
        IS_TRANSPOSED: whether features stand above rows.
    """
    num_blocks, num_tiles = width // BLOCK, tl.cdiv(num_rows, ROWS)
    element = (tl.program_id(0) // (num_blocks * num_tiles)).to(tl.int64)
    features = tl.program_id(0) % num_blocks * BLOCK + tl.arange(0, BLOCK)
    own = tl.program_id(0) // num_blocks % num_tiles * ROWS + tl.arange(0, ROWS)
    has_row, has_feature = own < num_rows, features < size
    inside = has_row[:, None] & has_feature[None, :]
    offsets = rows + element * batch_stride + own[:, None] * row_stride + features[None, :] * feature_stride
    x = tl.load(offsets, inside, 0.0)
    power = tl.exp(2.0 * (x.to(tl.float64) + tl.load(move + features, has_feature, 0.0)[None, :]))
    offsets = element * num_rows * width
    if IS_TRANSPOSED:
        offsets += features[None, :] * num_rows + own[:, None]
    else:
        offsets += own[:, None] * width + features[None, :]
    is_there = has_row[:, None] & (features < width)[None, :]
    tl.store(operands + offsets, x, is_there)
    tl.store(operands + plane + offsets, tl.where(inside, power, 0.0), is_there)
    tl.store(operands + 2 * plane + offsets, tl.where(inside, power - 1.0, 0.0), is_there)


@triton.jit
def score_tile(
    query, key, features, index, start, stop, scores, batch, query_plane, key_plane, num_queries, num_keys, hidden,
    score_plane, score_stride, first_key, total_queries, HAS_ROWS: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """Score a tile of queries against a tile of keys.

    Args:
        query: [3, query batch, hidden, query].
        key: [3, key batch, hidden, key].
        features: [3, hidden].
        index: [2, batch] int64; with HAS_ROWS [4, batch], whose last row is the index of the intervals.
        start: [rows batch, total_queries] int64 first keys, beginning at the first of these queries; with HAS_ROWS.
        stop: the same, one past the last key.
        scores: [batch, query, key], out, by its strides; tiles without any allowed pair are not written.
        query_plane: query batch * hidden * query.
        key_plane: key batch * hidden * key.
        hidden: a multiple of `BLOCK`.
        score_plane: of scores from element to element.
        score_stride: of scores from query to query.
        first_key: number of the first key here among all that the intervals are of.
        HAS_ROWS: whether there are intervals.
    """
    num_column_tiles = tl.cdiv(num_keys, COLUMNS)
    tiles = tl.cdiv(num_queries, ROWS) * num_column_tiles
    element = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    rows = (tile // num_column_tiles) * ROWS + tl.arange(0, ROWS)
    columns = (tile % num_column_tiles) * COLUMNS + tl.arange(0, COLUMNS)
    has_row, has_column = rows < num_queries, columns < num_keys
    if HAS_ROWS:
        own = tl.load(index + 3 * batch + element) * total_queries + rows
        begin = first_key + tile % num_column_tiles * COLUMNS
        if tl.min(tl.load(start + own, has_row, first_key + num_keys), axis=0) >= begin + COLUMNS:
            return
        if tl.max(tl.load(stop + own, has_row, 0), axis=0) <= begin:
            return
    left = query + tl.load(index + element) * hidden * num_queries + rows
    right = key + tl.load(index + batch + element) * hidden * num_keys + columns
    total = tl.zeros((ROWS, COLUMNS), query.dtype.element_ty)
    for start in range(0, hidden, BLOCK):
        part = tl.zeros((ROWS, COLUMNS), query.dtype.element_ty)
        for step in range(0, BLOCK, 2):
            h = start + step
            first, second = tl.load(features + h), tl.load(features + h + 1)
            left_first, left_second = left + h * num_queries, left + (h + 1) * num_queries
            right_first, right_second = right + h * num_keys, right + (h + 1) * num_keys
            way, other_way = tl.load(features + hidden + h), tl.load(features + hidden + h + 1)
            if way + other_way < -1.5:
                a = tl.load(left_first + query_plane, has_row, 0.0)
                b = tl.load(right_first + key_plane, has_column, 0.0)
                d1 = a[:, None] * b[None, :] + 1.0
                a = tl.load(left_second + query_plane, has_row, 0.0)
                b = tl.load(right_second + key_plane, has_column, 0.0)
                d2 = a[:, None] * b[None, :] + 1.0
                part += (first + second) - (2.0 * first * d2 + 2.0 * second * d1) * (1.0 / (d1 * d2))
            elif tl.maximum(way, other_way) > 0.0:
                a = tl.load(left_first, has_row, 0.0)
                b = tl.load(right_first, has_column, 0.0)
                part += first * tanh(a[:, None] + b[None, :])
                a = tl.load(left_second, has_row, 0.0)
                b = tl.load(right_second, has_column, 0.0)
                part += second * tanh(a[:, None] + b[None, :])
            else:
                a = tl.load(left_first + query_plane, has_row, 0.0)
                p = tl.load(left_first + 2 * query_plane, has_row, 0.0)
                q = tl.load(right_first + 2 * key_plane, has_column, 0.0)
                n1 = tl.minimum(a[:, None] * q[None, :] + p[:, None], _LARGEST)
                a = tl.load(left_second + query_plane, has_row, 0.0)
                p = tl.load(left_second + 2 * query_plane, has_row, 0.0)
                q = tl.load(right_second + 2 * key_plane, has_column, 0.0)
                n2 = tl.minimum(a[:, None] * q[None, :] + p[:, None], _LARGEST)
                d1, d2 = n1 + 2.0, n2 + 2.0
                part += (first * n1 * d2 + second * n2 * d1) * (1.0 / (d1 * d2))
        total += part
    offsets = element * score_plane + rows[:, None] * score_stride + columns[None, :]
    total *= tl.load(features + 2 * hidden)
    tl.store(scores + offsets, total, has_row[:, None] & has_column[None, :])


@triton.jit
def gradient_tile(
    own, other, features, index, grad, start, stop, own_grad, vector_grad, batch, own_plane, other_plane, num_rows,
    num_others, hidden, grad_plane, row_stride, other_stride, own_total, first_own, first_other, total_queries,
    ROWS: tl.constexpr, HAS_VECTOR: tl.constexpr, HAS_ROWS: tl.constexpr, IS_QUERY: tl.constexpr,
):  # fmt: skip
    """Sum the gradients of a block of features of a tile of rows over the other side.

    Scores are symmetric in query and key, so this is the gradient of either.

    Args:
        own: [3, own batch, row, hidden] whose gradient it is.
        other: [3, other batch, other, hidden].
        features: [3, hidden].
        index: [2, batch] int64; with HAS_ROWS [4, batch], whose last row is the index of the intervals.
        grad: [batch, row, other] gradient of the scores, by its strides.
        start: [rows batch, total_queries] int64 first keys, beginning at the first of these queries; with HAS_ROWS.
        stop: the same, one past the last.
        own_grad: [batch, own_total, hidden], out: added to, without the factor of the vector.
        vector_grad: [batch, tile, hidden], out where HAS_VECTOR: the tile's share of the vector's gradient.
        own_plane: own batch * row * hidden.
        other_plane: other batch * other * hidden.
        hidden: a multiple of `BLOCK`.
        first_own: number of the first row among those.
        first_other: number of the first of the other side among all that there are; 0 for queries.
        HAS_VECTOR: whether to compute vector_grad.
        HAS_ROWS: whether there are intervals.
        IS_QUERY: whether own are the queries.
    """
    num_blocks, num_tiles = hidden // BLOCK, tl.cdiv(num_rows, ROWS)
    element = (tl.program_id(0) // (num_blocks * num_tiles)).to(tl.int64)
    tile = tl.program_id(0) // num_blocks % num_tiles
    columns = tl.program_id(0) % num_blocks * BLOCK + tl.arange(0, BLOCK)
    rows = tile * ROWS + tl.arange(0, ROWS)
    has_row = rows < num_rows
    left = own + tl.load(index + element) * num_rows * hidden + rows[:, None] * hidden + columns[None, :]
    right = other + tl.load(index + batch + element) * num_others * hidden + columns
    outer = grad + element * grad_plane + rows * row_stride
    is_wide = tl.max(tl.load(features + hidden + columns), axis=0) > 0.0
    x = tl.load(left, has_row[:, None], 0.0)
    a = tl.load(left + own_plane, has_row[:, None], 0.0)
    p = tl.load(left + 2 * own_plane, has_row[:, None], 0.0)
    zero = tl.zeros((ROWS, BLOCK), own.dtype.element_ty)
    total, vector_total = zero, zero
    begins_at, ends_at = 0, num_others
    bounds = element
    if HAS_ROWS:
        bounds = tl.load(index + 3 * batch + element) * total_queries
        if IS_QUERY:
            lowest = tl.min(tl.load(start + bounds + rows, has_row, first_other + num_others), axis=0)
            highest = tl.max(tl.load(stop + bounds + rows, has_row, 0), axis=0)
            begins_at = tl.maximum(lowest - first_other, 0).to(tl.int32) // _CHUNK * _CHUNK
            ends_at = tl.minimum(highest - first_other, num_others).to(tl.int32)
    for begin in range(begins_at, ends_at, _CHUNK):
        part, vector_part = zero, zero
        length = _CHUNK
        if HAS_ROWS and not IS_QUERY:
            # If no query of this part of the strip may see these keys, their gradient was never written.
            few = begin + tl.arange(0, _CHUNK)
            begins = tl.load(start + bounds + few, few < num_others, first_own + own_total)
            ends = tl.load(stop + bounds + few, few < num_others, 0)
            low = first_own + tile * ROWS
            is_seen = (begins < low + ROWS) & (ends > low) & (ends > begins)
            length = tl.where(tl.max(is_seen.to(tl.int32), axis=0) > 0, _CHUNK, 0)
        for step in range(0, length, 2):
            j = begin + step
            has_first, has_second = j < num_others, j + 1 < num_others
            g1 = tl.load(outer + j * other_stride, has_row & has_first, 0.0)[:, None]
            g2 = tl.load(outer + (j + 1) * other_stride, has_row & has_second, 0.0)[:, None]
            first, second = right + j * hidden, right + (j + 1) * hidden
            if is_wide:
                x1 = x + tl.load(first, (columns >= 0) & has_first, 0.0)[None, :]
                x2 = x + tl.load(second, (columns >= 0) & has_second, 0.0)[None, :]
                part += g1 * slope(x1) + g2 * slope(x2)
                if HAS_VECTOR:
                    vector_part += g1 * tanh(x1) + g2 * tanh(x2)
            else:
                b1 = tl.load(first + other_plane, (columns >= 0) & has_first, 0.0)[None, :]
                b2 = tl.load(second + other_plane, (columns >= 0) & has_second, 0.0)[None, :]
                e1, e2 = tl.minimum(a * b1, _LARGEST), tl.minimum(a * b2, _LARGEST)
                inverse = 1.0 / ((e1 + 1.0) * (e2 + 1.0))
                r1, r2 = (e2 + 1.0) * inverse, (e1 + 1.0) * inverse
                part += g1 * (4.0 * e1 * r1 * r1) + g2 * (4.0 * e2 * r2 * r2)
                if HAS_VECTOR:
                    q1 = tl.load(first + 2 * other_plane, (columns >= 0) & has_first, 0.0)[None, :]
                    q2 = tl.load(second + 2 * other_plane, (columns >= 0) & has_second, 0.0)[None, :]
                    n1, n2 = tl.minimum(a * q1 + p, _LARGEST), tl.minimum(a * q2 + p, _LARGEST)
                    vector_part += g1 * (n1 * r1) + g2 * (n2 * r2)
        total, vector_total = total + part, vector_total + vector_part
    pointers = own_grad + (element * own_total + first_own + rows[:, None]) * hidden + columns[None, :]
    tl.store(pointers, tl.load(pointers, has_row[:, None], 0.0) + total, has_row[:, None])
    if HAS_VECTOR:
        tl.store(vector_grad + (element * num_tiles + tile) * hidden + columns, tl.sum(vector_total, axis=0))
