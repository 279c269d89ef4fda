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

from collections.abc import Callable, Mapping
from functools import cache
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
from numba import types

from heedful.attention.kernels.additive.numba_backward import gradients
from heedful.attention.kernels.additive.numba_exponentials import BLOCK, exponentials, limit_queries, plan
from heedful.attention.kernels.additive.numba_forward import score_all, scores
from heedful.cpu.checked_kernel import CheckedKernel, checked, self_checked
from heedful.cpu.numba_ranges import is_within


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


_COMPILING: Final = Lock()
"""Held while kernels may be compiled: one thread must not forbid it while another compiles."""


@cache
def compiled(dtype: np.dtype) -> Loops:
    """Compile all kernels for a floating-point width, or load them from disk.

    Args:
        dtype: float32 or float64.

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
    with _COMPILING:
        for loop, signature in signatures:
            loop.disable_compile(False)
            loop.compile(signature)
        # Numba would take half a minute to find that it cannot compile these for an array with an axis too many.
        for loop in (scores, score_all, gradients):
            loop.disable_compile()
    # The kernels call one another; only calls from Python are checked.
    kernels = {loop.__name__: _CHECKS[loop.__name__](loop) for loop, _ in signatures}
    return Loops(block=BLOCK, **kernels)


_KEYS: Final = {
    "query": "query_batch row hidden",
    "query_index": "batch",
    "key": "key_batch key hidden",
    "key_index": "batch",
    "key_bounds": "3 slots",
    "exp_key": "none or exp_batch key slot",
    "exp_rounding": "none or exp_batch key slot",
    "order": "slot",
}


def _is_order_within(arguments: tuple[Any, ...], sizes: Mapping[str, int]) -> bool:
    return is_within(arguments[5], -1, sizes["hidden"])


def _are_exponents_within(arguments: tuple[Any, ...], sizes: Mapping[str, int]) -> bool:
    return 0 <= arguments[4] <= sizes["slot"] - sizes["width"] and is_within(arguments[1], -1, sizes["hidden"])


_CHECKS: Final[Mapping[str, Callable[[Any], CheckedKernel]]] = {
    "plan": checked(key="key hidden", query="row hidden"),
    "limit_queries": checked(
        _is_order_within,
        query="row hidden",
        vector="hidden",
        centre="hidden",
        lowest="hidden",
        highest="hidden",
        order="slot",
    ),
    "exponentials": checked(
        _are_exponents_within,
        rows="row hidden",
        order="slot",
        bounds="3 slot",
        exponential="row width",
        rounding="row width",
    ),
    "scores": self_checked(
        **_KEYS,
        query_bounds="3 slot",
        weights="slot*3/2",
        score="batch row key",
    ),
    "score_all": self_checked(
        **_KEYS,
        vector="hidden",
        centre="hidden",
        lowest="hidden",
        highest="hidden",
        score="batch row key",
    ),
    "gradients": self_checked(
        **_KEYS,
        query_bounds="3 slot",
        exp_index="batch",
        weights="slot",
        grad="batch row key",
        query_grad="query_batch row slot",
        key_grad="key_batch key slot",
        weights_grad="slot",
    ),
}
