"""Devices that Triton kernels run on: CUDA, and for testing, Triton's interpreter on a CPU."""

import importlib.util
import os
from functools import cache
from typing import Final

import torch

from heedful.attention.kernels.interface import Mode
from heedful.errors import install_command

_DTYPES: Final = frozenset({torch.float32, torch.bfloat16, torch.float16})


UNTIMED: Final = "proved in Triton's interpreter, not yet timed on a device"
"""Caveat about the Triton kernels."""


def supports_device(mode: Mode, device: str, dtype: torch.dtype) -> str | None:
    """Tell whether Triton kernels can run on a device.

    Args:
        device: where the tensors are, "cpu" or "cuda".

    Returns:
        None if supported, else the reason.
    """
    if mode != "eager":
        return f"Triton kernels cannot be traced ({mode})"
    is_interpreted = is_interpreting()
    if device != "cuda" and not is_interpreted:
        return "only on a CUDA device"
    if dtype not in _DTYPES and not (is_interpreted and dtype == torch.float64):
        return "only float32, bfloat16 and float16"
    return None if has_triton() else _missing_triton()


@cache
def _missing_triton() -> str:
    return f"needs Triton: {install_command('gpu')}"


FEW_NUMBERS: Final = 1 << 27
"""Number of numbers of an additive score's formula, half a gigabyte, up to which plain operations are faster: on an
H100 they took a third to a tenth of the time of these kernels up to 59 million."""


def against_auto(device: str, num_numbers: int = 0) -> str | None:
    """Return the reason why `auto` should not choose a Triton kernel.

    Args:
        device: where the tensors are.
        num_numbers: number of numbers that the formula writes to memory; 0 = not counted.

    Returns:
        None on a device with much to compute, else the reason.
    """
    if device != "cuda":
        return "runs in Triton's interpreter here: by name only"
    return "plain operations are faster for so few numbers" if 0 < num_numbers <= FEW_NUMBERS else None


def is_interpreting() -> bool:
    """Tell whether Triton interprets its kernels: TRITON_INTERPRET=1 in the environment."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@cache
def has_triton() -> bool:
    """Tell whether Triton is installed, without importing it."""
    return importlib.util.find_spec("triton") is not None
