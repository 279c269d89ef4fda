"""`heedful demo --task readings`, with a training too short to learn anything."""

from pathlib import Path

import pytest

from heedful.cli import demo_readings
from tests.cli.command import heedful
from tests.cli.test_demo import FAST


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(demo_readings, "NUM_PAIRS", 120)
    monkeypatch.setattr(demo_readings, "NUM_VALIDATION", 10)
    monkeypatch.setattr(demo_readings, "NUM_HELD_OUT", 20)
    monkeypatch.setattr(demo_readings, "SETTINGS", FAST)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(("task", "sample"), [("readings", "3:45 pm"), ("readings-zh", "2021年3月5日")])
def test_the_demonstration(task: str, sample: str):
    done = heedful("demo", "--task", task)
    assert done.code == 0, done.err
    assert "exact match 0.0 % on 20 held-out forms" in done.out
    assert f"  {sample}" in done.out
    assert f"next:  heedful pronounce MODEL --readings {task}.model" in done.out
    again = heedful("demo", "--task", task)
    assert again.code == 0
    assert "already finished: 2 steps" in again.out
