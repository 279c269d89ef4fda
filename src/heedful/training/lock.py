"""Lock of a model folder, one training at a time; the operating system frees it when the holder dies.

On file systems without locks, such as some network file systems, a file that names the holder is used instead; it is
ignored once that process no longer runs on its machine.

The content identifies the holder for a message, and whether that process still runs; another version of heedful reads
each field only if it is there. So the lock has no format version.
"""

import json
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from heedful.errors import DamagedFile, UsageError
from heedful.files.atomic_write import NoLocks, lock, write_through
from heedful.files.bounded_read import read_json_object

NAME: Final = "lock"


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Lock a folder against other trainings.

    Args:
        folder: existing folder; a small file remains in it.

    Yields:
        Nothing. The folder is locked until the body ends, or this process and its forks end.

    Raises:
        UsageError: another training holds it; the message says which.
        OSError: the folder cannot be written.
    """
    path = folder / NAME
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    named: Path | None = None
    try:
        try:
            is_ours = lock(descriptor)
            if is_ours:
                os.ftruncate(descriptor, 0)
                os.write(descriptor, _holder())
        except NoLocks:
            named = path.with_name(f"{NAME}.held")
            is_ours = _take(named)
        if not is_ours:
            raise UsageError(_refusal(named or path, is_file_telling=named is not None))
        try:
            yield
        finally:
            if named is not None:
                named.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _holder() -> bytes:
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    return json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": since}).encode()


def _take(path: Path) -> bool:
    """Write a file that identifies this process, unless one of a live process exists."""
    for _ in range(2):
        try:
            write_through(path, _holder())
        except FileExistsError:
            if _is_alive(path):
                return False
            path.unlink(missing_ok=True)
        else:
            return True
    return False


def _is_alive(path: Path) -> bool:
    """Whether the holder may still run; known only for processes of this machine."""
    holder = _read(path)
    if holder.get("host") != socket.gethostname() or os.name == "nt":
        return path.exists()
    try:
        os.kill(int(holder["process"]), 0)
    except (ProcessLookupError, ValueError, OverflowError, KeyError):
        return False
    except PermissionError:
        pass  # a running process of another user
    return True


def _read(path: Path) -> dict[str, str]:
    with suppress(OSError, DamagedFile):
        return {key: str(value) for key, value in read_json_object(path).items()}
    return {}


def _refusal(path: Path, is_file_telling: bool) -> str:
    holder = _read(path)
    who = "another process"
    if holder.keys() >= {"process", "host", "since"}:
        who = f"process {holder['process']} on {holder['host']}, since {holder['since']},"
    way_out = f"; if it is gone, delete {path}" if is_file_telling else ""
    folder = path.parent.parent if path.parent.name == "run" else path.parent
    return f"{folder}: {who} is training in it; wait for it, or choose another --out{way_out}"
