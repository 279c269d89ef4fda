"""Data-parallel training: each rank takes a slice of every batch; summed gradients equal single-process training.

The first process prepares, validates, saves and reports; the others wait for it, up to a deadline. All processes make
the same decisions at each step, because they exchange what differs between them (clocks, signals, sums).

Gradients are summed in fixed buckets: `DistributedDataParallel` rebuilds its buckets after the first step, so that a
resumed training would sum in another order than an uninterrupted one.
"""

import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, final

import torch
from torch import Tensor, distributed, nn

from heedful.data.batch import Batch
from heedful.errors import EndedElsewhere, HeedfulError, LostProcess, UsageError
from heedful.training.rank import RankInfo, rank_info

if TYPE_CHECKING:  # not in every build of PyTorch
    from torch.distributed.distributed_c10d import Store

DEADLINE_SECONDS: Final = 60.0
"""Seconds without a contribution to a sum after which a process counts as lost."""
SILENT_SECONDS: Final = 30.0
"""Seconds without a heartbeat after which the first process, for which the others wait, counts as lost."""
BEAT_SECONDS: Final = 5.0
"""Seconds between two heartbeats."""
_BUCKET_BYTES: Final = 1 << 25
_OF_TALK: Final = ("gloo", "nccl", "connection", "timed out", "peer")
_GOLDEN: Final = 0x9E3779B97F4A7C15


class Share(NamedTuple):
    """Slice of a batch that one process computes."""

    batch: Batch
    is_real: bool
    """Whether the slice counts; False if no row is left for this process, which then gets a row of another one."""


class Ranks(ABC):
    """Processes of one training, as seen by one of them."""

    place: RankInfo

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and messages."""
        return self.place.rank == 0

    def device(self, name: str) -> str:
        """Choose this process's device.

        Args:
            name: device that the user named.

        Returns:
            The same name; for "cuda" without a number, one CUDA device per process of the machine.
        """
        return f"cuda:{self.place.local_rank}" if name == "cuda" and self.place.size > 1 else name

    def share(self, batch: Batch) -> Share:
        """Return every size-th row from the rank-th: neighbours are of similar length, and so are the slices.

        Args:
            batch: batch, the same on all processes.
        """
        rank, size = self.place.rank, self.place.size
        if size == 1:
            return Share(batch, is_real=True)
        is_real = rank < len(batch)
        return Share(batch.rows(slice(rank, None, size) if is_real else slice(0, 1)), is_real)

    def seed(self, seed: int, step: int) -> int:
        """Return the seed of dropout, a function of the training's seed, the step and the rank.

        Args:
            seed: seed of the training, below 2^31.
            step: from 1.

        Returns:
            64 bits; on the first process, the same as in single-process training.
        """
        return ((seed << 32) + step) ^ (self.place.rank * _GOLDEN & (1 << 64) - 1)

    @contextmanager
    def connected(self) -> Generator[None]:
        """Turn errors of implicit communication within the context into LostProcess.

        Yields:
            Nothing.
        """
        yield

    @abstractmethod
    def broadcast(self, model: nn.Module) -> None:
        """Broadcast the first process's parameters.

        Args:
            model: model, of the same shape on all processes.

        Raises:
            LostProcess: another process ended, or does not respond.
        """

    @abstractmethod
    def add_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace each gradient by its sum over all processes; a missing one counts as zero.

        Args:
            parameters: parameters, the same on all processes.

        Raises:
            LostProcess: another process ended, or does not respond.
        """

    @abstractmethod
    def gather(self, *numbers: float) -> list[tuple[float, ...]]:
        """Exchange numbers.

        Args:
            numbers: as many numbers on all processes.

        Returns:
            The numbers of each process, by rank; the same on all processes.

        Raises:
            LostProcess: another process ended, or does not respond.
        """

    @abstractmethod
    def first(self, body: Callable[[], Sequence[float]]) -> list[float]:
        """Run a function on the first process while the others wait, as long as its heartbeat continues.

        Args:
            body: function that only the first process calls.

        Raises:
            LostProcess: the first process ended, or does not respond.
            EndedElsewhere: the function raised an error; raised on the other processes.
        """


@final
class SingleProcess(Ranks):
    """Training by one process."""

    place = RankInfo()

    def broadcast(self, model: nn.Module) -> None: ...

    def add_gradients(self, parameters: Sequence[nn.Parameter]) -> None: ...

    def gather(self, *numbers: float) -> list[tuple[float, ...]]:
        return [numbers]

    def first(self, body: Callable[[], Sequence[float]]) -> list[float]:
        return list(body())


