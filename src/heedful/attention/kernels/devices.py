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


def interpreter_note(device: str) -> str | None:
    """Return the reason why `auto` should not choose a Triton kernel.

    Args:
        device: where the tensors are.

    Returns:
        None on a device, else the reason.
    """
    return None if device == "cuda" else "runs in Triton's interpreter here: by name only"


def is_interpreting() -> bool:
    """Tell whether Triton interprets its kernels: TRITON_INTERPRET=1 in the environment."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@cache
def has_triton() -> bool:
    """Tell whether Triton is installed, without importing it."""
    return importlib.util.find_spec("triton") is not None
