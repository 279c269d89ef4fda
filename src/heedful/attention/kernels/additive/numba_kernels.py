"""Compilation of the numba kernels of additive scores; no PyTorch here.

With A = e^(2 (a + c)) / 2 of a query feature, B = e^(2 (b - c)) of a key feature and F = A B - 1/2,

    tanh(a + b) = F / (1 + F)

so n queries and m keys cost n + m exponentials per feature instead of n * m tanh. Two features share a division:

    v tanh + w tanh' = (v F + w G + (v + w) F G) / ((1 + F) (1 + G))

F is one fused multiply-add, so near 0 it is as accurate as A and B, and their rounding is corrected to first order:
`exponentials` keeps the relative error r of each, and sum_h v_h r_h / 2 of the row and of the key are added to the
score. This removes the error near 0, where tanh has slope 1; where tanh is flat, the correction is negligible.

A *slot* is a position in a row of A or B; `order[slot]` is its feature, -1 = none (A = 1/2, B = 1, F = 0). Slots s and
s + num_slots / 2 share a division. num_slots is a multiple of `BLOCK`, so vector loops have no remainder. In `plan` and
`limit_queries`, `limit` bounds a + b, summed over a division, so that nothing overflows; where |a + b| is above
`saturated`, tanh is 1 or -1.

Compiler notes. 'contract' alone allows the fused multiply-add. 'reassoc', which a sum over vector lanes needs, would
split F, so only functions that merely add use it; an inlined function keeps its own flags. No flag promises finite
numbers, because NaN must propagate. Loops run from 0 over slices, because an index that could be negative is compiled
to a gather. Bounds are not checked.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types

from heedful.attention.kernels.additive.numba_backward import gradients
from heedful.attention.kernels.additive.numba_exponentials import BLOCK, exponentials, limit_queries, plan
from heedful.attention.kernels.additive.numba_forward import score_all, scores


class Loops(NamedTuple):
    """All compiled kernels."""

    plan: Callable[..., Any]
    limit_queries: Callable[..., Any]
    exponentials: Callable[..., Any]
    scores: Callable[..., Any]
    score_all: Callable[..., Any]
    gradients: Callable[..., Any]
    block: int
    """Slots that `gradients` processes at a time."""


@cache
def compiled(dtype: np.dtype) -> Loops:
    """Compile all kernels for a floating-point width, or load them from disk.

    Args:
        dtype: float32 or float64.

    Returns:
        The compiled kernels.

    Cost: 5 s the first time on a machine, 0.3 s in each process after it.
    """
    number = types.float64 if dtype == np.float64 else types.float32
    row, table, cube = number[::1], number[:, ::1], number[:, :, ::1]
    small, small_cube = types.int16[:, ::1], types.int16[:, :, ::1]
    whole, real, places = types.int64, types.float64, types.int64[::1]
    key = (cube, places, table, cube, small_cube)
    signatures: tuple[tuple[Any, tuple[Any, ...]], ...] = (
        (plan, (table, table, real, real)),
        (limit_queries, (table, row, row, row, row, places, real, real)),
        (exponentials, (table, places, table, whole, whole, table, small)),
        (scores, (cube, places, table, *key, places, row, real, whole, whole, cube)),
        (score_all, (cube, places, row, *key, row, row, row, places, real, real, cube)),
        (gradients, (cube, places, table, *key, places, places, row, cube, *[whole] * 4, cube, cube, real[::1])),
    )
    for loop, signature in signatures:
        loop.compile(signature)
    return Loops(plan, limit_queries, exponentials, scores, score_all, gradients, BLOCK)
