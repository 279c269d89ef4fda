"""Numba kernels between two products in mixed precision: normalisation, dropout with residual sum, rectifier.

Vectors on the residual path are float32; inputs and outputs of products are bfloat16 ("narrow"), passed as their bits
in int16. Each kernel reads its inputs once and writes its outputs once.
"""

import math
from functools import cache
from typing import Any, Final

import numpy as np
from numba import types

from heedful.cpu.checked_kernel import checked
from heedful.cpu.numba_cache import cached_njit
from heedful.cpu.numba_math import FLAGS, inlined, narrowed, widened

_ZERO: Final = np.float32(0.0)


@inlined(*FLAGS)
def _centre(row: np.ndarray, epsilon: float) -> tuple[Any, Any]:
    """Mean of a row, and one over its standard deviation."""
    size = np.float32(row.shape[0])
    total = _ZERO
    for k in range(row.shape[0]):
        total += row[k]
    mean = total / size
    squares = _ZERO
    for k in range(row.shape[0]):
        squares += (row[k] - mean) * (row[k] - mean)
    return mean, np.float32(1.0 / math.sqrt(squares / size + epsilon))


@checked(vectors="row feature", weight="feature", bias="feature", out="row feature", facts="row 2")
@cached_njit("contract")
def normalize(
    vectors: np.ndarray, weight: np.ndarray, bias: np.ndarray, epsilon: float, out: np.ndarray, facts: np.ndarray
) -> None:
    """Normalise rows.

    Args:
        vectors: [row, feature].
        weight: [feature].
        bias: [feature].
        out: [row, feature] out, narrow.
        facts: [row, 2] out: mean, and one over the standard deviation.
    """
    for i in range(vectors.shape[0]):
        row, out_row = vectors[i], out[i]
        mean, scale = _centre(row, epsilon)
        facts[i, 0] = mean
        facts[i, 1] = scale
        for k in range(row.shape[0]):
            out_row[k] = narrowed((row[k] - mean) * scale * weight[k] + bias[k])


@inlined(*FLAGS)
def _sum_up(
    row: np.ndarray, coming: np.ndarray, weight: np.ndarray, mean: Any, scale: Any, sums: np.ndarray
) -> tuple[Any, Any]:
    """Add to the gradients of weight and bias; return the means of the gradient and of gradient times normal row."""
    plain, crossed = _ZERO, _ZERO
    for k in range(row.shape[0]):
        gradient = widened(coming[k])
        normal = (row[k] - mean) * scale
        sums[0, k] += gradient * normal
        sums[1, k] += gradient
        plain += gradient * weight[k]
        crossed += gradient * weight[k] * normal
    return plain / np.float32(row.shape[0]), crossed / np.float32(row.shape[0])


