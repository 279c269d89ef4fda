"""Durable writes: a file is complete or absent, and on disk when the call returns.

A device or a pipe is written to directly, not replaced. A symbolic link stays, and its target is replaced. The new file
gets the permissions and, if allowed, the owner of the file that it replaces.

A file or folder that is being written has a temporary name that ends in `.unfinished` and is locked by its process.
The next write in the same folder removes those whose process was killed.
"""

import errno
import gzip
import hashlib
import io
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, BinaryIO, Final, TextIO, cast

from heedful.errors import FileRefused, UsageError
from heedful.files.bounded_read import open_regular

_CHUNK_BYTES: Final = 1 << 20
_UNFINISHED: Final = ".unfinished"
_TEMPORARY_NAME: Final = re.compile(r"\..*-\d+-\d+\.unfinished", re.DOTALL)
_SHOWN_CHARACTERS: Final = 48
"""Number of characters of a file's name in its temporary name, which must not become too long for a file system."""
_LOCKED: Final = (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)
_UNSUPPORTED: Final = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


@contextmanager
def atomic_write(path: Path, is_internal: bool = False) -> Generator[TextIO]:
    """Write a text file under a temporary name, and rename it to its final name on success.

    Args:
        is_internal: whether the file belongs to a folder of heedful's, where a pipe or a device has no place.

    Yields:
        A text stream; characters that UTF-8 cannot encode, as of odd file names, are replaced. If the body raises or
        the process is killed, an existing file at `path` is unchanged.

    Raises:
        FileRefused: the file is internal, and a folder, a pipe or a device is in its place.
    """
    if is_internal and os.path.lexists(path) and not path.is_file():
        raise FileRefused(f"{path}: not a regular file; delete it and run the same command again")
    target = _destination(path)
    if _is_special(target):
        with target.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
            yield stream
        return
    with temporary_path(target) as temporary:
        with temporary.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
            _copy_attributes(target, stream.fileno())
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    sync(target.parent)


@contextmanager
def temporary_path(path: Path, is_folder: bool = False, mode: int = 0o777) -> Generator[Path]:
    """Create an empty file or folder under a temporary name, to be filled and renamed to its final name.

    Args:
        is_folder: whether to create a folder.
        mode: permissions of a folder.

    Yields:
        The temporary path, in the same folder. It is removed at the end unless it was renamed; if the process is
        killed before, the next call for the same folder removes it.
    """
    remove_unfinished(path.parent)
    temporary, descriptor = _create_held(path, is_folder, mode)
    try:
        yield temporary
    finally:
        _remove(temporary)
        os.close(descriptor)


@contextmanager
def private_folder() -> Generator[Path]:
    """Create an empty folder in the system's temporary one, for files that need a name but are not kept.

    Yields:
        The folder, which other users cannot read. It is removed at the end; if the process is killed before, the next
        call of any process removes it.
    """
    with temporary_path(Path(tempfile.gettempdir()) / "heedful", is_folder=True, mode=0o700) as folder:
        yield folder


def recorded_name(path: Path) -> str:
    """Return the name of a file as records have it.

    Returns:
        Its name without the folder; a question mark for each byte that is no UTF-8.
    """
    return path.name.encode(errors="replace").decode()


def move_aside(path: Path) -> Path:
    """Rename a file or folder that is to be removed, so that its name is free and never belongs to a part of it.

    Args:
        path: the file or folder.

    Returns:
        Its new path, which `remove_unfinished` removes if this process does not.
    """
    aside = next(name for name in _temporary_names(path) if not name.exists())
    path.rename(aside)
    return aside


def remove_unfinished(folder: Path) -> None:
    """Remove the unfinished files and folders that killed processes left in a folder.

    Args:
        folder: the folder; what cannot be removed, or may still be in use, stays.
    """
    if os.name == "nt":
        return  # no folder can be locked there
    with suppress(OSError):
        for entry in folder.iterdir():
            if _TEMPORARY_NAME.fullmatch(entry.name):
                _remove_if_abandoned(entry)


def _remove_if_abandoned(path: Path) -> None:
    with suppress(OSError, NoLocks):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if lock(descriptor):
                _remove(path)
        finally:
            os.close(descriptor)


def _create_held(path: Path, is_folder: bool, mode: int) -> tuple[Path, int]:
    """Create an empty file or folder and lock it, so that it is not taken for the remains of a killed process.

    Returns:
        Its path, and the descriptor that holds the lock, if there are locks.

    Raises:
        OSError: the disk is full or refuses.
    """
    names = _temporary_names(path)
    while True:
        temporary = next(names)
        try:
            if is_folder:
                temporary.mkdir(mode)
            elif os.name == "nt":
                temporary.touch(exist_ok=False)
        except FileExistsError:
            continue
        if os.name == "nt":  # folders cannot be opened there, and open files not be renamed: nothing is locked
            return temporary, os.open(os.devnull, os.O_RDONLY)
        try:
            descriptor = os.open(temporary, os.O_RDONLY if is_folder else os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue
        except OSError:
            if is_folder:
                _remove(temporary)
            raise
        try:
            is_ours = lock(descriptor)
        except (NoLocks, OSError):
            is_ours = True
        # Between creating and locking, another process may have removed it.
        with suppress(FileNotFoundError):
            if is_ours and os.path.samestat(temporary.stat(), os.fstat(descriptor)):
                return temporary, descriptor
        os.close(descriptor)


def _temporary_names(path: Path) -> Iterator[Path]:
    start = f".{path.name[:_SHOWN_CHARACTERS]}-{os.getpid()}"
    return (path.with_name(f"{start}-{number}{_UNFINISHED}") for number in count())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


@contextmanager
def written_in_parts(path: Path) -> Generator[TextIO]:
    """Write a text file as PATH.part, and rename it to PATH when it is complete; if the body raises, PATH.part remains.

    A file whose name ends in .gz is compressed.

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
    with os.fdopen(_open_locked(part), "wb") as file:
        _copy_attributes(target, file.fileno())
        with _text_stream(file, target.suffix.lower() == ".gz") as stream:
            yield stream
        file.flush()
        os.fsync(file.fileno())
        if os.name != "nt":
            part.replace(target)  # while locked, so that no other process can open the file for writing
    if os.name == "nt":
        part.replace(target)  # Windows renames only closed files
    sync(target.parent)


@contextmanager
def _text_stream(file: IO[bytes], is_compressed: bool) -> Generator[TextIO]:
    """Stream of text into an open file, which has all of it at the end and stays open."""
    with ExitStack() as stack:
        # Without a name and a time, so that the same text gives the same bytes.
        content = gzip.GzipFile("", "wb", 6, file, mtime=0) if is_compressed else file
        if is_compressed:
            stack.callback(content.close)
        stream = io.TextIOWrapper(cast(BinaryIO, content), encoding="utf-8", errors="replace", newline="\n")
        stack.callback(stream.detach)
        stack.callback(stream.flush)
        yield stream


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
    return Path(os.path.realpath(path)) if path.is_symlink() else path  # `Path.resolve` raises for a loop of links


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


def digest(path: Path) -> str:
    """Hash a file.

    Returns:
        The sha256 of its content, in hexadecimal.

    Raises:
        DamagedFile: the path is not a regular file.
    """
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
