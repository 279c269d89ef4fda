"""Output files: complete or absent, through links, into devices, with the permissions of before, for one writer."""

import gzip
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TextIO

import pytest

from heedful.errors import UsageError
from heedful.files import atomic_write as files
from heedful.files.atomic_write import (
    atomic_write,
    move_aside,
    private_folder,
    remove_unfinished,
    temporary_path,
    written_in_parts,
)

Writer = Callable[[Path], AbstractContextManager[TextIO]]
WRITERS = [atomic_write, written_in_parts]

posix = pytest.mark.skipif(os.name == "nt", reason="links, permissions and devices are those of POSIX")


def write(writer: Writer, path: Path, text: str = "new\n") -> None:
    with writer(path) as stream:
        stream.write(text)


@posix
@pytest.mark.parametrize("writer", WRITERS)
def test_a_device_is_written_to_and_stays_a_device(writer: Writer):
    master, slave = os.openpty()  # unlike /dev/null, nothing is lost where a wrong writer replaces it
    try:
        path = Path(os.ttyname(slave))
        before = path.stat()
        write(writer, path, "word")
        assert os.read(master, 100) == b"word"
        assert stat.S_ISCHR(path.stat().st_mode)
        assert path.stat().st_ino == before.st_ino
    finally:
        os.close(master)
        os.close(slave)


