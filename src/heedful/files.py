"""Durable writes: a file is complete or absent, and on disk when the call returns.

A device or a pipe is written to directly, not replaced. A symbolic link stays, and its target is replaced. The new file
gets the permissions and, if allowed, the owner of the file that it replaces.
"""

import errno
import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from heedful.errors import UsageError

_CHUNK_BYTES: Final = 1 << 20
_LOCKED: Final = (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)
_UNSUPPORTED: Final = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


@contextmanager
def written_whole(path: Path) -> Generator[TextIO]:
    """Write a text file under a temporary name, and rename it to its final name on success.

    Args:
        path: final name.

    Yields:
        A text stream; characters that UTF-8 cannot encode, as of odd file names, are replaced. If the body raises or
        the process is killed, an existing file at `path` is unchanged.
    """
    target = _destination(path)
    if _is_special(target):
        with target.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
            yield stream
        return
    temporary = target.with_name(f".{target.name}-{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
            _copy_attributes(target, stream.fileno())
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(target.parent)


@contextmanager
def written_in_parts(path: Path) -> Generator[TextIO]:
    """Write a text file as PATH.part, and rename it to PATH when it is complete; if the body raises, PATH.part remains.

    Args:
        path: final name.

    Yields:
        A text stream; characters that UTF-8 cannot encode are replaced.

    Raises:
        UsageError: another process writes the same file.
        OSError: the disk is full or refuses; PATH.part is a symbolic link.
    """
    target = _destination(path)
    if _is_special(target):
        with target.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
            yield stream
        return
    part = target.with_name(f"{target.name}.part")
    with os.fdopen(_open_locked(part), "w", encoding="utf-8", errors="replace", newline="\n") as stream:
        _copy_attributes(target, stream.fileno())
        yield stream
        stream.flush()
        os.fsync(stream.fileno())
        if os.name != "nt":
            part.replace(target)  # while locked, so that no other process can open the file for writing
    if os.name == "nt":
        part.replace(target)  # Windows renames only closed files
    sync(target.parent)


def _open_locked(path: Path) -> int:
    """Open a file, lock it for this process (if the file system has locks) and truncate it.

    Raises:
        UsageError: another process has locked it.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    while True:
        descriptor = os.open(path, flags, 0o666)
        try:
            with suppress(NoLocks):
                if not lock(descriptor):
                    raise UsageError(
                        f"{path}: another process is writing it; wait for it, or choose another output file"
                    )
            # Between opening and locking, the file's previous writer may have renamed it.
            if path.exists() and os.path.samestat(path.stat(), os.fstat(descriptor)):
                os.ftruncate(descriptor, 0)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _destination(path: Path) -> Path:
    """Path of the file behind a symbolic link, or the path itself.

    Raises:
        UsageError: the path is a folder.
    """
    if path.is_dir():
        raise UsageError(f"{path}: a folder; name a file in it")
    return path.resolve() if path.is_symlink() else path


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _copy_attributes(path: Path, descriptor: int) -> None:
    """Copy the permissions and, if allowed, the owner of an existing file to an open file."""
    if os.name == "nt" or not path.is_file():
        return
    status = path.stat()
    with suppress(OSError):
        os.fchown(descriptor, status.st_uid, status.st_gid)
    with suppress(OSError):
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


class NoLocks(Exception):
    """File system without locks."""


if sys.platform == "win32":
    import msvcrt

    def lock(descriptor: int) -> bool:
        """Lock an open file against other processes.

        Args:
            descriptor: descriptor of the open file.

        Returns:
            Whether this process has the lock now; False if another process has it.

        Raises:
            NoLocks: the file system has no locks.
            OSError: locking failed.
        """
        os.lseek(
            descriptor, 1 << 30, os.SEEK_SET
        )  # far beyond the content, because Windows forbids reading locked bytes
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            return _explain_refusal(error)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True

else:
    import fcntl

    def lock(descriptor: int) -> bool:
        """Lock an open file against other processes, until it is closed or this process ends.

        Args:
            descriptor: descriptor of the open file.

        Returns:
            Whether this process has the lock now; False if another process has it.

        Raises:
            NoLocks: the file system has no locks.
            OSError: locking failed.
        """
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return _explain_refusal(error)
        return True


def _explain_refusal(error: OSError) -> bool:
    if error.errno in _LOCKED:
        return False
    if error.errno in _UNSUPPORTED:
        raise NoLocks from error
    raise error


def write_through(path: Path, content: bytes) -> None:
    """Write a new file, and return when its content is on disk.

    Args:
        path: the file; its folder must be synced too (`sync`), or the name may be lost in a crash.
        content: the content of the file.

    Raises:
        OSError: the disk is full or refuses, or the file exists.
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
    """Flush a file, or the names in a folder, to disk.

    Args:
        path: the file or folder.

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
