"""How CUDA graphs are recorded, with all of CUDA played by this file."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from heedful.errors import UsageError
from heedful.models.recording import WARM_UPS, CudaGraphs


class Device:
    """Notes what happens, in order."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.pools: list[object] = []
        self.refuses = False

    def stream(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(name=name, wait_stream=lambda other: self.log.append(f"{name} waits for {other.name}"))

    @contextmanager
    def on(self, stream: SimpleNamespace) -> Generator[None]:
        self.log.append(f"on {stream.name}")
        yield
        self.log.append(f"off {stream.name}")

    @contextmanager
    def graph(self, graph: SimpleNamespace, pool: object, capture_error_mode: str) -> Generator[None]:
        self.pools.append(pool)
        self.log.append("records")
        yield
        if self.refuses:
            raise RuntimeError("operation not permitted when stream is capturing\nmore of it")
        self.log.append("recorded")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    main = made.stream("main")
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", object)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: made.stream("aside"))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: main)
    monkeypatch.setattr(torch.cuda, "stream", made.on)
    monkeypatch.setattr(torch.cuda, "graph", made.graph)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: SimpleNamespace(replay=lambda: made.log.append("replayed")))
    return made


def worker(device: Device) -> Callable[[], None]:
    return lambda: device.log.append("works")


def test_work_is_warmed_up_aside_and_then_recorded(device: Device):
    replay = CudaGraphs(torch.device("cuda")).record(worker(device))
    assert device.log == [
        "aside waits for main",
        "on aside",
        *["works"] * WARM_UPS,
        "off aside",
        "main waits for aside",
        "records",
        "works",
        "recorded",
    ]
    device.log.clear()
    replay()
    assert device.log == ["replayed"]


def test_recordings_share_memory(device: Device):
    graphs = CudaGraphs(torch.device("cuda"))
    for _ in range(2):
        graphs.record(worker(device))
    assert device.pools[0] is device.pools[1]
    CudaGraphs(torch.device("cuda")).record(worker(device))
    assert device.pools[2] is not device.pools[0]


def test_what_cannot_be_recorded_is_done_slowly(device: Device):
    device.refuses = True
    with pytest.warns(UserWarning, match=r"runs slower: operation not permitted when stream is capturing$"):
        again = CudaGraphs(torch.device("cuda")).record(worker(device))
    device.log.clear()
    again()
    assert device.log == ["works"]


def test_without_a_device_there_are_none():
    with pytest.raises(UsageError, match=r'CUDA graphs need a CUDA device, and the model is on "cpu"'):
        CudaGraphs(torch.device("cpu"))
