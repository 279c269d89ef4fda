"""Triton kernels of distance scores and of the gradients of their points, for GPUs.

Differences are taken before squaring, for accuracy far from the origin. `index`, `scalars` and strips are those of
heedful/attention/kernels/fused/triton_kernels.py; profiles are numbered as in heedful/attention/profiles.py.
"""

# Type checkers run without Triton, and its kernels have no Python types.
# pyright: reportMissingImports=false, reportUntypedFunctionDecorator=false, reportMissingParameterType=false

import triton
import triton.language as tl

_LOWEST: tl.constexpr = tl.constexpr(-3.0e38)


@triton.jit
def log1p(x):
    """Compute log(1 + x), as exact where x is small.

    Args:
        x: any shape, above -1.

    Returns:
        The same shape.
    """
    y = 1.0 + x
    d = y - 1.0
    return tl.where(d == 0.0, x, tl.log(y) * (x / tl.where(d == 0.0, 1.0, d)))


@triton.jit
def squared_distances(query, key, rows, columns, has_row, has_column, depth, scalars):
    """Sum squares of differences, in bandwidths.

    Args:
        rows: [row].
        columns: [key].
        has_row: [row].
        has_column: [key].
        scalars: [6].

    Returns:
        [row, key].
    """
    bandwidth, unit = tl.load(scalars), tl.load(scalars + 5)
    total = tl.zeros((rows.shape[0], columns.shape[0]), bandwidth.dtype)
    for d in range(depth):
        q = tl.load(query + rows * depth + d, has_row, 0.0).to(bandwidth.dtype)
        k = tl.load(key + columns * depth + d, has_column, 0.0).to(bandwidth.dtype)
        difference = (q[:, None] - k[None, :]) * unit
        total += difference * difference
    return total / (bandwidth * unit * (bandwidth * unit))


@triton.jit
def log_kernel(squared, PROFILE: tl.constexpr):
    """Compute log K of squared distances; profiles are numbered as in `profiles.PROFILES`.

    Args:
        squared: [row, key].
        PROFILE: its number.

    Returns:
        The same shape; a finite number where there is none.
    """
    if PROFILE == 0:
        logs = -0.5 * squared
    elif PROFILE == 1:
        logs = -tl.sqrt(squared)
    elif PROFILE == 3:
        logs = log1p(-tl.sqrt(tl.where(squared < 1.0, squared, 0.0)))
    elif PROFILE == 4:
        logs = log1p(-tl.where(squared < 1.0, squared, 0.0))
    else:
        logs = squared * 0.0
    return tl.where(logs < _LOWEST, _LOWEST, logs)


@triton.jit
def log_kernel_slope(squared, PROFILE: tl.constexpr):
    """Differentiate log K by the squared distance.

    Args:
        squared: [row, key].
        PROFILE: its number.

    Returns:
        The same shape; 0 where the root has no slope.
    """
    if PROFILE == 0:
        slope = squared * 0.0 - 0.5
    elif PROFILE == 1:
        slope = tl.where(squared > 0.0, -0.5 / tl.sqrt(tl.where(squared > 0.0, squared, 1.0)), 0.0)
    elif PROFILE == 3:
        inside = (squared > 0.0) & (squared < 1.0)
        root = tl.sqrt(tl.where(inside, squared, 0.25))
        slope = tl.where(inside, -0.5 / (root * (1.0 - root)), 0.0)
    elif PROFILE == 4:
        slope = tl.where(squared < 1.0, -1.0 / (1.0 - tl.where(squared < 1.0, squared, 0.0)), 0.0)
    else:
        slope = squared * 0.0
    return slope


