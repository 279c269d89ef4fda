"""`heedful demo --task classification`, with a training too short to learn anything."""

from pathlib import Path

import pytest

from heedful.cli import demo_classification
from tests.cli.command import heedful
from tests.tasks.reviews import SETTINGS


@pytest.mark.usefixtures("tmp_path")
def test_the_demonstration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(demo_classification, "NUM_REVIEWS", 120)
    monkeypatch.setattr(demo_classification, "NUM_VALIDATION", 10)
    monkeypatch.setattr(demo_classification, "NUM_HELD_OUT", 20)
    monkeypatch.setattr(demo_classification, "SETTINGS", (*SETTINGS, "training.max_steps=2"))
    monkeypatch.chdir(tmp_path)
    done = heedful("demo", "--task", "classification")
    assert done.code == 0, done.err
    assert "% of 20 other reviews are labelled right" in done.out
    assert Path("reviews-attention.png").read_bytes().startswith(b"\x89PNG")
    assert "next:  heedful classify reviews.model --show-attention" in done.out
    rows = [
        line
        for name in ("reviews", "reviews-validation")
        for line in Path(f"reviews.model/run/{name}.tsv").read_text(encoding="utf-8").splitlines()
    ]
    assert len(rows) == len(set(rows)) == 130
    assert heedful("demo", "--task", "classification", "--seed", "2").code == 2
