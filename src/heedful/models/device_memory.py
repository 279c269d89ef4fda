"""Batches as large as the memory of a device allows, for work whose results do not depend on them."""

from collections.abc import Callable
from typing import Final, TypeVar

import torch

from heedful.models.recording import give_memory_back

T = TypeVar("T")

GROWTH: Final = 16
"""Factor of the size of batches on a GPU, whose launches cost the same whatever their size."""


def as_memory_allows(work: Callable[[int], T], batch_size: int, device: torch.device) -> T:
    """Do work in batches of the given size on a CPU, and in large ones on a GPU, halved whenever memory ends.

    Args:
        work: function of the largest size of a batch, in positions or examples; may be called again after it failed.
        batch_size: size that suits a CPU.
        device: device that computes.

    Returns:
        The result of the work.

    Raises:
        OutOfMemoryError: memory does not hold a batch of the size 1.

    Example:
        >>> as_memory_allows(lambda tokens: tokens, 4096, torch.device("cpu"))
        4096
    """
    size = batch_size if device.type == "cpu" else GROWTH * batch_size
    while True:
        try:
            return work(size)
        except torch.OutOfMemoryError:
            if size <= 1:
                raise
        # Outside the handler, whose traceback holds the tensors of the failed batch.
        size //= 2
        give_memory_back()