@posix
@pytest.mark.parametrize("writer", WRITERS)
def test_a_pipe_is_written_to(writer: Writer, tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(writer, pipe)
        assert os.read(reader, 100) == b"new\n"
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    finally:
        os.close(reader)


@posix
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_stays_and_its_target_is_replaced(writer: Writer, is_dangling: bool, tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    if not is_dangling:
        target.write_text("old\n")
    link.symlink_to(target)
    write(writer, link)
    assert link.is_symlink()
    assert target.read_text() == "new\n"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["elsewhere", "link", "target"]


@posix
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_permissions_of_a_replaced_file_stay(writer: Writer, mode: int, tmp_path: Path):
    path = tmp_path / "out"
    path.write_text("old\n")
    path.chmod(mode)
    write(writer, path)
    assert path.read_text() == "new\n"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
@pytest.mark.parametrize("writer", WRITERS)
def test_a_new_file_has_the_usual_permissions(writer: Writer, tmp_path: Path):
    usual = tmp_path / "usual"
    usual.write_text("")
    write(writer, tmp_path / "out")
    assert (tmp_path / "out").stat().st_mode == usual.stat().st_mode


@pytest.mark.parametrize("writer", WRITERS)
def test_an_error_leaves_the_old_file_whole(writer: Writer, tmp_path: Path):
    path = tmp_path / "out"
    path.write_text("old\n")

    def fail() -> None:
        with writer(path) as stream:
            stream.write("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old\n"


def test_a_name_of_gzip_gives_a_compressed_file_and_the_same_text_the_same_bytes(tmp_path: Path):
    for name in ("a.csv.gz", "b.csv.GZ"):
        write(written_in_parts, tmp_path / name)
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()) == b"new\n"
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.GZ").read_bytes()

    def fail() -> None:
        with written_in_parts(tmp_path / "c.gz") as stream:
            stream.write("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert gzip.decompress((tmp_path / "c.gz.part").read_bytes()) == b"half"
    assert not (tmp_path / "c.gz").exists()


@posix
def test_two_processes_do_not_share_a_part(tmp_path: Path):
    path = tmp_path / "out"
    program = """
import sys
from pathlib import Path
from heedful.files.atomic_write import written_in_parts
with written_in_parts(Path(sys.argv[1])) as stream:
    stream.write("first\\n")
    print("open", flush=True)
    sys.stdin.readline()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(UsageError, match=r"out\.part: another process is writing it"):
            write(written_in_parts, path)
        other.communicate("\n")
    assert path.read_text() == "first\n"
    write(written_in_parts, path)
    assert path.read_text() == "new\n"


@posix
def test_a_part_of_a_killed_process_is_taken_over(tmp_path: Path):
    (tmp_path / "out.part").write_text("a longer text of a process that was killed\n")
    write(written_in_parts, tmp_path / "out")
    assert (tmp_path / "out").read_text() == "new\n"
    assert not (tmp_path / "out.part").exists()


@posix
def test_a_part_that_is_a_link_is_not_followed(tmp_path: Path):
    precious = tmp_path / "precious"
    precious.write_text("kept\n")
    (tmp_path / "out.part").symlink_to(precious)
    with pytest.raises(OSError, match=r"out\.part"):
        write(written_in_parts, tmp_path / "out")
    assert precious.read_text() == "kept\n"


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("path", [Path("/"), Path(), Path("..")], ids=str)
def test_a_folder_is_refused(writer: Writer, path: Path):
    with pytest.raises(UsageError, match="a folder; name a file in it"):
        write(writer, path)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_name_that_is_not_utf_8_can_be_written_down(writer: Writer, tmp_path: Path):
    write(writer, tmp_path / "file", os.fsdecode(b"odd\xff.tsv"))
    assert (tmp_path / "file").read_bytes() == b"odd?.tsv"


KILLED = """
import os, sys
from pathlib import Path
from heedful.files.atomic_write import temporary_path
with temporary_path(Path(sys.argv[1]), is_folder=sys.argv[2] == "folder") as path:
    (path / "weights" if path.is_dir() else path).write_bytes(b"many")
    if sys.argv[3] == "waits":
        print("ready", flush=True)
        sys.stdin.read()
    os._exit(9)
"""


def start(path: Path, kind: str, ending: str) -> "subprocess.Popen[str]":
    """A process that begins to write a file or folder."""
    command = [sys.executable, "-c", KILLED, str(path), kind, ending]
    environment = {**os.environ, "PYTHONPATH": str(Path(files.__file__).parents[2])}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def finish_another(path: Path, kind: str) -> None:
    with temporary_path(path, is_folder=kind == "folder") as temporary:
        if kind == "folder":
            (temporary / "weights").write_bytes(b"few")
        temporary.replace(path)


@posix
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_is_removed_by_the_next(kind: str, tmp_path: Path):
    path = tmp_path / "onnx"
    with start(path, kind, "dies") as process:
        process.communicate("")
    assert process.returncode == 9
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(".unfinished")
    (tmp_path / ".onnx-2024").touch()  # the user's own
    finish_another(path, kind)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".onnx-2024", "onnx"]


@posix
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_running_process_writes_is_left_alone(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "onnx"
    with start(path, kind, "waits") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        (left,) = tmp_path.iterdir()
        finish_another(path, kind)
        remove_unfinished(tmp_path)
        assert {entry.name for entry in tmp_path.iterdir()} == {left.name, "onnx"}
        # The contract rejects a cleaner that asks for no lock.
        monkeypatch.setattr(files, "lock", lambda descriptor: True)
        remove_unfinished(tmp_path)
        assert {entry.name for entry in tmp_path.iterdir()} == {"onnx"}
        process.communicate("")


@posix
def test_without_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(descriptor: int) -> bool:
        raise files.NoLocks

    monkeypatch.setattr(files, "lock", refuse)
    (tmp_path / ".onnx-1-0.unfinished").mkdir()
    finish_another(tmp_path / "onnx", "folder")
    assert {entry.name for entry in tmp_path.iterdir()} == {"onnx", ".onnx-1-0.unfinished"}


@posix
def test_an_unfinished_file_that_another_process_took_for_remains_gets_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    taken: list[int] = []

    def lock(descriptor: int) -> bool:
        if not taken:
            taken.append(1)
            remove_unfinished(tmp_path)
        return known(descriptor)

    known = files.lock
    monkeypatch.setattr(files, "lock", lock)
    finish_another(tmp_path / "onnx", "folder")
    assert taken
    assert (tmp_path / "onnx" / "weights").read_bytes() == b"few"


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_error_leaves_nothing_unfinished(kind: str, tmp_path: Path):
    def fail() -> None:
        with temporary_path(tmp_path / "onnx", is_folder=kind == "folder"):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not [*tmp_path.iterdir()]


@posix
def test_a_private_folder_is_left_by_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files.tempfile, "tempdir", str(tmp_path))
    (tmp_path / ".another-program.unfinished").mkdir()
    with start(tmp_path / "heedful", "folder", "dies") as process:
        process.communicate("")
    assert len([*tmp_path.iterdir()]) == 2
    with private_folder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {*tmp_path.iterdir()} == {folder, tmp_path / ".another-program.unfinished"}
        (folder / "data").write_bytes(b"of a user")
    assert [*tmp_path.iterdir()] == [tmp_path / ".another-program.unfinished"]


def test_what_is_moved_aside_counts_as_unfinished(tmp_path: Path):
    (tmp_path / "onnx").mkdir()
    aside = move_aside(tmp_path / "onnx")
    assert [*tmp_path.iterdir()] == [aside]
    if os.name != "nt":
        remove_unfinished(tmp_path)
        assert not [*tmp_path.iterdir()]


def test_long_names_stay_short_enough(tmp_path: Path):
    for name in ("x" * 250, "二" * 83):
        write(atomic_write, tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == "new\n"
