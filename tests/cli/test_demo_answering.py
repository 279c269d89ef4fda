"""`heedful demo --task answering`, with a training too short to learn anything."""

import json
from pathlib import Path

import pytest

from heedful.cli import demo_answering
from tests.cli.command import heedful
from tests.tasks.stories import SETTINGS


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(demo_answering, "NUM_STORIES", 120)
    monkeypatch.setattr(demo_answering, "NUM_VALIDATION", 10)
    monkeypatch.setattr(demo_answering, "NUM_HELD_OUT", 20)
    monkeypatch.setattr(demo_answering, "SETTINGS", (*SETTINGS, "training.max_steps=2", "training.validate_every=2"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_small")
def test_the_demonstration():
    pytest.importorskip("matplotlib")
    done = heedful("demo", "--task", "answering")
    assert done.code == 0, done.err
    assert "questions about other stories are answered right" in done.out
    assert done.out.count(" *\n") == 6  # two supporting facts of each story shown
    assert Path("stories-attention.png").read_bytes().startswith(b"\x89PNG")
    assert "next:  heedful answer stories.model" in done.out
    rows = [
        json.loads(line)
        for name in ("stories", "stories-validation")
        for line in Path(f"stories.model/run/{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert len(rows) == 130
    assert len({json.dumps(row) for row in rows}) == 130
    again = heedful("demo", "--task", "answering")
    assert again.code == 0
    assert "already finished: 2 steps" in again.out


@pytest.mark.usefixtures("_small")
def test_stories_of_another_seed_are_refused_in_the_same_folder():
    assert heedful("demo", "--task", "answering").code == 0
    done = heedful("demo", "--task", "answering", "--seed", "2")
    assert done.code == 2
    assert "holds a training on other stories; choose another --out" in done.errors[0]


def test_an_unknown_task_is_refused():
    done = heedful("demo", "--task", "answer")
    assert done.code == 2
    assert "no such demonstration; did you mean 'answering'" in done.errors[0]