@checked(
    vectors="row feature",
    weight="feature",
    facts="row 2",
    coming="row feature",
    residual="none or row feature",
    out="row feature",
    sums="2 feature",
)
@cached_njit("contract")
def normalize_backward(
    vectors: np.ndarray,
    weight: np.ndarray,
    facts: np.ndarray,
    coming: np.ndarray,
    residual: np.ndarray,
    out: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Differentiate `normalize`, and add the gradient of the residual path.

    Args:
        vectors: [row, feature].
        weight: [feature].
        facts: [row, 2] of `normalize`.
        coming: [row, feature] gradient of the normalised rows, narrow.
        residual: [row, feature] gradient of the residual path, or [0, feature] for none.
        out: [row, feature] gradient of the vectors, out.
        sums: [2, feature] gradients of weight and bias, added to.
    """
    for i in range(vectors.shape[0]):
        row, gradient, out_row = vectors[i], coming[i], out[i]
        mean, scale = facts[i, 0], facts[i, 1]
        plain, crossed = _sum_up(row, gradient, weight, mean, scale, sums)
        if residual.shape[0]:
            other = residual[i]
            for k in range(row.shape[0]):
                normal = (row[k] - mean) * scale
                out_row[k] = other[k] + scale * (widened(gradient[k]) * weight[k] - plain - normal * crossed)
        else:
            for k in range(row.shape[0]):
                normal = (row[k] - mean) * scale
                out_row[k] = scale * (widened(gradient[k]) * weight[k] - plain - normal * crossed)


@inlined()
def _hashed(index: Any, first: Any, second: Any) -> Any:
    """Hash of a position and two keys to 32 random-looking bits: two rounds of multiplying and folding."""
    mixed = np.uint32(np.uint32(index) + first)
    mixed = np.uint32((mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x7FEB352D))
    mixed = np.uint32(mixed ^ second)
    mixed = np.uint32((mixed ^ (mixed >> np.uint32(15))) * np.uint32(0x846CA68B))
    return np.uint32(mixed ^ (mixed >> np.uint32(16)))


@checked(residual="row feature", vectors="row feature", bias="none or feature", out="row feature")
@cached_njit("contract")
def add_dropped(
    residual: np.ndarray,
    vectors: np.ndarray,
    bias: np.ndarray,
    start: int,
    seed: int,
    threshold: int,
    scale: float,
    out: np.ndarray,
) -> None:
    """Apply dropout, and add the residual.

    Args:
        residual: [row, feature] float32.
        vectors: [row, feature] narrow.
        bias: [feature] added to the vectors first, or [0] for none.
        start: index of the first number among all; the dropout mask is a function of seed and index.
        seed: 64 bits.
        threshold: dropout probability times 2^32.
        scale: factor of the remaining numbers.
        out: [row, feature] float32 out.
    """
    first, second, limit = np.uint32(seed), np.uint32(seed >> 32), np.uint32(threshold)
    factor = np.float32(scale)
    size = residual.shape[1]
    for i in range(residual.shape[0]):
        offset = np.uint32(start + i * size)
        other, row, out_row = residual[i], vectors[i], out[i]
        if bias.shape[0]:
            for k in range(size):
                is_left_out = _hashed(np.uint32(k) + offset, first, second) < limit
                out_row[k] = other[k] + (_ZERO if is_left_out else (widened(row[k]) + bias[k]) * factor)
        else:
            for k in range(size):
                is_left_out = _hashed(np.uint32(k) + offset, first, second) < limit
                out_row[k] = other[k] + (_ZERO if is_left_out else widened(row[k]) * factor)


@checked(gradient="row feature", out="row feature", sums="none or feature")
@cached_njit("contract")
def drop(
    gradient: np.ndarray, start: int, seed: int, threshold: int, scale: float, out: np.ndarray, sums: np.ndarray
) -> None:
    """Differentiate `add_dropped` by its dropped input.

    Args:
        gradient: [row, feature] float32.
        start: as for `add_dropped`, like the next three.
        out: [row, feature] narrow, out.
        sums: [feature] gradient of the bias, added to, or [0] for none.
    """
    first, second, limit = np.uint32(seed), np.uint32(seed >> 32), np.uint32(threshold)
    factor = np.float32(scale)
    size = gradient.shape[1]
    for i in range(gradient.shape[0]):
        offset = np.uint32(start + i * size)
        row, out_row = gradient[i], out[i]
        for k in range(size):
            is_left_out = _hashed(np.uint32(k) + offset, first, second) < limit
            out_row[k] = narrowed(_ZERO if is_left_out else row[k] * factor)
        for k in range(sums.shape[0]):
            sums[k] += widened(out_row[k])


@checked(vectors="row feature", bias="feature")
@cached_njit("contract")
def rectify(vectors: np.ndarray, bias: np.ndarray) -> None:
    """Replace x by max(0, x + b).

    Args:
        vectors: [row, feature] narrow.
        bias: [feature].
    """
    for i in range(vectors.shape[0]):
        row = vectors[i]
        for k in range(row.shape[0]):
            total = widened(row[k]) + bias[k]
            # The reverse comparison would lose NaN.
            row[k] = narrowed(_ZERO if total < _ZERO else total)


@checked(rectified="row feature", gradient="row feature", out="row feature", sums="feature")
@cached_njit("contract")
def rectify_backward(rectified: np.ndarray, gradient: np.ndarray, out: np.ndarray, sums: np.ndarray) -> None:
    """Differentiate `rectify`.

    Args:
        rectified: [row, feature] narrow.
        gradient: [row, feature] of it, narrow.
        out: [row, feature] gradient of the vectors, narrow, out.
        sums: [feature] gradient of the bias, added to.
    """
    for i in range(rectified.shape[0]):
        row, coming, out_row = rectified[i], gradient[i], out[i]
        for k in range(row.shape[0]):
            out_row[k] = np.int16(0) if widened(row[k]) <= _ZERO else coming[k]
            sums[k] += widened(out_row[k])


@cache
def compile_all() -> None:
    """Compile all kernels, or load them from disk; they release the interpreter lock.

    Cost: a few seconds the first time on a machine.
    """
    wide, narrow, whole, real = types.float32, types.int16, types.int64, types.float64
    table, small = wide[:, ::1], narrow[:, ::1]
    chance = (whole, whole, whole, real)
    signatures: tuple[tuple[Any, tuple[Any, ...]], ...] = (
        (normalize, (table, wide[::1], wide[::1], real, small, table)),
        (normalize_backward, (table, wide[::1], table, small, table, table, table)),
        (add_dropped, (table, small, wide[::1], *chance, table)),
        (drop, (table, *chance, small, wide[::1])),
        (rectify, (small, wide[::1])),
        (rectify_backward, (small, small, small, wide[::1])),
    )
    for loop, signature in signatures:
        loop.compile(signature)
