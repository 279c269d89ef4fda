"""Triton kernels of fused attention, scores to contexts in one pass, and of its gradients, for GPUs.

A program iterates a tile of queries over the keys that any of them may attend. Scores of a tile of keys are read from a
strip or computed on the fly (dot products, distances), masked, and accumulated by the online softmax (Milakov and
Gimelshein 2018, arXiv:1805.02867), with noise for drawn keys. The backward pass recomputes the weights from the stored
log normalizers. Each number is written by one program, so the order of sums is the same in every run. Noise and dropout
are functions of (seed, row, key), the same as in heedful/attention/stochastic.py.

Computations have the dtype of `scalars` (float32, or float64 in the interpreter), whatever the dtype of the inputs.
`index` is [6, batch] int64: for each batch element, the indices of its queries, keys, values, rows (of masks, noise and
summaries) and table, and whether it is the first element with those rows. `scalars` holds the bandwidth, the inverse
temperature of distances, the scale of the noise, 1 / sigma, the scale of weights that dropout keeps and the unit of the
bandwidth (`profiles.unit_of`); `seeds` holds the seeds of noise and dropout, and 2^53 times the probability of dropout.
"""

# Type checkers run without Triton, and its kernels have no Python types.
# pyright: reportMissingImports=false, reportUntypedFunctionDecorator=false, reportMissingParameterType=false

import triton
import triton.language as tl

from heedful.attention.kernels.distance.triton_kernels import log1p, log_kernel, squared_distances

STRIP: tl.constexpr = tl.constexpr(0)
DOT: tl.constexpr = tl.constexpr(1)
DISTANCE: tl.constexpr = tl.constexpr(2)

_STEP: tl.constexpr = tl.constexpr(0x9E3779B97F4A7C15 - (1 << 64))
_FIRST_FACTOR: tl.constexpr = tl.constexpr(0xBF58476D1CE4E5B9 - (1 << 64))
_SECOND_FACTOR: tl.constexpr = tl.constexpr(0x94D049BB133111EB - (1 << 64))
_MASK_34: tl.constexpr = tl.constexpr((1 << 34) - 1)
_MASK_37: tl.constexpr = tl.constexpr((1 << 37) - 1)
_MASK_33: tl.constexpr = tl.constexpr((1 << 33) - 1)
_MASK_53: tl.constexpr = tl.constexpr((1 << 53) - 1)
_UNIT: tl.constexpr = tl.constexpr(2.0**-53)
_SMALLEST: tl.constexpr = tl.constexpr(2.0**-54)
_LOWEST: tl.constexpr = tl.constexpr(-3.0e38)
_DEPTH: tl.constexpr = tl.constexpr(32)


@triton.jit
def mix(state):
    """Compute SplitMix64's output function.

    Args:
        state: any shape, int64.

    Returns:
        The same shape.
    """
    state = (state ^ ((state >> 30) & _MASK_34)) * _FIRST_FACTOR
    state = (state ^ ((state >> 27) & _MASK_37)) * _SECOND_FACTOR
    return state ^ ((state >> 31) & _MASK_33)


@triton.jit
def bits_of(seed, rows, places):
    """Make 53 random bits for rows and keys.

    Args:
        seed: [] int64.
        rows: [row, 1] int64.
        places: [row or 1, key] int64.

    Returns:
        [row, key] int64.
    """
    return (mix(mix(mix(seed + _STEP) + rows * _STEP) + (places + 1) * _STEP) >> 11) & _MASK_53


@triton.jit
def gumbel(bits, real: tl.constexpr):
    """Turn random bits into noise -log(-log u).

    Args:
        bits: [row, key] int64, 53 of them.

    Returns:
        [row, key].
    """
    if real == tl.float64:
        uniform = tl.minimum(tl.maximum(bits.to(real) * _UNIT, _SMALLEST), 1.0 - 2.0**-53)
    else:
        uniform = tl.minimum(tl.maximum(bits.to(real) * _UNIT, _SMALLEST), 1.0 - 2.0**-24)
    return -tl.log(-log1p(-uniform))


