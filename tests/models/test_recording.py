"""CUDA graphs on a device that is not the present one, seen by stand-ins for PyTorch's."""

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from heedful.models.recording import WARM_UPS, CudaGraphs, make_recorder
from heedful.training import train_state


def test_recordings_take_what_the_models_device_launches(monkeypatch: pytest.MonkeyPatch):
    """`--device cuda:1`: a stream of the present device would record nothing of it."""
    present = ["cuda:0"]

    @contextmanager
    def on(device: torch.device) -> Generator[None]:
        present.append(str(device))
        yield
        present.pop()

    stream = SimpleNamespace(wait_stream=lambda other: None)
    for name, stand_in in {
        "device": on,
        "Stream": lambda: stream,
        "current_stream": lambda: stream,
        "stream": lambda stream: nullcontext(),
        "graph": lambda graph, **settings: nullcontext(),
        "graph_pool_handle": lambda: None,
        "CUDAGraph": lambda: SimpleNamespace(replay=lambda: None),
    }.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    recorder, seen = make_recorder(torch.device("cuda:1")), list[str]()
    assert isinstance(recorder, CudaGraphs)
    recorder.record(lambda: seen.append(present[-1]))
    assert seen == ["cuda:1"] * (WARM_UPS + 1)
    assert make_recorder(torch.device("cpu")) is None


def test_losses_are_waited_for_on_the_models_device(monkeypatch: pytest.MonkeyPatch):
    """The moment of a stream that has nothing to do is over before the loss is there."""
    recorded = list[Any]()
    event = SimpleNamespace(record=lambda stream=None: recorded.append(stream))
    monkeypatch.setattr(torch.cuda, "Event", lambda: event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: f"stream of {device}")
    assert train_state._moment(torch.device("cuda:1")) is event  # pyright: ignore[reportPrivateUsage]
    assert recorded == ["stream of cuda:1"]
