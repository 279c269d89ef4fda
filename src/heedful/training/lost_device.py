"""Errors of a GPU that cannot be used any more, told in one line."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

import torch

from heedful.errors import ResourceError, is_lost_device


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
        if not is_lost_device(error):
            raise
        reason = str(error).partition("\n")[0]
        raise ResourceError(
            f"{device} failed at step {step()}: {reason}; the last checkpoint is of step {saved_step()}; "
            "run the same command to continue there, on another device with --device cpu"
        ) from None
