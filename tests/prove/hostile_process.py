"""A command of heedful in a forked process that is watched: its streams, its limits, its time and its memory.

A server imports PyTorch and heedful once and forks for each case, so that a case costs milliseconds instead of seconds.
"""

import io
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NoReturn

Stream = Literal["file", "closed", "full", "left"]
"""Where a stream goes: a file; nowhere, as with `>&-`; a full device; a pipe whose reader has left."""
SECONDS: Final = 30.0
"""Longest computing time of a command, and longest time without computing, in seconds; on a busy machine, the time by
the clock says nothing."""
BYTES: Final = 1 << 30
_IMPORTS_BYTES: Final = 256 << 20
"""Memory that a server has when it has imported all that commands import; what it has beyond, as in a test run of
thousands of tests, is not the command's."""
_POLL_SECONDS: Final = 0.004
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Surroundings:
    """Streams, limits and events of one run of a command."""

    stdin: bytes | None = b""
    """Content of standard input; None = closed."""
    stdout: Stream = "file"
    stderr: Stream = "file"
    file_bytes: int = -1
    """Largest size of a file that the process may write, as on a full disk; -1 = no limit."""
    killed_after: float = -1.0
    """Seconds after which the process gets `signal`; -1 = never."""
    signal: int = signal.SIGKILL
    environment: tuple[tuple[str, str], ...] = ()
    without_folder: bool = False
    """Whether the working directory is removed before the command begins."""
    full_device: Path | None = None
    """A device that is full, for a stream that is "full"."""
    most_seconds: float = SECONDS
    most_bytes: int = BYTES


@dataclass(frozen=True)
class Outcome:
    """End of a command."""

    code: int
    """Exit code; negative = number of the signal that ended it."""
    out: bytes
    err: bytes
    seconds: float
    most_bytes: int
    """Largest resident memory, the imports of the server included."""
    is_killed: bool = False
    """Whether the watch ended it: for its time, its memory or on demand."""

    @property
    def message(self) -> str:
        """Last line on standard error."""
        return self.err.decode("utf-8", "replace").strip().split("\n")[-1]


PLAIN: Final = Surroundings()
PATIENT: Final = Surroundings(most_seconds=600.0, most_bytes=8 << 30)


def run(arguments: Sequence[str], folder: Path, streams: Path, about: Surroundings = PLAIN) -> Outcome:
    """Run a command and wait for its end.

    Args:
        arguments: words after `heedful`.
        folder: its working directory.
        streams: a folder for its standard output and error.
        about: its surroundings.
    """
    return Run(arguments, folder, streams, about).wait()


