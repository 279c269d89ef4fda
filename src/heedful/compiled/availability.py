"""Availability of numba kernels on this machine."""

import importlib
from functools import cache

import numpy as np
import torch
from torch import Tensor


@cache
def loops_problem() -> str | None:
    """Return the reason why numba kernels cannot run.

    Returns:
        The reason, or None where they can.

    Cost: imports Numba, 0.3 s once.
    """
    try:
        numba = importlib.import_module("numba")
    except ImportError as error:
        return f"needs Numba: {error}"
    return "NUMBA_DISABLE_JIT is set" if numba.config.DISABLE_JIT else None


def copied(parameter: Tensor) -> np.ndarray:
    """Copy a small parameter into an array for numba kernels.

    Args:
        parameter: [*] on the CPU.

    Returns:
        [*] a copy. Memory that NumPy shares can never be resized again, and that is how FSDP2 takes parameters away.
    """
    return parameter.detach().clone(memory_format=torch.contiguous_format).numpy()
