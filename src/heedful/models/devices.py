"""PyTorch's devices: a check that a named one is there."""

import torch

from heedful.errors import ResourceError, UsageError


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
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ResourceError(f"device {name}: PyTorch finds no CUDA device here; take cpu, or auto")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        number = torch.cuda.device_count()
        raise ResourceError(f"device {name}: PyTorch finds {number} CUDA device{'s' * (number > 1)}; count from cuda:0")
