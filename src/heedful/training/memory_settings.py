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
"""Bytes; larger allocations go to the system each time, whatever the C library is told."""
_MOST_KEPT: Final = (1 << 31) - 1


def use_large_pages() -> None:
    """Make PyTorch ask for 2 MB pages where the system leaves the choice; call it before importing PyTorch.

    Linux fills each fresh page with zeros at its first use, and a step uses some hundred megabytes.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


@contextmanager
def tuned_process() -> Generator[None]:
    """Freeze the garbage collector and keep freed memory within a context, for as long as the process trains.

    Objects that exist are not looked through by Python's garbage collector: a model, its libraries and data are some
    hundred thousands. Memory that a step frees stays with the process for the next step, where the C library is GNU's:
    a page that is taken from the system again is first filled with zeros, 4 KB at a time.

    Yields:
        Nothing. The C library keeps its settings afterwards.
    """
    _keep_memory()
    # Somebody else's frozen objects, or those of a training around this one, are not ours to let go.
    is_ours = gc.get_freeze_count() == 0
    if is_ours:
        # Not collected first: that takes a second where there are millions of objects, and many trainings are shorter.
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
