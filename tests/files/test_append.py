"""Files that are appended to: what was answered stays, whatever happens to a process or to the disk."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from heedful.data.corrections import CorrectionJournal
from heedful.errors import ResourceError
from heedful.files import append
from heedful.serving.suggestions import LinksFile, Suggestions
from tests.architecture.package import ROOT, SOURCE
from tests.prove.disk import Disk, calls


def suggest(path: Path, word: str) -> None:
    assert Suggestions(path).add("ä", word, "de", "en")


def link(path: Path, word: str) -> None:
    assert LinksFile(path).add("ä", word, "0-0")


def correct(path: Path, word: str) -> None:
    CorrectionJournal(path, str).add([(f"ä {word}", word)])


KINDS: tuple[Callable[[Path, str], None], ...] = (suggest, link, correct)


def words(path: Path, add: Callable[[Path, str], None]) -> list[str]:
    """Words of the lines that are whole, as the readers of each kind find them."""
    if add is correct:
        return [one.correction for one in CorrectionJournal(path, str).read().corrections]
    found: list[str] = []
    for line in path.read_bytes().decode("utf-8", "replace").split("\n"):
        try:
            found.append(json.loads(line)["s"] if add is suggest else line.split("\t")[1])
        except (ValueError, IndexError):
            continue
    return found


def lost_by_kills(folder: Path, add: Callable[[Path, str], None], step: int = 1) -> list[int]:
    """Numbers of bytes, each multiple of `step`, after which a process is killed by SIGKILL and loses a line."""
    path, losses, size = folder / add.__name__, [], 0
    add(path, "first")
    before = path.read_bytes()
    write, was_whole = os.write, False
    while not was_whole:
        if (pid := os.fork()) == 0:

            def stops(descriptor: int, content: memoryview, size: int = size) -> int:
                write(descriptor, content[:size])
                if len(content) >= size:
                    os.kill(os.getpid(), signal.SIGKILL)
                return len(content)

            os.write = stops  # type: ignore[assignment]
            add(path, "second")
            os._exit(0)
        was_whole = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        add(path, "third")
        found = words(path, add)
        if found[0] != "first" or found[-1] != "third" or (was_whole and "second" not in found):
            losses.append(size)
        path.write_bytes(before)
        size += step
    assert size > len(before) // 2
    return losses


def glued(path: Path, descriptor: int, content: bytes) -> None:
    os.write(descriptor, content)


CHILD = """
import os, sys
from pathlib import Path
from heedful.data import corrections
from heedful.serving import suggestions
from tests.files import test_append as tests
os.fsync = lambda descriptor: None
folder = Path(sys.argv[1])
if sys.argv[2:]:
    corrections.append_whole = suggestions.append_whole = tests.glued
for add in tests.KINDS:
    print(add.__name__, *tests.lost_by_kills(folder, add, 9 if sys.argv[2:] else 1))
"""


def losses_of_kills(folder: Path, *options: str) -> dict[str, int]:
    """Losses of each kind, counted in a process of its own, which is quick to fork."""
    environment = os.environ | {"PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", CHILD, str(folder), *options]
    done = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True, timeout=300)
    return {name: len(sizes) for name, *sizes in map(str.split, done.stdout.splitlines())}


@pytest.mark.skipif(os.name == "nt", reason="no fork there")
def test_a_kill_at_any_byte_loses_nothing_that_was_answered(tmp_path: Path):
    assert losses_of_kills(tmp_path) == {"suggest": 0, "link": 0, "correct": 0}


@pytest.mark.skipif(os.name == "nt", reason="no fork there")
def test_a_line_glued_to_a_cut_one_would_be_noticed(tmp_path: Path):
    assert min(losses_of_kills(tmp_path, "glued").values()) > 0


@pytest.mark.parametrize("add", KINDS)
def test_a_disk_that_is_full_at_any_byte_loses_nothing(
    add: Callable[[Path, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "file"
    add(path, "first")
    before, write = path.read_bytes(), os.write
    for size in range(len(before) + 1):

        def full(descriptor: int, content: memoryview, written: list[int], size: int = size) -> int:
            if sum(written) == size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written.append(write(descriptor, content[: size - sum(written)]))
            return written[-1]

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", partial(full, written=[]))
            with pytest.raises(ResourceError, match="file: not written: No space left on device"):
                add(path, "second, which is longer than the first one")
        assert path.read_bytes() == before
    add(path, "third")
    assert words(path, add) == ["first", "third"]


@pytest.mark.parametrize("add", KINDS)
def test_a_power_cut_after_the_answer_loses_neither_line_nor_file(add: Callable[[Path, str], None], tmp_path: Path):
    disk, synced = Disk(), []

    def note(call: Any) -> None:
        disk.note(call)
        if call.name == "fsync":
            synced.append(call.path)

    with calls(lambda call: None, note):
        add(tmp_path / "file", "first")
    assert tmp_path in synced, "the name of the file may be lost"
    disk.cut()
    assert words(tmp_path / "file", add) == ["first"]


@pytest.mark.parametrize("add", KINDS)
def test_nothing_is_appended_beside_another_process_that_keeps_the_lock(
    add: Callable[[Path, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Where that one fails, it takes back all that follows its own start."""
    path = tmp_path / "file"
    add(path, "first")
    before = path.read_bytes()
    monkeypatch.setattr(append, "_LOCK_SECONDS", 0.02)
    with append.locked_for_append(path), pytest.raises(ResourceError, match="another process"):
        add(path, "second")
    assert path.read_bytes() == before


def test_threads_that_append_at_once_wait_for_each_other(tmp_path: Path):
    path = tmp_path / "file"
    threads = [threading.Thread(target=suggest, args=(path, str(number))) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(words(path, suggest)) == sorted(map(str, range(20)))
