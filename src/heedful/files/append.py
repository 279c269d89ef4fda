"""Files that any number of processes append lines to: a line is on disk when the call returns, or not in the file."""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from heedful.errors import ResourceError
from heedful.files.atomic_write import NoLocks, lock, sync
from heedful.files.bounded_read import open_regular

_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
_LOCK_SECONDS: Final = 10.0
"""Longest wait for another process that appends to the same file."""
_RETRY_SECONDS: Final = 0.002


@contextmanager
def locked_for_append(path: Path) -> Generator[int]:
    """Open a file, or create it, and keep other processes from appending to it.

    Yields:
        Its descriptor, for `append_whole`.

    Raises:
        DamagedFile: the path is a folder, a pipe, a socket or a device.
        ResourceError: it cannot be opened for writing, or another process keeps it locked.
    """
    if path.exists():
        open_regular(path).close()
    try:
        descriptor = os.open(path, _FLAGS, 0o644)
    except OSError as error:
        raise ResourceError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        stop = time.monotonic() + _LOCK_SECONDS
        with suppress(NoLocks):  # an append is then a single write all the same
            while not lock(descriptor):
                # Not without the lock: where the other process fails, it takes back all that follows its own start.
                if time.monotonic() > stop:
                    raise ResourceError(f"{path}: another process has been writing it for {_LOCK_SECONDS:.0f} s")
                time.sleep(_RETRY_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)


def append_whole(path: Path, descriptor: int, content: bytes) -> None:
    """Append lines to a locked file, all or none; they, and the name of the file, are on disk when the call returns.

    The end of a line that a crash cut off is not glued to them: they begin on a line of their own.

    Args:
        descriptor: descriptor of the file (`locked_for_append`).
        content: lines, each with its end.

    Raises:
        ResourceError: the disk is full or refuses; the file is as it was.
    """
    size = os.fstat(descriptor).st_size
    is_torn = False
    if size:
        os.lseek(descriptor, size - 1, os.SEEK_SET)
        is_torn = os.read(descriptor, 1) != b"\n"
    rest = memoryview((b"\n" if is_torn else b"") + content)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
        sync(Path(os.path.realpath(path)).parent)  # this or another process may just have created the file
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(descriptor, size)
        raise ResourceError(f"{path}: not written: {error.strerror}; free some space and try again") from None
