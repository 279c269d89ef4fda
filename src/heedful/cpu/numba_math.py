"""Scalar functions for numba kernels that LLVM can vectorise."""

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import float32, int32, njit
from numba.core import cgutils
from numba.extending import intrinsic, overload

FLOAT32_TERMS: Final = (
    0.693147202855,
    0.240226479136,
    0.0555033247079,
    0.00961843735978,
    0.00133988745,
    0.000153533616,
)
"""Coefficients of 2^f = 1 + f (t1 + f (t2 + ...)), |f| <= 1/2: minimax relative error 2.0e-9, 7.9e-8 in float32."""
FLOAT64_TERMS: Final = tuple(math.log(2.0) ** power / math.factorial(power) for power in range(1, 14))
"""Coefficients of the Taylor series, to 5e-18."""


# Sums may be reordered, so that they can be vectorised, and multiply-adds fused; NaN and infinity stay valid.
FLAGS: Final = {"reassoc", "contract", "nsz"}


def _choose_options() -> dict[str, Any]:
    """Compiler options of all kernels: division by zero gives infinity; no reference counting.

    Every change of a reference count is an atomic operation, and there would be dozens per row of a tile. The option
    that turns counting off is undocumented, so it is left out if this version of Numba does not have it.
    """
    options: dict[str, Any] = {"error_model": "numpy"}
    counting: dict[str, Any] = {"_nrt": False}
    try:
        njit(**counting)
    except (KeyError, TypeError):
        return options
    return options | counting


OPTIONS: Final = _choose_options()


def inlined(*flags: str) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function inline into every kernel that calls it.

    Without forced inlining, the function may be compiled twice: by itself, and as part of the kernel. A process that
    compiles the kernel would run the first version, and a process that loads the kernel from the disk cache the second.
    The two may sum in different orders, and so differ in the last bits.

    Args:
        flags: LLVM's fast-math flags.

    Returns:
        A decorator. Division by zero gives infinity.
    """
    return njit(error_model="numpy", forceinline=True, fastmath=set(flags))


def _by_type(in_float32: Callable[..., Any], in_float64: Callable[..., Any], *flags: str) -> Callable[..., Any]:
    """Dispatch between two functions by the type of the argument `number`."""

    def of_either_type(number: Any) -> Any:
        raise NotImplementedError

    for function in (in_float32, in_float64):
        function.__annotations__ = {}  # Numba requires the same annotations on all three functions
    options: Any = {"fastmath": set(flags), **OPTIONS}
    overload(of_either_type, jit_options=options)(lambda number: in_float32 if number in _NARROW else in_float64)
    return of_either_type


_NARROW: Final = (float32, int32)
_T1, _T2, _T3, _T4, _T5, _T6 = (np.float32(term) for term in FLOAT32_TERMS)
_ONE, _MANTISSA32 = np.float32(1.0), np.int32(23)
_REVERSED, _MANTISSA64 = FLOAT64_TERMS[::-1], np.int64(52)


def _exp2_float32(lift: int) -> Callable[[Any], Any]:
    magic = np.float32(1.5 * 2.0**23 - lift)

    def exp2(number: Any) -> Any:
        # The low bits of the sum are the rounded exponent minus the lift; the shift drops the higher bits.
        shifted = number + magic
        f = number - (shifted - magic)
        power = (((((_T6 * f + _T5) * f + _T4) * f + _T3) * f + _T2) * f + _T1) * f + _ONE
        bits = np.float32(power).view(np.int32) + (np.float32(shifted).view(np.int32) << _MANTISSA32)
        return np.int32(bits).view(np.float32)

    return exp2


def _exp2_float64(lift: int) -> Callable[[Any], Any]:
    magic = 1.5 * 2.0**52 - lift

    def exp2(number: Any) -> Any:
        shifted = number + magic
        f = number - (shifted - magic)
        power = 0.0
        for term in _REVERSED:
            power = (power + term) * f
        bits = np.float64(power + 1.0).view(np.int64) + (np.float64(shifted).view(np.int64) << _MANTISSA64)
        return np.int64(bits).view(np.float64)

    return exp2


def make_exp2(lift: int = 0) -> Callable[..., Any]:
    """Make the function 2^(number - lift), as accurate as 2^number: subtracting first would lose digits.

    Valid from the lowest exponent, for which the result is exactly 0, to 127; NaN stays NaN.
    """
    # No "reassoc": (x + magic) - magic rounds x, so it must not be reordered.
    return _by_type(_exp2_float32(lift), _exp2_float64(lift), "contract")


exp2: Final = make_exp2()
# The bits of a number as a signed integer, in the same order for non-negative numbers; and the inverse.
bits: Final = _by_type(
    lambda number: np.float32(number).view(np.int32), lambda number: np.float64(number).view(np.int64)
)
from_bits: Final = _by_type(
    lambda number: np.int32(number).view(np.float32), lambda number: np.int64(number).view(np.float64)
)


@inlined()
def ordered(number: Any) -> Any:
    """Map float32 to int32 in the same order, NaN largest; the map is its own inverse on the bits."""
    raw = np.float32(number).view(np.int32)
    return np.int32(raw ^ ((raw >> np.int32(31)) & np.int32(0x7FFFFFFF)))


@inlined()
def widened(raw: Any) -> Any:
    """Convert the bits of a bfloat16, as int16, to float32."""
    return np.int32(np.int32(raw) << np.int32(16)).view(np.float32)


@inlined()
def narrowed(number: Any) -> Any:
    """Round float32 to the nearest bfloat16, ties to even, and return its bits as int16."""
    raw = np.float32(number).view(np.int32)
    return np.int16((raw + np.int32(0x7FFF) + ((raw >> np.int32(16)) & np.int32(1))) >> np.int32(16))


def _type_multiply_add(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = arguments[0].type
        name = "llvm.fmuladd.f32" if a == float32 else "llvm.fmuladd.f64"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
        return builder.call(function, arguments)

    return a(a, b, c), generate


# a * b + c as one instruction if the processor has one, even if a * b is used elsewhere too.
multiply_add: Final[Any] = intrinsic(_type_multiply_add)
