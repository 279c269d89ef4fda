"""A look at every file-system call of Python code, and a say in it: go on, fail, or die.

What changes files in heedful goes through the functions of `os` below (also what pathlib and shutil do), so replacing
these shows every point at which a kill, a full disk or a power cut can come.
"""

import os
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

NAMES = "open write fsync close mkdir rename replace unlink remove rmdir listdir scandir".split()
REFUSED, DEAD = 81, 82


@dataclass(frozen=True)
class Call:
    """One call, before it is done."""

    name: str
    """In `os`."""
    path: Path
    other: Path | None
    """Where a rename leads."""

    def fail(self, number: int) -> NoReturn:
        """Let it fail with an error number."""
        raise OSError(number, os.strerror(number), str(self.path))


@contextmanager
def calls(see: Callable[[Call], None], after: Callable[[Call], None] = lambda call: None) -> Generator[None]:
    """Show each call before it is done, and after; what `see` raises comes in its place."""
    paths: dict[int, Path] = {}

    def shown(name: str, known: Callable[..., Any]) -> Callable[..., Any]:
        def function(*given: Any, **options: Any) -> Any:
            first: Any = given[0] if given else "."
            folder = options.get("dir_fd")
            path = paths.get(first, Path(str(first))) if isinstance(first, int) else Path(os.fsdecode(first))
            if folder is not None:
                path = paths.get(folder, Path()) / path
            call = Call(name, path, Path(given[1]) if name in ("rename", "replace") else None)
            if name == "close":  # as in POSIX, closed even where it fails
                paths.pop(first, None)
                known(first)
                see(call)
                return after(call)
            see(call)
            result = known(*given, **options)
            if name == "open":
                paths[result] = path
            after(call)
            return result

        return function

    with ExitStack() as stack:
        for name in NAMES:
            stack.enter_context(mock.patch.object(os, name, shown(name, getattr(os, name))))
        yield


@contextmanager
def without_waiting() -> Generator[None]:
    """Let nothing wait for the disk: a killed process loses nothing by it, and power cuts are played."""
    with mock.patch.object(os, "fsync", return_value=None):
        yield


def in_child(body: Callable[[], object]) -> int:
    """Run a body in a forked child.

    Returns:
        Its exit status: 0 where all went well, `REFUSED` where an OSError or an error of ours left it.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch has threads; the child uses none of them
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            body()
            status = 0
        except Exception:
            status = REFUSED
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Disk:
    """What a power cut would leave: only what was synced is sure."""

    def __init__(self) -> None:
        self._unsynced: set[Path] = set()
        self._renamed: list[tuple[Path, Path]] = []

    def note(self, call: Call) -> None:
        """Take a call that was done."""
        if call.name == "write":
            self._unsynced.add(call.path)
        elif call.name == "fsync":
            self._unsynced.discard(call.path)
            self._renamed = [names for names in self._renamed if names[1].parent != call.path]
        elif call.other is not None:
            moved = {path: call.other / path.relative_to(call.path) for path in self._unsynced if _in(path, call.path)}
            self._unsynced = {moved.get(path, path) for path in self._unsynced}
            self._renamed.append((call.path, call.other))

    def cut(self) -> None:
        """Lose the content of what was not synced, and the last names that were not."""
        for path in self._unsynced:
            if path.is_file():
                os.truncate(path, 0)
        for before, after in self._renamed:
            # A name that appeared is lost; one that went away stays lost: the worse of what may happen.
            if before.name.startswith(".") and after.exists() and not before.exists():
                os.rename(after, before)


def _in(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def die_at(number: int, body: Callable[[], object], with_power: bool = False) -> int:
    """Run a body in a child that dies when it is about to make its call of a number, from 0.

    Args:
        number: of the call.
        body: what to run.
        with_power: whether what was not synced is lost too.

    Returns:
        `DEAD`, or what `in_child` returns.
    """
    disk = Disk()
    seen = 0
    is_dead = False

    def see(call: Call) -> None:
        nonlocal seen, is_dead
        if seen == number and not is_dead:
            is_dead = True
            if with_power:
                disk.cut()
            os._exit(DEAD)
        seen += 1

    def watched() -> None:
        with calls(see, disk.note):
            body()
        if with_power:
            disk.cut()

    return in_child(watched)
