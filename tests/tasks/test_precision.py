"""Training in bfloat16, which `training.precision=auto` may choose: every preset of every task makes its steps."""

from pathlib import Path

import pytest

from heedful.models.table import PRESETS
from heedful.tasks.table import TASKS
from heedful.training.progress import Progress
from tests.requests import make_request, train
from tests.tasks.reviews import write_reviews
from tests.tasks.scenes import write_scenes
from tests.tasks.stories import write_notices, write_stories
from tests.thorough import sampled, thinned

HEAVY = ("base", "big", "rnnsearch-paper", "luong-paper", "sutskever-paper", "cho-paper", "rnnencdec-paper")
"""Presets of the sizes of papers; smaller ones of the same kinds are tried."""
CASES = [
    (task, preset)
    for task, facts in TASKS.items()
    for preset, config in PRESETS.items()
    if config.kind in facts.kinds and preset not in HEAVY
]
SETTINGS = ("training.precision=bfloat16", "training.max_steps=2", "training.validate_every=2", "training.export=false")


def write_data(task: str, preset: str, folder: Path) -> Path:
    if task == "classification":
        return write_reviews(folder / "data.tsv", 24, sentences=3)
    if task == "captioning":
        return write_scenes(folder / "data.tsv", 24)
    if task == "answering":
        return (write_notices if preset.startswith("bidaf") else write_stories)(folder / "data.jsonl", 24)
    rows = (f"{'abcdef'[i % 6]} {'uvwxyz'[i // 4 % 6]}\t{'uvwxyz'[i // 4 % 6]} {'abcdef'[i % 6]}" for i in range(24))
    path = folder / "data.tsv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@sampled(4)
@pytest.mark.parametrize(("task", "preset"), thinned(CASES, 2), ids=[f"{task}-{preset}" for task, preset in CASES])
def test_every_preset_trains_in_bfloat16(task: str, preset: str, tmp_path: Path):
    seen: list[Progress] = []
    data = write_data(task, preset, tmp_path)
    recipe = make_request((data,), tmp_path / "m", dev=(data,), task=task, preset=preset, settings=SETTINGS)
    outcome = train(recipe, seen.append, lambda started: None, lambda line: None)
    assert outcome.step == 2
    assert seen[-1].validation is not None
