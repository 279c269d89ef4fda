"""Devices for tests of Triton kernels: CUDA, or Triton's interpreter (TRITON_INTERPRET=1)."""

import importlib.util
import os

import numpy as np
import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def missing() -> str:
    """Why the programs cannot run here."""
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed: pip install 'heedful[gpu]'"
    is_interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if DEVICE == "cuda":
        return ""
    if np.lib.NumpyVersion(np.__version__) >= "2.4.0":
        return "no CUDA device, and Triton's interpreter does not know NumPy 2.4"
    return "" if is_interpreted else "no CUDA device, and TRITON_INTERPRET=1 is not set"


runs = pytest.mark.skipif(bool(missing()), reason=missing() or "-")
quiet = pytest.mark.filterwarnings(
    "ignore:(overflow|invalid value|underflow|divide by zero):RuntimeWarning",
    "ignore:Conversion of an array:DeprecationWarning",
)
"""NumPy speaks of what is cut off afterwards, and the interpreter makes numbers of arrays of one."""
