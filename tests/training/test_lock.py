"""One training in a folder at a time, and no lock that outlives its holder."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from heedful.errors import UsageError
from heedful.training.lock import locked

HOLD = """
import sys, time
from pathlib import Path
from heedful.training import lock
if sys.argv[2] == "by name":
    def refuse(descriptor):
        raise lock.NoLocks
    lock.lock = refuse
with lock.locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""
WAYS = ("by the system", "by name")


@contextmanager
def held_elsewhere(folder: Path, way: str) -> Generator[subprocess.Popen[bytes]]:
    """Another process holds the folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder), way], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close() if process.stdout else None


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "by name":
        _without_locks(monkeypatch, errno.ENOLCK)
    return request.param


def _without_locks(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    fcntl = pytest.importorskip("fcntl")

    def flock(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)


def test_the_second_is_told_who_holds_it(way: str, tmp_path: Path):
    with (
        held_elsewhere(tmp_path, way) as process,
        pytest.raises(UsageError) as caught,
        locked(tmp_path),
    ):
        pass
    assert caught.value.exit_code == 2
    said = str(caught.value)
    assert said.startswith(f"{tmp_path}: process {process.pid} on {socket.gethostname()}, since 2")
    assert "is training in it; wait for it, or choose another --out" in said
    assert ("delete" in said) == (way == "by name")
    assert "\n" not in said


def test_a_dead_holder_blocks_nobody(way: str, tmp_path: Path):
    with held_elsewhere(tmp_path, way) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        with locked(tmp_path):
            told = json.loads(next(iter(sorted(tmp_path.glob("lock*"), reverse=True))).read_bytes())
            assert told["process"] == os.getpid()


def test_two_in_one_process_are_two(way: str, tmp_path: Path):
    with locked(tmp_path):
        with pytest.raises(UsageError, match=f"process {os.getpid()} "), locked(tmp_path):
            pass
        with pytest.raises(UsageError), locked(tmp_path):  # the refusal freed nothing
            pass


def test_it_is_free_again_after_its_body_also_after_an_error(way: str, tmp_path: Path):
    with pytest.raises(OSError, match="mine"), locked(tmp_path):
        raise OSError("mine")
    with locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_a_lock_of_another_machine_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _without_locks(monkeypatch, errno.ENOTSUP)
    told = {"process": 1, "host": "elsewhere", "since": "2026-11-21T17:00:00+00:00"}
    (tmp_path / "lock.held").write_bytes(json.dumps(told).encode())
    said = f"process 1 on elsewhere, since 2026-11-21T17:00:00.*delete {tmp_path / 'lock.held'}"
    with pytest.raises(UsageError, match=said), locked(tmp_path):
        pass


def test_an_unreadable_one_says_less(tmp_path: Path):
    with held_elsewhere(tmp_path, WAYS[0]):
        (tmp_path / "lock").write_bytes(b"{")
        with pytest.raises(UsageError, match=": another process is training in it"), locked(tmp_path):
            pass


def test_other_errors_of_the_disk_are_what_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _without_locks(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)), locked(tmp_path):
        pass
    with pytest.raises(FileNotFoundError), locked(tmp_path / "nothing"):
        pass
