"""Graphs that tests keep: given again for what is equal in all that a graph depends on, and for nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from heedful.layers.positions import SinusoidalPositions
from tests.recorded import kept


class Counted:
    """A recorder that writes how often it was called."""

    def __init__(self, folder: Path) -> None:
        self.number = 0
        self.path = folder / "step.onnx"
        (folder / "kept").mkdir()
        self._record = kept(self._write, folder / "kept")

    def _write(self, module: nn.Module, inputs: Any, listed: Any, outputs: Any, path: Path, *more: Any) -> None:
        self.number += 1
        path.write_text(str(self.number))

    def record(self, module: nn.Module, size: int = 3, name: str = "step.onnx", most: int = 9) -> int:
        """Number of calls at the time of the graph that is given."""
        inputs = {"tokens": (torch.zeros(size, 2), {0: "source"})}
        self._record(module, inputs, {}, ["log_probs"], self.path.with_name(name), most)
        return int(self.path.with_name(name).read_text())


def linear(seed: int = 0, is_shared: bool = False) -> nn.Module:
    torch.manual_seed(seed)
    one, other = nn.Linear(2, 2), nn.Linear(2, 2)
    other.load_state_dict(one.state_dict())
    return nn.Sequential(one, one if is_shared else other)


def with_attribute() -> nn.Module:
    module = linear()
    module.limit = 7  # type: ignore[assignment]
    return module


class Outside(nn.Linear):
    """A class that may be another one the next time."""


@pytest.fixture
def counted(tmp_path: Path) -> Counted:
    return Counted(tmp_path)


def test_equal_calls_are_given_the_first_graph(counted: Counted):
    assert [counted.record(linear()) for _ in range(3)] == [1, 1, 1]
    assert counted.record(SinusoidalPositions(4)) == counted.record(SinusoidalPositions(4)) == 2


def test_the_order_of_a_set_changes_nothing(counted: Counted):
    """It differs between processes, which share what they record."""
    orders: list[int] = []
    for numbers in ([0, 8], [8, 0]):
        module = linear()
        module.sizes = set(numbers)  # type: ignore[assignment]
        orders += module.sizes
        assert counted.record(module) == 1
    assert orders == [0, 8, 8, 0]


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (lambda: linear(seed=1), {}),
        (lambda: linear(is_shared=True), {}),
        (lambda: linear().double(), {}),
        (with_attribute, {}),
        (linear, {"size": 4}),
        (linear, {"name": "encode.onnx"}),
        (linear, {"most": 10}),
    ],
    ids=["weights", "shared weights", "type", "attribute", "example", "name", "most"],
)
def test_whatever_differs_is_recorded_anew(make: Callable[[], nn.Module], changes: dict[str, Any], counted: Counted):
    assert counted.record(linear()) == 1
    assert counted.record(make(), **changes) == 2


def test_classes_of_others_are_recorded_each_time(counted: Counted):
    assert [counted.record(Outside(2, 2)) for _ in range(2)] == [1, 2]