@final
class ProcessGroup(Ranks):
    """Training by several processes, connected by gloo, and on GPUs by NCCL."""

    def __init__(self, rank_info: RankInfo, store: "Store") -> None:
        """Connect to the store.

        Args:
            store: store that all processes can reach.
        """
        self.place = rank_info
        self._store: Final = store
        self._turns: Final = count()

    def broadcast(self, model: nn.Module) -> None:
        with torch.no_grad(), self._connected():
            for parameter in model.parameters():
                distributed.broadcast(parameter.detach(), 0)

    def add_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        for parameter in trained:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        with self._connected():
            sums = [(bucket, _flat(bucket)) for bucket in _buckets(trained)]
            works = [distributed.all_reduce(flat, async_op=True) for _, flat in sums]
            for (bucket, flat), work in zip(sums, works, strict=True):
                if work is not None:
                    work.wait()
                for parameter, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                    parameter.grad = part.view_as(parameter)

    def gather(self, *numbers: float) -> list[tuple[float, ...]]:
        mine = torch.tensor(numbers, dtype=torch.float64)
        rows = [torch.empty_like(mine) for _ in range(self.place.size)]
        with self._connected():
            distributed.all_gather(rows, mine)
        return [tuple(row.tolist()) for row in rows]

    def first(self, body: Callable[[], Sequence[float]]) -> list[float]:
        key = f"turn {next(self._turns)}"
        numbers = self._lead(key, body) if self.is_first else self._wait(key)
        self.gather()  # the first process may host the store, so it must not end before all have read the result
        return numbers

    def _lead(self, key: str, body: Callable[[], Sequence[float]]) -> list[float]:
        try:
            with self._beating(key):
                numbers = list(body())
        except BaseException as error:
            code = error.exit_code if isinstance(error, HeedfulError) else 1
            with suppress(HeedfulError), self._connected():
                self._store.set(key, json.dumps({"ended": code}))
                self.gather()
            raise
        with self._connected():
            self._store.set(key, json.dumps({"numbers": numbers}))
        return numbers

    @contextmanager
    def _beating(self, key: str) -> Generator[None]:
        """Send heartbeats within the context."""
        is_done = threading.Event()

        def beat() -> None:
            for number in count():
                if is_done.wait(BEAT_SECONDS if number else 0.0):
                    return
                try:
                    self._store.set(f"{key} beat", str(number))
                except RuntimeError:
                    return  # the other processes or the launcher are gone; the next exchange will detect it

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_done.set()
            thread.join()

    def _wait(self, key: str) -> list[float]:
        beat, heard_at, pause = b"", time.monotonic(), 0.001
        with self._connected():
            while not self._store.check([key]):
                time.sleep(pause)
                pause = min(0.1, 2.0 * pause)
                now = self._store.get(f"{key} beat") if self._store.check([f"{key} beat"]) else b""
                if now != beat:
                    beat, heard_at = now, time.monotonic()
                if time.monotonic() - heard_at > SILENT_SECONDS:
                    raise self._lost("silent")
            message = json.loads(self._store.get(key))
        if "ended" in message:
            with suppress(HeedfulError):
                self.gather()
            raise EndedElsewhere(int(message["ended"]))
        return [float(number) for number in message["numbers"]]

    @contextmanager
    def _connected(self) -> Generator[None]:
        try:
            yield
        except HeedfulError:
            raise
        except RuntimeError as error:  # all that gloo, NCCL and the store raise
            raise self._lost(str(error).partition("\n")[0]) from None

    @contextmanager
    def connected(self) -> Generator[None]:
        try:
            yield
        except RuntimeError as error:
            if not any(word in str(error).lower() for word in _OF_TALK):
                raise
            raise self._lost(str(error).partition("\n")[0]) from None

    def _lost(self, why: str) -> HeedfulError:
        if not self.is_first:
            return EndedElsewhere(LostProcess.exit_code)
        return LostProcess(
            f"another of the {self.place.size} processes ended or is silent ({why}); nothing of this step was kept; "
            "the same command goes on from the last checkpoint"
        )


def _buckets(parameters: Sequence[nn.Parameter]) -> Generator[list[nn.Parameter]]:
    """Divide parameters, in their order, into buckets of about equal size and of one dtype."""
    bucket: list[nn.Parameter] = []
    num_bytes = 0
    for parameter in parameters:
        is_other = bool(bucket) and (parameter.dtype, parameter.device) != (bucket[0].dtype, bucket[0].device)
        if is_other or num_bytes >= _BUCKET_BYTES:
            yield bucket
            bucket, num_bytes = [], 0
        bucket.append(parameter)
        num_bytes += parameter.numel() * parameter.element_size()
    if bucket:
        yield bucket


def _flat(bucket: Sequence[nn.Parameter]) -> Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in bucket if parameter.grad is not None])


@contextmanager
def process_group(device: str) -> Generator[Ranks]:
    """Connect to the other processes that `torchrun` started, if it did.

    Args:
        device: device to compute on.

    Yields:
        The processes of this training.

    Raises:
        UsageError: this PyTorch cannot connect processes.
        LostProcess: the other processes did not connect.
    """
    here = rank_info()
    if here.size == 1:
        yield SingleProcess()
        return
    if not distributed.is_available():
        raise UsageError("torchrun: this PyTorch was built without torch.distributed; train with one process")
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    wait = timedelta(seconds=DEADLINE_SECONDS)
    backend = "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"
    try:
        store, rank, size = next(iter(rendezvous("env://", timeout=wait)))
        distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=wait)
    except (RuntimeError, ValueError) as error:
        raise LostProcess(f"torchrun: the {here.size} processes did not find each other: {error}") from None
    ranks = ProcessGroup(here, PrefixStore("heedful", store))
    if device == "cuda":
        torch.cuda.set_device(here.local_rank)
    try:
        yield ranks
    finally:
        # After an error the other processes may not respond; then the connections end with the process.
        leaving = threading.Thread(target=distributed.destroy_process_group, daemon=True)
        leaving.start()
        leaving.join(BEAT_SECONDS)
