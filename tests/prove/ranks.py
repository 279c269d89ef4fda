"""Several processes that train together, forked from this one, with a hand on each: `torchrun` without its start-up."""

import faulthandler
import os
import signal
import socket
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import distributed

from heedful.errors import HeedfulError
from heedful.training.distributed import Ranks, joined

REASON = "needs os.fork and torch.distributed with gloo"
IS_POSSIBLE = hasattr(os, "fork") and distributed.is_available() and distributed.is_gloo_available()

UNFORESEEN = (1, -signal.SIGABRT, -signal.SIGSEGV)
"""Exit codes after which what the process said is printed."""


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

    Returns:
        How they ended.
    """
    reads, writes = os.pipe()
    # Of what gloo says of lost connections, only an unforeseen end makes use.
    said = [tempfile.TemporaryFile() for _ in range(size)]
    pids = [_fork(rank, size, reads, body, said[rank].fileno()) for rank in range(size)]
    # As with torchrun, none of the processes holds what they find each other by. It has a thread, and a lock that a
    # thread holds while its process forks stays locked in the child for good: so it comes after them.
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    os.write(writes, f"{store.port:05d}".encode() * size)
    os.close(reads)
    os.close(writes)
    codes: dict[int, int] = {}
    first_end = began = time.monotonic()
    while len(codes) < size:
        for rank, pid in enumerate(pids):
            if pid in codes:
                continue
            if rank == hung and len(codes) == size - 1:
                os.kill(pid, signal.SIGKILL)
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                first_end = time.monotonic() if not codes else first_end
                codes[pid] = os.waitstatus_to_exitcode(status)
            elif time.monotonic() - began > deadline:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                codes[pid] = 99
        time.sleep(0.005)
    ended_at = time.monotonic()
    for rank, (pid, file) in enumerate(zip(pids, said, strict=True)):
        with file:
            file.seek(0)
            if codes[pid] in UNFORESEEN:
                print(f"process {rank} ended with {codes[pid]}:", file.read().decode(errors="replace"), file=sys.stderr)
    return Ended([codes[pid] for pid in pids], ended_at - first_end, ended_at - began)


def _fork(rank: int, size: int, port_pipe: int, body: Callable[[Ranks], object], stderr: int) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch has threads; the child uses none of them
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank)}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.read(port_pipe, 5).decode()}
        os.environ |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
        torch.set_num_threads(1)
        os.dup2(stderr, 2)
        faulthandler.enable(2)  # an abort tells where it was
        with joined("cpu") as ranks:
            body(ranks)
        code = 0
    except HeedfulError as error:
        code = error.exit_code
    except SystemExit as error:
        code = int(error.code or 0)
    except Exception:
        traceback.print_exc(file=os.fdopen(os.dup(2), "w"))  # pytest has replaced sys.stderr
    finally:
        os._exit(code)
