"""PyTorch's devices: whether a named one is there, and why there is no GPU."""

import os
import shutil
import warnings
from pathlib import Path
from typing import Final

import torch

from heedful.errors import ResourceError, UsageError

_warned: Final = list[str]()
"""Warnings of PyTorch about CUDA, which it gives but once."""


def has_cuda() -> bool:
    """Tell whether PyTorch can use a CUDA device; its warnings are kept for `cuda_problem`.

    Returns:
        Whether it can.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        is_available = torch.cuda.is_available()
    _warned.extend(" ".join(str(each.message).split()) for each in caught)
    return is_available


def cuda_problem() -> str:
    """Find the reason why PyTorch uses no CUDA device.

    Returns:
        The reason; empty where it uses one, or nothing tells that the machine has one.
    """
    if has_cuda():
        return ""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if torch.version.cuda and visible is not None and visible.strip() in ("", "-1"):
        return f"CUDA_VISIBLE_DEVICES={visible.strip()} hides them"
    if _warned:
        return _warned[0].partition(". ")[0].removeprefix("CUDA initialization: ")
    if not _has_driver():
        return ""
    return "its driver gives PyTorch none" if torch.version.cuda else "this PyTorch is built for processors alone"


def _has_driver() -> bool:
    """True where the driver of a GPU has left its files."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or shutil.which("nvidia-smi") is not None


def check_device(name: str) -> None:
    """Check that a device exists, before weights are read or texts are prepared for it.

    Args:
        name: PyTorch's device, or "auto".

    Raises:
        UsageError: there is no such kind of device.
        ResourceError: the device is CUDA's, and PyTorch finds none of this number.

    Example:
        >>> check_device("cpu")
    """
    try:
        device = torch.device("cpu" if name == "auto" else name)
    except RuntimeError:
        raise UsageError(f"device {name!r}: no such kind of device; known: auto, cpu, cuda, cuda:1, mps") from None
    if device.type == "cuda" and not has_cuda():
        problem = cuda_problem()
        reason = f" ({problem})" if problem else ""
        raise ResourceError(f"device {name}: PyTorch finds no CUDA device here{reason}; take cpu, or auto")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        number = torch.cuda.device_count()
        raise ResourceError(f"device {name}: PyTorch finds {number} CUDA device{'s' * (number > 1)}; count from cuda:0")
