"""The command line within the test process, as a shell would see it."""

import io
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from heedful.cli.main import main


class Done(NamedTuple):
    """Outcome of a command."""

    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        """The lines on standard error that say what went wrong."""
        return [line for line in self.err.split("\n") if line.startswith("heedful: error: ")]


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def heedful(*arguments: object, stdin: bytes = b"", is_terminal: bool = False) -> Done:
    """Run `heedful` with these arguments; standard streams are bytes, as a shell's are."""
    wrapper = _Terminal if is_terminal else io.TextIOWrapper
    streams = wrapper(io.BytesIO(stdin), encoding="utf-8"), *(io.TextIOWrapper(io.BytesIO(), "ascii") for _ in "oe")
    kept = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        code = main([str(argument) for argument in arguments])
    finally:
        sys.stdin, sys.stdout, sys.stderr = kept
    out, err = (_text(stream) for stream in streams[1:])
    return Done(code, out, err)


@contextmanager
def disk_quota(num_bytes: int) -> Generator[None]:
    """Let every file that grows beyond a size fail as on a full disk; needs POSIX."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    written = stream.buffer
    assert isinstance(written, io.BytesIO)
    return written.getvalue().decode("utf-8")