@dataclass
class Run:
    """A running command."""

    arguments: Sequence[str]
    folder: Path
    streams: Path
    about: Surroundings = PLAIN
    main: Callable[[Sequence[str]], int] | None = None
    """What runs in the place of the command line, in tests of this module."""
    is_real: bool = False
    """Whether the command runs in a new process of Python instead of a fork of this one."""
    _pid: int = field(init=False)
    _pipes: list[tuple[int, int]] = field(init=False)
    """Where the limit of files would also cut what the command says, pipes for it."""
    _started: float = field(init=False)
    _inherited: int = field(init=False)
    """Bytes of the server that do not count."""

    def __post_init__(self) -> None:
        self.streams.mkdir(parents=True, exist_ok=True)
        (self.streams / "in").write_bytes(self.about.stdin or b"")
        for name in _NAMES:
            (self.streams / name).unlink(missing_ok=True)
        sys.stdout.flush()
        sys.stderr.flush()
        self._pipes = [os.pipe() for _ in _NAMES] if self.about.file_bytes >= 0 else []
        # Signals wait until the command begins: before, they would hit this program.
        signal.pthread_sigmask(signal.SIG_BLOCK, _WAITING)
        self._started = time.monotonic()
        self._inherited = 0 if self.is_real else max(_own(os.getpid()) - _IMPORTS_BYTES, 0)
        self._pid = os.fork()
        if self._pid == 0:
            self._be_the_command()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAITING)
        for _, writer in self._pipes:
            os.close(writer)

    def wait(self) -> Outcome:
        """Watch the process until it ends, or end it."""
        most_bytes, is_killed, is_signalled = 0, False, False
        computed, active = 0.0, 0.0
        said = [bytearray() for _ in self._pipes]
        for reader, _ in self._pipes:
            os.set_blocking(reader, False)
        while True:
            for pieces, (reader, _) in zip(said, self._pipes, strict=True):
                pieces += _available(reader)
            pid, status, _ = os.wait4(self._pid, os.WNOHANG)
            seconds = time.monotonic() - self._started
            if pid:
                break
            most_bytes = max(most_bytes, _resident(self._pid) - self._inherited)
            if (now := _computed(self._pid)) > computed:
                computed, active = now, seconds
            is_late = max(computed, seconds - active) > self.about.most_seconds
            if is_late or most_bytes > self.about.most_bytes:
                is_killed = True
                self._kill()
            elif not is_signalled and 0 <= self.about.killed_after <= seconds:
                is_signalled = True
                os.kill(self._pid, self.about.signal)
            time.sleep(_POLL_SECONDS)
        for pieces, name, (reader, _) in zip(said, _NAMES, self._pipes, strict=False):
            (self.streams / name).write_bytes(bytes(pieces) + _available(reader))
            os.close(reader)
        out, err = ((self.streams / name).read_bytes() if (self.streams / name).exists() else b"" for name in _NAMES)
        return Outcome(os.waitstatus_to_exitcode(status), out, err, seconds, most_bytes, is_killed)

    def _kill(self) -> None:
        """Kill the process and those that it started."""
        try:
            os.killpg(self._pid, signal.SIGKILL)
        except ProcessLookupError:  # not yet the leader of its group
            os.kill(self._pid, signal.SIGKILL)

    def _be_the_command(self) -> NoReturn:
        code = 70
        try:
            code = self._run()
        except BaseException:
            traceback.print_exc()  # as the interpreter does with an exception that nobody catches
            sys.stderr.flush()
            code = 1
        finally:
            os._exit(code)

    def _run(self) -> int:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(self.folder)
        if self.about.without_folder:
            os.rmdir(self.folder)
        os.environ.update(self.about.environment)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self._open_streams()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAITING)
        if self.is_real:
            os.execve(sys.executable, [sys.executable, "-m", "heedful", *self.arguments], {**os.environ})
        if self.about.file_bytes >= 0:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.about.file_bytes,) * 2)
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        if self.main is None:
            from heedful.cli.main import main

            self.main = main
        code = self.main(self.arguments)
        try:  # as the interpreter does when it ends
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except OSError:
            return 120
        return code

    def _open_streams(self) -> None:
        kinds = ("file" if self.about.stdin is not None else "closed", self.about.stdout, self.about.stderr)
        for number, kind in enumerate(kinds):
            opened = self._opened(number, kind)
            if opened >= 0 and opened != number:
                os.dup2(opened, number)
                os.close(opened)
        for number, (reader, writer) in enumerate(self._pipes, 1):
            os.close(reader)
            os.dup2(writer, number)
            os.close(writer)
        encodings = {"encoding": "utf-8"}
        streams = [
            None if kind == "closed" else io.TextIOWrapper(open(number, mode, closefd=False), **encodings)
            for number, (kind, mode) in enumerate(zip(kinds, ("rb", "wb", "wb"), strict=True))
        ]
        sys.stdin, sys.stdout, sys.stderr = streams  # type: ignore[assignment]
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams  # type: ignore[misc,assignment]

    def _opened(self, number: int, kind: Stream) -> int:
        if kind == "closed":
            os.close(number)
            return -1
        if kind == "left":
            reader, writer = os.pipe()
            os.close(reader)
            return writer
        if kind == "full":
            return os.open(self.about.full_device or "/dev/full", os.O_WRONLY)
        if number == 0:
            return os.open(self.streams / "in", os.O_RDONLY)
        return os.open(self.streams / _NAMES[number - 1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


_NAMES: Final = ("out", "err")
_WAITING: Final = (signal.SIGINT, signal.SIGTERM)


def _available(descriptor: int) -> bytes:
    """What can be read from a pipe without waiting."""
    pieces: list[bytes] = []
    try:
        while piece := os.read(descriptor, 1 << 16):
            pieces.append(piece)
    except BlockingIOError:
        pass
    return b"".join(pieces)


def _computed(pid: int) -> float:
    """Computing time of a process in seconds; 0 where it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            words = file.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / _TICKS
    except (OSError, IndexError):
        return 0.0


def _resident(pid: int) -> int:
    """Resident memory of a process in bytes; 0 where it has ended."""
    return _pages(pid)[0] * _PAGE


def _own(pid: int) -> int:
    """Resident memory of a process that is no file's, in bytes; 0 where it has ended."""
    resident, of_files = _pages(pid)
    return (resident - of_files) * _PAGE


def _pages(pid: int) -> tuple[int, int]:
    """Number of resident pages of a process, and how many of them are files'; zeros where it has ended."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            _, resident, of_files, *_ = file.read().split()
            return int(resident), int(of_files)
    except (OSError, ValueError):
        return 0, 0
