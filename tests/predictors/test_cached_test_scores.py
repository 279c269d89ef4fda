"""Test scores: stored once, and within a limit of time."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from heedful.engines.folder import ModelFolder
from heedful.predictors import cached_test_scores as module
from heedful.predictors.cached_test_scores import TEST, cached_test_scores
from heedful.predictors.interface import Measured, Predictor


@dataclass
class Scored:
    """Scores that are the number of items."""

    number: int

    def summary(self) -> str:
        return f"test:  {self.number} items\n"

    def to_text(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        return {"number": self.number}


class Slow(Predictor):
    """A predictor that takes a second for an item, on a clock of its own."""

    def __init__(
        self, folder: ModelFolder, device: str = "cpu", engine: str = "auto", ensemble: Sequence[ModelFolder] = ()
    ) -> None:
        self.folder = folder
        self.now = 0.0
        self.measured: list[list[int]] = []

    def measure(self, items: Any) -> Measured:
        self.now += len(items)
        self.measured.append(items)
        return Scored(len(items))

    @property
    def metrics(self) -> tuple[str, ...]:
        return ()

    def predict(self, sources: Sequence[str]) -> list[str]:
        raise NotImplementedError

    def read_items(self, paths: tuple[Path, ...], columns: object) -> Any:
        raise NotImplementedError


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slow:
    (tmp_path / "run").mkdir()
    predictor = Slow(ModelFolder(tmp_path, {"weights": "w"}))
    monkeypatch.setattr(module.time, "monotonic", lambda: predictor.now)
    return predictor


def score(slow: Slow, number: int = 1000, seconds: float = math.inf) -> str:
    return cached_test_scores(slow, list(range(number)), lambda line: None, seconds)


def test_scores_are_computed_once(slow: Slow):
    assert score(slow) == score(slow) == "test:  1000 items\n"
    assert slow.measured == [list(range(1000))]
    assert score(slow, seconds=5.0) == "test:  1000 items\n"


@pytest.mark.parametrize("seconds", [60.0, 200.0, 450.0, 900.0])
def test_a_limit_of_time_holds_and_the_rest_is_scored_later(slow: Slow, seconds: float):
    text = score(slow, seconds=seconds)
    assert slow.now <= seconds + 2 * module.NUM_TRIED
    tested = slow.measured[-1]
    assert len(tested) >= (seconds - 2 * module.NUM_TRIED) / 2  # spaced evenly, so at worst every other that fits
    assert {later - earlier for earlier, later in pairwise(tested)} == {tested[1] - tested[0]}
    assert f"{1000 - len(tested)} of 1,000 left out, because the time was up; the same command scores all" in text
    assert score(slow, seconds=seconds) == text  # as it is
    assert score(slow) == "test:  1000 items\n"
    facts = json.loads((slow.folder.path / TEST).read_text(encoding="utf-8"))
    assert (facts["number"], facts["num_left_out"]) == (1000, 0)


def test_enough_time_scores_all(slow: Slow):
    assert score(slow, seconds=5000.0) == "test:  1000 items\n"


def test_the_shortest_training_is_tested_too(slow: Slow):
    text = score(slow, seconds=-3.0)
    (tested,) = slow.measured
    assert module.NUM_TRIED <= len(tested) <= 2 * module.NUM_TRIED
    assert f"{1000 - len(tested)} of 1,000 left out, because the time was up" in text
    assert score(slow) == "test:  1000 items\n"
    few = score(slow, 2 * module.NUM_TRIED, seconds=0.0)
    assert few == score(slow, 2 * module.NUM_TRIED)
