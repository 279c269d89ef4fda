"""Compilation of the numba kernels of distance attention, on first use."""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from numba import boolean, float32, float64, int64, types

from heedful.attention.kernels.distance import numba_kernels as distance_loops
from heedful.attention.kernels.distance.arrays import ROWS, ForwardResult, Kernel, OutputGradients, Points, Room, Sums
from heedful.cpu.checked_kernel import self_checked
from heedful.cpu.numba_cache import cached_njit


@cache
def forward(dtype: str, is_exponential: bool) -> Callable[..., None]:
    """Compile `numba_kernels.forward`, which takes a second, or load it from disk.

    Args:
        dtype: float32 or float64.
        is_exponential: whether the profile is one of those before `BOXCAR`.

    Returns:
        The function; it releases the interpreter lock.
    """
    real, array, common = _types(dtype, is_exponential)
    loop = _compile(boolean(*common, array(real, 1), array(float64, 2)), distance_loops.forward)
    return self_checked(**_SHAPES, buffer="tile", sums=f"{ROWS} value_size")(loop)


@cache
def backward(dtype: str, is_exponential: bool) -> Callable[..., None]:
    """Compile `numba_kernels.backward`, as `forward`.

    Args:
        dtype: as in `forward`.
        is_exponential: as in `forward`.

    Returns:
        As in `forward`.
    """
    real, array, common = _types(dtype, is_exponential)
    grads = types.NamedTuple([array(real, 3), array(float64, 2), boolean, boolean, boolean], OutputGradients)
    room = types.NamedTuple([array(real, 1)] + [array(real, 2)] * 4, Room)
    sums = types.NamedUniTuple(array(float64, 3), 3, Sums)
    loop = _compile(boolean(*common, grads, room, sums), distance_loops.backward)
    return self_checked(
        **_SHAPES,
        grads__context="batch query value_size",
        grads__log_normalizer="batch query",
        room__costs="tile",
        room__weights="4 tile",
        room__slopes="4 tile",
        room__local="stream tile",
        room__gains=f"{ROWS} gain",
        sums__query="batch query size",
        sums__key="batch stream key",
        sums__kernel="batch query 2",
    )(loop)


_SHAPES: Final = {
    "points__query": "batch query size",
    "points__key": "batch size pitch",
    "points__value": "batch value_size pitch",
    "points__start": "batch query",
    "points__stop": "batch query",
    "result__context": "batch query value_size",
    "result__nearest": "batch query",
    "result__totals": "batch query",
}


def _types(dtype: str, is_exponential: bool) -> Any:
    """Numba types of numbers, of arrays, and of the arguments that both kernels take."""
    real = float32 if dtype == "float32" else float64

    def array(kind: Any, num_axes: int) -> Any:
        return types.Array(kind, num_axes, "C")

    points = types.NamedTuple([array(real, 3)] * 3 + [array(int64, 2)] * 2, Points)
    kernel = types.NamedTuple([int64, *[real] * 5, boolean], Kernel)
    result = types.NamedTuple([array(real, 3), array(real, 2), array(float64, 2)], ForwardResult)
    return real, array, (points, kernel, real if is_exponential else types.none, int64, int64, result)


def _compile(signature: Any, function: Callable[..., bool]) -> Any:
    """Compile for one signature, so that no call compiles later."""
    loop = cached_njit(*distance_loops.FLAGS, **distance_loops.OPTIONS)(function)
    loop.compile(signature)
    loop.disable_compile()
    return loop
