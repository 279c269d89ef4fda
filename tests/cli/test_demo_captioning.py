"""`heedful demo --task captioning`, with a training too short to learn anything."""

from pathlib import Path

import pytest

from heedful.cli import demo_captioning
from tests.cli.command import heedful
from tests.tasks.scenes import SETTINGS


def test_the_demonstration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(demo_captioning, "NUM_SCENES", 40)
    monkeypatch.setattr(demo_captioning, "NUM_VALIDATION", 10)
    monkeypatch.setattr(demo_captioning, "NUM_HELD_OUT", 20)
    monkeypatch.setattr(demo_captioning, "SETTINGS", (*SETTINGS, "training.max_steps=2"))
    monkeypatch.chdir(tmp_path)
    done = heedful("demo", "--task", "captioning")
    assert done.code == 0, done.err
    assert "% of 20 other scenes are described exactly" in done.out
    assert Path("scenes-attention.png").read_bytes().startswith(b"\x89PNG")
    assert "next:  heedful caption scenes.model scenes.model/run/test/1.png" in done.out
    assert heedful("demo", "--task", "captioning", "--seed", "2").code == 2