@triton.jit
def scores_of(
    query, key, scores, scalars, rows, columns, has_row, has_column, num_keys, depth,
    KIND: tl.constexpr, PROFILE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Load or compute the scores of a tile.

    Args:
        scalars: [6].
        rows: [row].
        columns: [key].
        has_row: [row].
        has_column: [key].
        KIND: where scores come from.

    Returns:
        [row, key] scores, and whether there is one.
    """
    real = scalars.dtype.element_ty
    exists = has_row[:, None] & has_column[None, :]
    if KIND == STRIP:
        tile = tl.load(scores + rows[:, None] * num_keys + columns[None, :], exists, 0.0).to(real)
    elif KIND == DOT:
        tile = tl.zeros((rows.shape[0], columns.shape[0]), real)
        for first in range(0, depth, _DEPTH):
            d = first + tl.arange(0, _DEPTH)
            q = tl.load(query + rows[:, None] * depth + d[None, :], has_row[:, None] & (d < depth)[None, :], 0.0)
            k = tl.load(key + columns[None, :] * depth + d[:, None], has_column[None, :] & (d < depth)[:, None], 0.0)
            tile += tl.dot(q.to(real), k.to(real), input_precision=PRECISION, out_dtype=real)
    else:
        squared = squared_distances(query, key, rows, columns, has_row, has_column, depth, scalars)
        tile = log_kernel(squared, PROFILE) * tl.load(scalars + 1)
        tile = tl.where(tile < _LOWEST, _LOWEST, tile)
        if (PROFILE == 2) | (PROFILE == 3) | (PROFILE == 4):
            exists = exists & (squared < 1.0)
    return tile, exists


@triton.jit
def allowed_of(
    start, stop, dense, rows, columns, exists, dense_stride, HAS_ROWS: tl.constexpr, HAS_DENSE: tl.constexpr
):
    """Mask a tile.

    Args:
        start: [row] first key.
        stop: [row] one past the last.
        rows: [row].
        columns: [key].
        exists: [row, key].
        dense_stride: of rows of the table, 0 where all have one.
        HAS_ROWS: whether there are intervals.
        HAS_DENSE: whether there is a table.

    Returns:
        [row, key] bool.
    """
    if HAS_ROWS:
        exists = exists & (columns[None, :] >= start[:, None]) & (columns[None, :] < stop[:, None])
    if HAS_DENSE:
        exists = exists & (tl.load(dense + rows[:, None] * dense_stride + columns[None, :], exists, 0) != 0)
    return exists


@triton.jit
def attend_rows(
    query, key, value, scores, index, start, stop, dense, centre, scalars, seeds, context, summaries, best, weights,
    batch, rows_plane, num_queries, num_keys, depth, value_size, first_row, num_rows, dense_stride,
    KIND: tl.constexpr, PROFILE: tl.constexpr, HAS_ROWS: tl.constexpr, HAS_DENSE: tl.constexpr,
    HAS_GAUSSIAN: tl.constexpr, HAS_NOISE: tl.constexpr, IS_RELAXED: tl.constexpr, IS_ONE_HOT: tl.constexpr,
    HAS_DROPOUT: tl.constexpr, HAS_WEIGHTS: tl.constexpr, PRECISION: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Compute attention of a tile of queries, for a block of the values' features.

    Args:
        query: [query batch, query, depth].
        key: [key batch, key, depth].
        value: [value batch, key, value_size].
        scores: [batch, num_rows, key] of STRIP.
        index: [6, batch].
        start: [rows batch, query] int64.
        stop: [rows batch, query] int64.
        dense: [table batch, query or 1, key] bool.
        centre: [rows batch, query].
        scalars: [6].
        seeds: [3].
        context: [batch, query, value_size], out.
        summaries: [3, rows batch, query], out: log normalizer, entropy, log probability of the key that was drawn.
        best: [rows batch, query] int64, out: key of the largest weight.
        weights: [rows batch, query, key], out where HAS_WEIGHTS, zeros before.
        rows_plane: rows batch * query.
        dense_stride: of rows of the table, 0 where all have one.
        KIND: where scores come from.
        HAS_ROWS: whether there are intervals.
        HAS_DENSE: whether there is a table.
        HAS_GAUSSIAN: whether weights are multiplied by one.
        HAS_NOISE: whether scores are disturbed.
        IS_RELAXED: whether weights are those of disturbed scores.
        IS_ONE_HOT: whether the best key gets all weight.
        HAS_DROPOUT: whether weights are left out.
        HAS_WEIGHTS: whether weights are written.
        PRECISION: of products of matrices: "ieee", or "tf32", which holds 16-bit inputs and weights as exact as those.
        COLUMNS: keys of a tile, a power of two.
    """
    real = scalars.dtype.element_ty
    num_blocks, num_tiles = tl.cdiv(value_size, WIDTH), tl.cdiv(num_rows, ROWS)
    element = (tl.program_id(0) // (num_blocks * num_tiles)).to(tl.int64)
    block = tl.program_id(0) % num_blocks
    local = tl.program_id(0) // num_blocks % num_tiles * ROWS + tl.arange(0, ROWS)
    has_row, rows = local < num_rows, first_row + local
    features = block * WIDTH + tl.arange(0, WIDTH)
    has_feature = features < value_size
    query += tl.load(index + element) * num_queries * depth + first_row * depth
    key += tl.load(index + batch + element) * num_keys * depth
    value += tl.load(index + 2 * batch + element) * num_keys * value_size
    own = tl.load(index + 3 * batch + element) * num_queries
    dense += tl.load(index + 4 * batch + element) + first_row * dense_stride
    scores += element * num_rows * num_keys
    first, last = 0, num_keys
    left, right = rows, rows
    if HAS_ROWS:
        left, right = tl.load(start + own + rows, has_row, num_keys), tl.load(stop + own + rows, has_row, 0)
        first = tl.maximum(tl.min(left, axis=0), 0).to(tl.int32) // COLUMNS * COLUMNS
        last = tl.minimum(tl.max(right, axis=0), num_keys).to(tl.int32)
    middle = tl.zeros((ROWS,), real)
    if HAS_GAUSSIAN:
        middle = tl.load(centre + own + rows, has_row, 0.0).to(real)
    highest = tl.full((ROWS,), float("-inf"), real)
    top, top_score = highest, tl.zeros((ROWS,), real)
    total, moment = tl.zeros((ROWS,), real), tl.zeros((ROWS,), real)
    best_key = tl.zeros((ROWS,), tl.int64)
    sums = tl.zeros((ROWS, WIDTH), real)
    for begin in range(first, last, COLUMNS):
        columns = begin + tl.arange(0, COLUMNS)
        has_column = columns < num_keys
        tile, exists = scores_of(
            query, key, scores, scalars, local, columns, has_row, has_column, num_keys, depth,
                KIND, PROFILE, PRECISION,
        )  # fmt: skip
        may = allowed_of(left, right, dense, local, columns, exists, dense_stride, HAS_ROWS, HAS_DENSE)
        noisy = tile
        if HAS_NOISE:
            ids = (own + rows)[:, None]
            noisy += gumbel(bits_of(tl.load(seeds), ids, columns[None, :].to(tl.int64)), real) * tl.load(scalars + 2)
        level = tl.where(may, noisy if IS_RELAXED else tile, float("-inf"))
        bell = tl.zeros((ROWS, COLUMNS), real)
        if HAS_GAUSSIAN:
            bell = (columns[None, :].to(real) - middle[:, None]) * tl.load(scalars + 3)
            bell = -0.5 * bell * bell
        raised = tl.maximum(highest, tl.max(level, axis=1))
        base = tl.where(raised == float("-inf"), 0.0, raised)
        decay = tl.exp(highest - base)
        parts = tl.exp(level - base[:, None])
        # The entropy as the sum of parts times their logarithms, without large numbers that cancel.
        moment = (moment + total * tl.where(highest == float("-inf"), 0.0, highest - base)) * decay
        moment += tl.sum(parts * tl.where(may, level - base[:, None], 0.0), axis=1)
        total = total * decay + tl.sum(parts, axis=1)
        highest = raised
        if not IS_ONE_HOT:
            shares = parts * tl.exp(bell) if HAS_GAUSSIAN else parts
            if HAS_DROPOUT:
                drawn = bits_of(tl.load(seeds + 1), (own + rows)[:, None], columns[None, :].to(tl.int64))
                shares = tl.where(drawn >= tl.load(seeds + 2), shares * tl.load(scalars + 4), 0.0)
            has_number = has_column[:, None] & has_feature[None, :]
            loaded = tl.load(value + columns[:, None] * value_size + features[None, :], has_number, 0.0)
            sums = sums * decay[:, None] + tl.dot(shares, loaded.to(real), input_precision=PRECISION, out_dtype=real)
        rank = tl.where(may, noisy if IS_ONE_HOT else noisy + bell, float("-inf"))
        peak, at = tl.max(rank, axis=1, return_indices=True)
        is_better = peak > top
        top = tl.where(is_better, peak, top)
        best_key = tl.where(is_better, begin + at.to(tl.int64), best_key)
        # Select one number of each row by summing the row with all others zero.
        chosen = tl.sum(tl.where(columns[None, :] == best_key[:, None], tl.where(may, tile, 0.0), 0.0), axis=1)
        top_score = tl.where(is_better, chosen, top_score)
    is_empty = highest == float("-inf")
    inverse = 1.0 / tl.where(is_empty, 1.0, total)
    normalizer = tl.where(is_empty, float("-inf"), highest + tl.log(tl.where(is_empty, 1.0, total)))
    only = tl.where(is_empty, 0.0, 1.0).to(real)
    if IS_ONE_HOT:
        if HAS_GAUSSIAN:
            away = (best_key.to(real) - middle) * tl.load(scalars + 3)
            only *= tl.exp(-0.5 * away * away)
        weight = only
        if HAS_DROPOUT:
            drawn = bits_of(tl.load(seeds + 1), (own + rows)[:, None], best_key[:, None])
            weight *= tl.sum(tl.where(drawn >= tl.load(seeds + 2), tl.load(scalars + 4), 0.0), axis=1)
        has_any = has_row & (is_empty == 0)
        loaded = tl.load(
            value + best_key[:, None] * value_size + features[None, :], has_any[:, None] & has_feature[None, :], 0.0
        )  # fmt: skip
        result = loaded.to(real) * weight[:, None]
    else:
        result = sums * inverse[:, None]
    out = context + element * num_queries * value_size + rows[:, None] * value_size + features[None, :]
    tl.store(out, result, has_row[:, None] & has_feature[None, :])
    if block == 0:
        entropy = tl.where(is_empty, 0.0, normalizer - tl.where(is_empty, 0.0, highest) - moment * inverse)
        tl.store(summaries + own + rows, normalizer, has_row)
        tl.store(summaries + rows_plane + own + rows, entropy, has_row)
        tl.store(summaries + 2 * rows_plane + own + rows, tl.where(is_empty, 0.0, top_score - normalizer), has_row)
        tl.store(best + own + rows, best_key, has_row)
        if HAS_WEIGHTS:
            for begin in range(first, last, COLUMNS):
                columns = begin + tl.arange(0, COLUMNS)
                has_column = columns < num_keys
                if IS_ONE_HOT:
                    shares = tl.where(columns[None, :] == best_key[:, None], only[:, None], 0.0)
                else:
                    tile, exists = scores_of(
                        query, key, scores, scalars, local, columns, has_row, has_column, num_keys, depth,
                KIND, PROFILE, PRECISION,
                    )  # fmt: skip
                    may = allowed_of(left, right, dense, local, columns, exists, dense_stride, HAS_ROWS, HAS_DENSE)
                    if HAS_NOISE:
                        ids = (own + rows)[:, None]
                        drawn = bits_of(tl.load(seeds), ids, columns[None, :].to(tl.int64))
                        tile += gumbel(drawn, real) * tl.load(scalars + 2)
                    shares = tl.exp(tl.where(may, tile, float("-inf")) - tl.where(is_empty, 0.0, normalizer)[:, None])
                    if HAS_GAUSSIAN:
                        bell = (columns[None, :].to(real) - middle[:, None]) * tl.load(scalars + 3)
                        shares *= tl.exp(-0.5 * bell * bell)
                written = weights + (own + rows)[:, None] * num_keys + columns[None, :]
                tl.store(written, shares, has_row[:, None] & has_column[None, :])


@triton.jit
def slope_rows(
    query, key, value, scores, index, start, stop, dense, centre, scalars, seeds, context, summaries, best, grad,
    summary_grads, slopes, weights, sums, batch, rows_plane, num_queries, num_keys, depth, value_size, first_row,
    num_rows, dense_stride,
    KIND: tl.constexpr, PROFILE: tl.constexpr, HAS_ROWS: tl.constexpr, HAS_DENSE: tl.constexpr,
    HAS_GAUSSIAN: tl.constexpr, HAS_NOISE: tl.constexpr, IS_RELAXED: tl.constexpr, IS_ONE_HOT: tl.constexpr,
    HAS_DROPOUT: tl.constexpr, IS_SOFT_BACKWARD: tl.constexpr, PRECISION: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Compute gradients of the scores of a tile of queries, and write their weights.

    Args:
        query: as for `attend_rows`, as are all that are not named here.
        scores: [batch, num_rows, key] of STRIP; may be the same as `slopes`.
        index: [6, batch].
        scalars: [6].
        seeds: [3].
        context: [batch, query, value_size] from forward.
        summaries: [3, rows batch, query] from forward.
        best: [rows batch, query] from forward.
        grad: [batch, query, value_size] of the contexts.
        summary_grads: [3, rows batch, query].
        slopes: [batch, num_rows, key], out, where a row of its tile may attend a key of that tile.
        weights: [batch, num_rows, key], out, as `slopes`: weights of the values, after dropout.
        sums: [3, batch, query], out: gradients of centre, sigma and scale of the noise.
        rows_plane: rows batch * query.
        KIND: where scores come from.
        HAS_ROWS: whether there are intervals.
        HAS_DENSE: whether there is a table.
        HAS_GAUSSIAN: whether weights are multiplied by one.
        HAS_NOISE: whether scores are disturbed.
        IS_RELAXED: whether weights are those of disturbed scores.
        IS_ONE_HOT: whether the best key got all weight.
        HAS_DROPOUT: whether weights are left out.
        IS_SOFT_BACKWARD: whether gradient of the contexts reaches the scores.
        WIDTH: features read at a time.
    """
    real = scalars.dtype.element_ty
    num_tiles = tl.cdiv(num_rows, ROWS)
    element = (tl.program_id(0) // num_tiles).to(tl.int64)
    local = tl.program_id(0) % num_tiles * ROWS + tl.arange(0, ROWS)
    has_row, rows = local < num_rows, first_row + local
    query += tl.load(index + element) * num_queries * depth + first_row * depth
    key += tl.load(index + batch + element) * num_keys * depth
    value += tl.load(index + 2 * batch + element) * num_keys * value_size
    own = tl.load(index + 3 * batch + element) * num_queries
    dense += tl.load(index + 4 * batch + element) + first_row * dense_stride
    is_first = tl.load(index + 5 * batch + element).to(real)
    strip = element * num_rows * num_keys
    offsets = element * num_queries * value_size + rows[:, None] * value_size
    first, last = 0, num_keys
    left, right = rows, rows
    if HAS_ROWS:
        left, right = tl.load(start + own + rows, has_row, num_keys), tl.load(stop + own + rows, has_row, 0)
        first = tl.maximum(tl.min(left, axis=0), 0).to(tl.int32) // COLUMNS * COLUMNS
        last = tl.minimum(tl.max(right, axis=0), num_keys).to(tl.int32)
    middle = tl.zeros((ROWS,), real)
    if HAS_GAUSSIAN:
        middle = tl.load(centre + own + rows, has_row, 0.0).to(real)
    normalizer = tl.load(summaries + own + rows, has_row, float("-inf"))
    entropy = tl.load(summaries + rows_plane + own + rows, has_row, 0.0)
    best_key = tl.load(best + own + rows, has_row, 0)
    is_empty = normalizer == float("-inf")
    normalizer = tl.where(is_empty, 0.0, normalizer)
    by_normalizer = tl.load(summary_grads + own + rows, has_row, 0.0) * is_first
    by_entropy = tl.load(summary_grads + rows_plane + own + rows, has_row, 0.0) * is_first
    by_draw = tl.load(summary_grads + 2 * rows_plane + own + rows, has_row, 0.0) * is_first
    # Of a query that attends to nothing, the logarithm is infinite, and so may its gradient be.
    by_normalizer = tl.where(is_empty, 0.0, by_normalizer)
    by_entropy = tl.where(is_empty, 0.0, by_entropy)
    by_draw = tl.where(is_empty, 0.0, by_draw)
    mean = tl.zeros((ROWS,), real)
    if IS_SOFT_BACKWARD and not IS_ONE_HOT:
        for block in range(0, value_size, WIDTH):
            features = block + tl.arange(0, WIDTH)
            has = has_row[:, None] & (features < value_size)[None, :]
            outer = tl.load(grad + offsets + features[None, :], has, 0.0).to(real)
            mean += tl.sum(outer * tl.load(context + offsets + features[None, :], has, 0.0).to(real), axis=1)
    by_centre, by_sigma = tl.zeros((ROWS,), real), tl.zeros((ROWS,), real)
    by_noise = tl.zeros((ROWS,), real)
    # If the forward weights are not the differentiated ones, a first pass computes the row sums that the slopes need.
    for turn in tl.static_range(0 if IS_SOFT_BACKWARD and IS_ONE_HOT else 1, 2):
        for begin in range(first, last, COLUMNS):
            columns = begin + tl.arange(0, COLUMNS)
            has_column = columns < num_keys
            tile, exists = scores_of(
                query, key, scores + strip, scalars, local, columns, has_row, has_column, num_keys, depth,
                KIND, PROFILE, PRECISION,
            )  # fmt: skip
            may = allowed_of(left, right, dense, local, columns, exists, dense_stride, HAS_ROWS, HAS_DENSE)
            ids, keys = (own + rows)[:, None], columns[None, :].to(tl.int64)
            noise = tl.zeros((ROWS, COLUMNS), real)
            if HAS_NOISE and IS_RELAXED:
                noise = gumbel(bits_of(tl.load(seeds), ids, keys), real)
                tile += noise * tl.load(scalars + 2)
            level = tl.where(may, tile - normalizer[:, None], 0.0)
            soft = tl.where(may, tl.exp(level), 0.0)
            is_best = (keys == best_key[:, None]) & (is_empty == 0)[:, None]
            shares = tl.where(is_best, 1.0, 0.0).to(real) if IS_ONE_HOT else soft
            scale = tl.full((ROWS, COLUMNS), 1.0, real)
            away = scale
            if HAS_GAUSSIAN:
                away = (columns[None, :].to(real) - middle[:, None]) * tl.load(scalars + 3)
                scale = tl.exp(-0.5 * away * away)
            if HAS_DROPOUT:
                drawn = bits_of(tl.load(seeds + 1), ids, keys)
                scale = tl.where(drawn >= tl.load(seeds + 2), scale * tl.load(scalars + 4), 0.0)
            through = tl.zeros((ROWS, COLUMNS), real)
            for block in range(0, value_size, WIDTH):
                features = block + tl.arange(0, WIDTH)
                has_feature = features < value_size
                outer = tl.load(grad + offsets + features[None, :], has_row[:, None] & has_feature[None, :], 0.0)
                loaded = tl.load(
                    value + columns[None, :] * value_size + features[:, None],
                    has_column[None, :] & has_feature[:, None], 0.0,
                )  # fmt: skip
                through += tl.dot(outer.to(real), loaded.to(real), input_precision=PRECISION, out_dtype=real)
            through = tl.where(may, through * scale, 0.0)
            if turn == 0:
                mean += tl.sum(soft * through, axis=1)
            else:
                inner = by_normalizer[:, None] - by_entropy[:, None] * (level + entropy[:, None])
                if IS_SOFT_BACKWARD:
                    inner += through - mean[:, None]
                slope = soft * (inner - by_draw[:, None]) + tl.where(is_best, by_draw[:, None], 0.0)
                if HAS_GAUSSIAN:
                    pull = tl.where(may, shares * through * away * tl.load(scalars + 3), 0.0)
                    by_centre += tl.sum(pull, axis=1)
                    by_sigma += tl.sum(pull * away, axis=1)
                if HAS_NOISE and IS_RELAXED:
                    by_noise += tl.sum(slope * noise, axis=1)
                out = strip + local[:, None] * num_keys + columns[None, :]
                inside = has_row[:, None] & has_column[None, :]
                tl.store(slopes + out, slope, inside)
                tl.store(weights + out, shares * scale, inside)
    plane = batch * num_queries
    tl.store(sums + element * num_queries + rows, by_centre, has_row)
    tl.store(sums + plane + element * num_queries + rows, by_sigma, has_row)
    tl.store(sums + 2 * plane + element * num_queries + rows, by_noise, has_row)


@triton.jit
def add_products(
    table, rows_of, index, start, stop, out, batch, num_owns, num_others, size, own_stride, other_stride, table_plane,
    num_queries, first_row, index_row,
    IS_QUERY: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Add the products of a strip's table with rows of the other side, only where queries may attend.

    Args:
        table: [batch, query of the strip, key] by its strides.
        rows_of: [*, other, size] the other side's rows.
        index: [6, batch].
        start: [rows batch, query].
        stop: [rows batch, query].
        out: [batch, own, size], added to.
        index_row: row of index for `rows_of`; -1 for the element itself.
        IS_QUERY: whether own are the queries of the strip; else they are all keys.
    """
    real = out.dtype.element_ty
    num_tiles, num_blocks = tl.cdiv(num_owns, ROWS), tl.cdiv(size, WIDTH)
    element = (tl.program_id(0) // (num_tiles * num_blocks)).to(tl.int64)
    features = tl.program_id(0) % num_blocks * WIDTH + tl.arange(0, WIDTH)
    rows = tl.program_id(0) // num_blocks % num_tiles * ROWS + tl.arange(0, ROWS)
    has_row, has_feature = rows < num_owns, features < size
    masks = tl.load(index + 3 * batch + element) * num_queries + first_row
    right, other_total, own_total, own_first = element, num_queries, num_owns, 0
    if index_row >= 0:
        right = tl.load(index + index_row * batch + element)
    first, last = 0, num_others
    if IS_QUERY:
        other_total, own_total, own_first = num_others, num_queries, first_row
        first = tl.maximum(tl.min(tl.load(start + masks + rows, has_row, num_others), axis=0), 0).to(tl.int32)
        first = first // COLUMNS * COLUMNS
        last = tl.minimum(tl.max(tl.load(stop + masks + rows, has_row, 0), axis=0), num_others).to(tl.int32)
        rows_of += right * other_total * size
    else:
        rows_of += (right * other_total + first_row) * size
    low = tl.min(tl.where(has_row, rows, num_owns), axis=0)
    high = tl.max(tl.where(has_row, rows, 0), axis=0) + 1
    total = tl.zeros((ROWS, WIDTH), real)
    for begin in range(first, last, COLUMNS):
        columns = begin + tl.arange(0, COLUMNS)
        has_pair = has_row[:, None] & (columns < num_others)[None, :]
        is_seen = begin >= 0
        if not IS_QUERY:
            begins = tl.load(start + masks + columns, columns < num_others, num_owns)
            ends = tl.load(stop + masks + columns, columns < num_others, 0)
            sees = (begins < high) & (ends > low) & (ends > begins)
            is_seen = tl.max(sees.to(tl.int32), axis=0) > 0
            has_pair = has_pair & sees[None, :]
        if is_seen:
            pointers = table + element * table_plane + rows[:, None] * own_stride + columns[None, :] * other_stride
            factors = tl.load(pointers, has_pair, 0.0).to(real)
            others = tl.load(
                rows_of + columns[:, None] * size + features[None, :],
                (columns < num_others)[:, None] & has_feature[None, :], 0.0,
            ).to(real)  # fmt: skip
            total += tl.dot(factors, others, input_precision="ieee", out_dtype=real)
    pointers = out + (element * own_total + own_first + rows)[:, None] * size + features[None, :]
    inside = has_row[:, None] & has_feature[None, :]
    tl.store(pointers, tl.load(pointers, inside, 0.0) + total, inside)
