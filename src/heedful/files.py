"""Durable writes: files that are complete or absent, and on the disk when the call returns."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

_CHUNK_BYTES: Final = 1 << 20


@contextmanager
def written_whole(path: Path) -> Generator[TextIO]:
    """Write a text file beside its final name and rename it there on success.

    Args:
        path: where to.

    Yields:
        A stream; what stood at `path` stays whole if the body raises or the process is killed.
    """
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def write_through(path: Path, content: bytes) -> None:
    """Write a new file, and return when it is on the disk.

    Args:
        path: where to; what it is in has to be synced for its name to last.
        content: all of it.

    Raises:
        OSError: the disk is full or refuses, or there is such a file.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o644)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest[:_CHUNK_BYTES]) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """Make the operating system write a file, or the names in a folder, to disk now.

    Args:
        path: which.

    Raises:
        OSError: the disk refuses.
    """
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open folders; its renames are journalled
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
