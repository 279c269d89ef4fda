"""CUDA graphs as PyTorch makes them, seen by stand-ins: streams, pools of memory, failures and threads."""

import gc
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from heedful.models.recording import WARM_UPS, CudaGraphs, give_memory_back, make_recorder
from heedful.training import train_state


class Stream:
    """Stream of the device that was present."""

    def __init__(self, device: str) -> None:
        self.device = device

    def wait_stream(self, other: "Stream") -> None: ...


class Graph:
    """Stand-in for a recorded graph."""

    def replay(self) -> None: ...


class Cuda:
    """Stand-in for PyTorch's CUDA, with its rules about recordings."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.present = "cuda:0"
        self.current = Stream("cuda:0")
        self.pools = list[object]()
        self.is_recording = False
        self.num_emptied = 0
        for name in ("device", "stream", "graph", "graph_pool_handle", "current_stream", "set_stream", "empty_cache"):
            monkeypatch.setattr(torch.cuda, name, getattr(self, name))
        monkeypatch.setattr(torch.cuda, "Stream", lambda: Stream(self.present))
        monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)

    @contextmanager
    def device(self, device: torch.device) -> Generator[None]:
        before, stream = self.present, self.current
        self.present = str(device)
        self.current = stream if stream.device == self.present else Stream(self.present)
        yield
        self.present, self.current = before, stream

    @contextmanager
    def stream(self, stream: Stream) -> Generator[None]:
        before, self.current = self.current, stream
        yield
        self.current = before

    @contextmanager
    def graph(
        self, graph: object, pool: object = None, stream: Stream | None = None, capture_error_mode: str = "global"
    ) -> Generator[None]:
        """Like PyTorch's, one that fails leaves its stream."""
        self.empty_cache()
        self.is_recording = True
        before, self.current = self.current, stream or Stream("cuda:0")
        self.pools.append(pool)
        try:
            yield
        finally:
            self.is_recording = False
        self.current = before

    def graph_pool_handle(self) -> object:
        return object()

    def current_stream(self) -> Stream:
        return self.current

    def set_stream(self, stream: Stream) -> None:
        self.current = stream

    def empty_cache(self) -> None:
        assert not self.is_recording, "INTERNAL ASSERT FAILED: captures_underway.empty()"
        self.num_emptied += 1


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    return Cuda(monkeypatch)


def test_recordings_take_what_the_models_device_launches(cuda: Cuda):
    """`--device cuda:1`: a stream of the present device would record nothing of it."""
    recorder, seen = make_recorder(torch.device("cuda:1")), list[Stream]()
    assert isinstance(recorder, CudaGraphs)
    kept = [recorder.record(lambda: seen.append(cuda.current)) for _ in range(2)]
    # What libraries allocate for a stream, they allocate before the recording.
    assert [stream.device for stream in seen] == ["cuda:1"] * (2 * WARM_UPS + 2)
    assert len({*map(id, seen)}) == 1
    assert len(kept) == 2
    assert make_recorder(torch.device("cpu")) is None


def test_graphs_share_a_pool_as_long_as_one_of_them_lives(cuda: Cuda):
    recorder = CudaGraphs(torch.device("cuda:0"))

    def fail() -> None:
        if cuda.is_recording:
            raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError):
        recorder.record(fail)
    kept = [recorder.record(lambda: None), recorder.record(lambda: None)]
    failed, first, second = cuda.pools
    assert failed is not first
    assert second is first
    del kept[:]
    gc.collect()
    recorder.record(lambda: None)
    assert cuda.pools[-1] is not first


def test_a_recording_that_fails_leaves_the_stream_as_it_was(cuda: Cuda):
    before = cuda.current

    def fail() -> None:
        if cuda.is_recording:
            raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.raises(RuntimeError, match="not permitted"):
        CudaGraphs(torch.device("cuda:0")).record(fail)
    assert cuda.current is before


@pytest.mark.parametrize("other", [lambda: CudaGraphs(torch.device("cuda:0")).record(lambda: None), give_memory_back])
def test_memory_is_not_given_back_while_another_thread_records(cuda: Cuda, other: Callable[[], Any]):
    errors, started = list[BaseException](), threading.Event()

    def work() -> None:
        if cuda.is_recording:
            started.set()
            time.sleep(0.1)

    def call() -> None:
        started.wait()
        try:
            other()
        except BaseException as error:  # an assertion of the stand-in, too
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    CudaGraphs(torch.device("cuda:0")).record(work)
    thread.join()
    assert not errors
    assert cuda.num_emptied == 2


def test_losses_are_waited_for_on_the_models_device(monkeypatch: pytest.MonkeyPatch):
    """The moment of a stream that has nothing to do is over before the loss is there."""
    recorded = list[Any]()
    event = SimpleNamespace(record=lambda stream=None: recorded.append(stream))
    monkeypatch.setattr(torch.cuda, "Event", lambda: event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: f"stream of {device}")
    assert train_state._moment(torch.device("cuda:1")) is event  # pyright: ignore[reportPrivateUsage]
    assert recorded == ["stream of cuda:1"]
