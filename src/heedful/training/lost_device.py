"""Errors of a GPU that cannot be used any more, told in one line."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

import torch

from heedful.errors import ResourceError

_BEGINNINGS: Final = ("CUDA error", "cuDNN error", "CUBLAS_STATUS", "CUDA driver error")
"""Beginnings of PyTorch's messages after which a GPU computes nothing more in this process."""


@contextmanager
def telling_lost_device(
    device: torch.device, step: Callable[[], int], saved_step: Callable[[], int]
) -> Generator[None]:
    """Turn the errors of a lost device within a context into one line.

    Args:
        device: device that trains.
        step: function that returns the number of the present step.
        saved_step: function that returns the step of the newest checkpoint.

    Yields:
        Nothing.

    Raises:
        ResourceError: the device failed; the checkpoint resumes on it, or on another.
        RuntimeError: another error, passed on.
    """
    try:
        yield
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        if isinstance(error, torch.OutOfMemoryError) or not reason.startswith(_BEGINNINGS):
            raise
        raise ResourceError(
            f"{device} failed at step {step()}: {reason}; the last checkpoint is of step {saved_step()}; "
            "run the same command to continue there, on another device with --device cpu"
        ) from None
