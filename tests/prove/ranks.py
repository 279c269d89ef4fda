"""Several processes that train together, as `torchrun` starts them, without waiting for the start of each.

Each rank has a server of its own, a process of Python with a hash seed of its own, that imports PyTorch and heedful
once and forks for each training. What differs between processes that were started separately (the order of sets, that
of the tensors of a file) differs here too; ranks forked from one process would share it, and so hide a wrong order.
"""

import atexit
import faulthandler
import importlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch
from torch import distributed

from heedful.errors import HeedfulError
from heedful.files.atomic_write import private_folder
from heedful.training import distributed as training
from heedful.training.distributed import Ranks, process_group

REASON = "needs os.fork and torch.distributed with gloo"
IS_POSSIBLE = hasattr(os, "fork") and distributed.is_available() and distributed.is_gloo_available()

UNFORESEEN = (1, -signal.SIGABRT, -signal.SIGSEGV)
"""Exit codes after which what the process said is printed."""
LIMITS = ("DEADLINE_SECONDS", "SILENT_SECONDS", "BEAT_SECONDS")
"""Constants of training that a test may change; the processes have its values."""
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ended:
    """How the processes ended."""

    codes: list[int]
    """Exit codes by rank; negative for a signal, 99 for one that had to be killed at the deadline."""
    seconds: float
    """From the first end to the last."""
    all_seconds: float
    """From the start."""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def launch(size: int, body: Callable[[Ranks], object], deadline: float = 600.0, hung: int = -1) -> Ended:
    """Run a body in so many processes; one that is going to hang is killed once the others are gone.

    Args:
        size: number of processes.
        body: function of importable modules or of this one's locals; it and what it holds are copied.
        deadline: seconds after which all are killed.
        hung: rank of the one that hangs.

    Returns:
        How they ended.
    """
    import cloudpickle

    # As with torchrun, none of the processes holds what they find each other by.
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    limits = {name: getattr(training, name) for name in LIMITS}
    with private_folder() as folder:
        # Of what gloo says of lost connections, only an unforeseen end makes use.
        said = [folder / str(rank) for rank in range(size)]
        while len(_SERVERS) < size:
            _SERVERS.append(_Server(len(_SERVERS)))
        for server, path in zip(_SERVERS[:size], said, strict=True):
            server.start(cloudpickle.dumps((size, store.port, limits, body, str(path))))
        codes: dict[int, int] = {}
        first_end = began = time.monotonic()
        while len(codes) < size:
            for rank in range(size):
                server = _SERVERS[rank]
                if rank in codes:
                    continue
                if rank == hung and len(codes) == size - 1:
                    server.kill()
                if (code := server.code()) is not None:
                    first_end = time.monotonic() if not codes else first_end
                    codes[rank] = code
                elif time.monotonic() - began > deadline:
                    server.kill()
                    server.wait()
                    codes[rank] = 99
            time.sleep(0.005)
        ended_at = time.monotonic()
        for rank, path in enumerate(said):
            if codes[rank] in UNFORESEEN:
                print(f"process {rank} ended with {codes[rank]}:", path.read_text(errors="replace"), file=sys.stderr)
    return Ended([codes[rank] for rank in range(size)], ended_at - first_end, ended_at - began)


@final
class _Server:
    """Process that forks the process of one rank."""

    def __init__(self, rank: int) -> None:
        environment = os.environ | {"PYTHONHASHSEED": str(1000 + rank), "RANK": str(rank), "LOCAL_RANK": str(rank)}
        environment["PYTHONPATH"] = os.pathsep.join(each or "." for each in sys.path)
        command = [sys.executable, "-m", __name__]
        pipe = subprocess.PIPE
        self._process: Any = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, cwd=REPOSITORY)
        os.set_blocking(self._process.stdout.fileno(), False)
        self._pid, self._said = 0, b""
        atexit.register(self._process.stdin.close)

    def start(self, task: bytes) -> None:
        self._process.stdin.write(len(task).to_bytes(8, "little") + task)
        self._process.stdin.flush()
        self._pid = int(self._line())

    def code(self) -> int | None:
        """Exit code of the process, or None while it runs."""
        self._said += self._process.stdout.read() or b""
        assert self._said or self._process.poll() is None, f"the server of a rank ended with {self._process.returncode}"
        line, end, rest = self._said.partition(b"\n")
        if not end:
            return None
        self._said = rest
        return int(line)

    def kill(self) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
        self._pid = 0  # its number may soon be another process's

    def wait(self) -> None:
        self._line()

    def _line(self) -> str:
        while (number := self.code()) is None:
            time.sleep(0.002)
        return str(number)


_SERVERS: list[_Server] = []


def serve() -> None:
    """Fork for each task on standard input; print the child's process id, and its exit code once it has ended."""
    importlib.import_module("torch.distributed.fsdp")  # before any fork, because it takes its time
    torch.set_num_threads(1)
    while length := sys.stdin.buffer.read(8):
        size, port, limits, body, said = pickle.loads(sys.stdin.buffer.read(int.from_bytes(length, "little")))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch has threads; the child uses none of them
            pid = os.fork()
        if not pid:
            os.environ |= {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            os.environ |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
            for name, value in limits.items():
                setattr(training, name, value)
            _run(body, said)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _run(body: Callable[[Ranks], object], said: str) -> None:
    code = 1
    try:
        for stream, path in ((0, os.devnull), (1, os.devnull), (2, said)):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), stream)
        faulthandler.enable(2)  # an abort tells where it was
        with process_group("cpu") as ranks:
            body(ranks)
        code = 0
    except HeedfulError as error:
        code = error.exit_code
    except SystemExit as error:
        code = int(error.code or 0)
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
