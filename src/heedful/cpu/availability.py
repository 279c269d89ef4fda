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
        The reason; None if they can run.

    Cost: 0.3 s on the first call, to import Numba.
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
        [*] a copy. A shared array would not do: PyTorch cannot resize memory that it shares with NumPy, and FSDP2 frees
    """
    return parameter.detach().clone(memory_format=torch.contiguous_format).numpy()