@triton.jit
def distance_gradient(
    own, other, index, slopes, start, stop, scalars, own_grad, sums, batch, num_owns, num_others, depth, own_stride,
    other_stride, slope_plane, num_queries, first_row, own_index_row, other_index_row, mask_index_row,
    PROFILE: tl.constexpr, IS_QUERY: tl.constexpr, HAS_ROWS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Add the gradients of a tile of points through their distances, summed over the other side.

    Args:
        own: [own batch, own, depth] whose gradient it is.
        other: [other batch, other, depth].
        index: [6, batch].
        slopes: [batch, row, key] gradient of the scores, by its strides.
        start: [rows batch, query].
        stop: [rows batch, query].
        scalars: [6].
        own_grad: [batch, own, depth], out: added to.
        sums: [2, batch, query], out where IS_QUERY: gradients of bandwidth and inverse temperature.
        slope_plane: of slopes from element to element.
        own_index_row: row of index for own.
        other_index_row: row of index for other.
        mask_index_row: row of index for rows.
        IS_QUERY: whether own points are the queries of the strip; else they are all keys.
        HAS_ROWS: whether there are intervals.
        COLUMNS: other points of a tile, a power of two.
    """
    real = scalars.dtype.element_ty
    num_tiles = tl.cdiv(num_owns, ROWS)
    element = (tl.program_id(0) // num_tiles).to(tl.int64)
    rows = tl.program_id(0) % num_tiles * ROWS + tl.arange(0, ROWS)
    has_row = rows < num_owns
    masks = tl.load(index + mask_index_row * batch + element) * num_queries + first_row
    own_first, other_first, first, last = 0, first_row, 0, num_others
    own_total, other_total = num_owns, num_queries
    if IS_QUERY:
        own_first, other_first, own_total, other_total = first_row, 0, num_queries, num_others
        if HAS_ROWS:
            first = tl.maximum(tl.min(tl.load(start + masks + rows, has_row, num_others), axis=0), 0).to(tl.int32)
            first = first // COLUMNS * COLUMNS
            last = tl.minimum(tl.max(tl.load(stop + masks + rows, has_row, 0), axis=0), num_others).to(tl.int32)
    left = own + (tl.load(index + own_index_row * batch + element) * own_total + own_first) * depth
    right = other + (tl.load(index + other_index_row * batch + element) * other_total + other_first) * depth
    low = tl.min(tl.where(has_row, rows, num_owns), axis=0)
    high = tl.max(tl.where(has_row, rows, 0), axis=0) + 1
    rate, factor = 1.0 / tl.load(scalars), tl.load(scalars + 1)
    out = own_grad + (element * own_total + own_first + rows) * depth
    by_bandwidth, by_factor = tl.zeros((ROWS,), real), tl.zeros((ROWS,), real)
    for begin in range(first, last, COLUMNS):
        columns = begin + tl.arange(0, COLUMNS)
        has_column = columns < num_others
        has_pair = has_row[:, None] & has_column[None, :]
        is_seen = begin >= 0
        if HAS_ROWS and not IS_QUERY:
            begins = tl.load(start + masks + columns, has_column, num_owns)
            ends = tl.load(stop + masks + columns, has_column, 0)
            is_seen = tl.max(((begins < high) & (ends > low) & (ends > begins)).to(tl.int32), axis=0) > 0
            # Outside the intervals the slopes may be uninitialised.
            has_pair = has_pair & (begins[None, :] < high) & (ends[None, :] > low)
        if is_seen:
            outer = tl.load(
                slopes + element * slope_plane + rows[:, None] * own_stride + columns[None, :] * other_stride,
                has_pair, 0.0,
            ).to(real)  # fmt: skip
            squared = squared_distances(left, right, rows, columns, has_row, has_column, depth, scalars)
            is_zero = outer == 0.0
            slope = tl.where(is_zero, 0.0, outer * log_kernel_slope(squared, PROFILE))
            by_factor += tl.sum(tl.where(is_zero, 0.0, outer * log_kernel(squared, PROFILE)), axis=1)
            by_bandwidth += tl.sum(tl.where(is_zero, 0.0, slope * squared), axis=1)
            for d in range(depth):
                # Differences are taken first, for accuracy far from the origin. Only one thread reads and writes each
                # sum.
                q = tl.load(left + rows * depth + d, has_row, 0.0).to(real)
                k = tl.load(right + columns * depth + d, has_column, 0.0).to(real)
                part = tl.sum(tl.where(is_zero, 0.0, slope * (q[:, None] - k[None, :])), axis=1)
                sofar = tl.load(out + d, has_row, 0.0)
                tl.store(out + d, sofar + part * (2.0 * factor * rate * rate), has_row)
                tl.debug_barrier()
    if IS_QUERY:
        offsets = element * num_queries + first_row + rows
        tl.store(sums + offsets, -2.0 * rate * factor * by_bandwidth, has_row)
        tl.store(sums + batch * num_queries + offsets, by_factor, has_row)
