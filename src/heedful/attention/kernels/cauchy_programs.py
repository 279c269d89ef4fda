"""Additive scores on tensor cores: the program behind kernels/cauchy_triton.py, written in Triton.

The formula and its error: kernels/cauchy.py. Features are made where they are multiplied, in float32, and rounded to
float16, whose unit is 8 times finer than bfloat16's; sums are float32. With IS_SPLIT each feature is two numbers of
float16, and three products are taken: for inputs of float16.
"""

# Triton is not installed where types are checked, and its programs have none of Python's.
# pyright: reportMissingImports=false, reportUntypedFunctionDecorator=false, reportMissingParameterType=false

import triton
import triton.language as tl

BLOCK: tl.constexpr = tl.constexpr(16)
"""Features of the inputs taken at a time."""

_TINY: tl.constexpr = tl.constexpr(1e-20)


@triton.jit
def add_product(total, left, right, IS_SPLIT: tl.constexpr):
    """Add a product of matrices, taken in float16.

    Args:
        total: [row, key] float32.
        left: [row, BLOCK] float32.
        right: [BLOCK, key] float32.
        IS_SPLIT: whether to take what rounding leaves too.

    Returns:
        [row, key] float32.
    """
    near, next_to = left.to(tl.float16), right.to(tl.float16)
    total = tl.dot(near, next_to, total)
    if IS_SPLIT:
        total = tl.dot((left - near.to(tl.float32)).to(tl.float16), next_to, total)
        total = tl.dot(near, (right - next_to.to(tl.float32)).to(tl.float16), total)
    return total


@triton.jit
def matched_tile(
    query, key, vector, shift, nodes, index, start, stop, scores, batch, num_queries, num_keys, hidden, query_plane,
    score_plane, score_stride, total_queries,
    HAS_ROWS: tl.constexpr, IS_SPLIT: tl.constexpr, RANK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Score a tile of queries against a tile of keys, by features.

    Args:
        query: [query batch, query, hidden], the strip; planes apart by query_plane.
        key: [key batch, key, hidden].
        vector: [hidden] float32, and behind it what is taken out of it: at most 1 in size.
        shift: [hidden] float32, taken from queries and put on keys.
        nodes: [2, RANK] float32, p_l and w_l.
        index: [2, batch] int64; with HAS_ROWS [4, batch].
        start: [rows batch, total_queries] int64, from the strip on, first keys; with HAS_ROWS.
        stop: the same, one past the last.
        scores: [batch, query, key] float32, out, by its strides; where a tile sees nothing, nothing.
        batch: elements.
        num_queries: of the strip.
        num_keys: of an element.
        hidden: of inputs.
        query_plane: of queries from element to element.
        score_plane: of scores from element to element.
        score_stride: of scores from query to query.
        total_queries: that the intervals are of.
        HAS_ROWS: whether there are intervals.
        IS_SPLIT: whether features are two numbers.
        RANK: features for each number, even.
        ROWS: queries of a tile, a power of two.
        COLUMNS: keys of a tile, a power of two.
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
        begin = tile % num_column_tiles * COLUMNS
        if tl.min(tl.load(start + own, has_row, num_keys), axis=0) >= begin + COLUMNS:
            return
        if tl.max(tl.load(stop + own, has_row, 0), axis=0) <= begin:
            return
    left = query + tl.load(index + element) * query_plane + rows[:, None] * hidden
    right = key + tl.load(index + batch + element) * num_keys * hidden + columns[None, :] * hidden
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    constant = tl.zeros((COLUMNS,), tl.float32)
    for first in range(0, hidden, BLOCK):
        h = first + tl.arange(0, BLOCK)
        has = h < hidden
        move, v = tl.load(shift + h, has, 0.0), tl.load(vector + h, has, 0.0)
        a = tl.load(left + h[None, :], has_row[:, None] & has[None, :], 0.0).to(tl.float32)
        b = tl.load(right + h[:, None], has_column[None, :] & has[:, None], 0.0).to(tl.float32)
        # Rows and keys that are not there must not leave the range.
        x = tl.exp(2.0 * tl.where(has_row[:, None], a - move[None, :], 0.0))
        y = tl.exp(2.0 * tl.where(has_column[None, :], b + move[:, None], 0.0))
        whole = tl.zeros((BLOCK, COLUMNS), tl.float32) + v[:, None]
        for place in range(0, RANK, 2):
            p, q = tl.load(nodes + place), tl.load(nodes + place + 1)
            d = tl.where(y == p, _TINY, y - p)
            e = tl.where(y == q, _TINY, y - q)
            whole *= d * e * (1.0 / ((y + p) * (y + q)))
        rest = tl.zeros((BLOCK, COLUMNS), tl.float32) + v[:, None]
        for place in range(0, RANK, 2):
            p, q = tl.load(nodes + place), tl.load(nodes + place + 1)
            d = tl.where(y == p, _TINY, y - p)
            e = tl.where(y == q, _TINY, y - q)
            inverse = whole * (1.0 / (d * e))
            second = tl.load(nodes + RANK + place + 1) * (d * inverse)
            first_one = tl.load(nodes + RANK + place) * (e * inverse)
            rest -= first_one + second
            f, g = 1.0 + x * p, 1.0 + x * q
            inner = 2.0 / (f * g)
            total = add_product(total, 1.0 - g * inner, first_one, IS_SPLIT)
            total = add_product(total, 1.0 - f * inner, second, IS_SPLIT)
        constant += tl.sum(rest, axis=0)
    total = (total + constant[None, :]) * tl.load(vector + hidden)
    out = element * score_plane + rows[:, None] * score_stride + columns[None, :]
    tl.store(scores + out, total, has_row[:, None] & has_column[None, :])
