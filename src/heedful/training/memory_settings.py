"""Process settings for training: freeze the garbage collector, keep freed memory."""

import ctypes
import gc
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Final

_MMAP_THRESHOLD: Final = -3
_TRIM_THRESHOLD: Final = -1
"""Parameter numbers of GNU's mallopt."""
_LARGEST_KEPT: Final = 32 << 20
"""Largest allocation, in bytes, that the C library keeps; larger ones always come from the system."""
_MOST_KEPT: Final = (1 << 31) - 1


def use_large_pages() -> None:
    """Make PyTorch request 2 MB pages if the system leaves the choice; call it before importing PyTorch.

    Linux zeroes each new page at its first use, and a step uses some hundred megabytes.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


@contextmanager
def tuned_process() -> Generator[None]:
    """Freeze the garbage collector and keep freed memory within a context, while the process trains.

    Python's garbage collector then skips existing objects: a model, its libraries and data are some hundred thousands.
    With GNU's C library, memory that a step frees stays with the process for the next step, because pages from the
    system would be zeroed again, 4 KB at a time.

    Yields:
        Nothing. The C library keeps its settings afterwards.
    """
    _keep_memory()
    # Objects frozen by other code, or by an outer training, stay frozen.
    is_ours = gc.get_freeze_count() == 0
    if is_ours:
        # No collection first, because it takes a second with millions of objects, and many trainings are shorter.
        gc.freeze()
    try:
        yield
    finally:
        if is_ours:
            gc.unfreeze()


@cache
def _keep_memory() -> None:
    with suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        if hasattr(library, "gnu_get_libc_version"):
            library.mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
            library.mallopt(_TRIM_THRESHOLD, _MOST_KEPT)
