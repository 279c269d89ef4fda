"""A run with another budget gives way to one with the budget of the comparison, and is not lost."""

import json
from pathlib import Path

import pytest

from heedful.comparison.budget import move_other_budget
from heedful.config.base import to_toml
from heedful.data.same_data import EXPERIMENT
from heedful.training.history import History
from tests.requests import load_experiment, make_request

LANDING = "training.optimizer.schedule.kind=linear"


@pytest.mark.parametrize(
    ("before", "now", "is_moved"),
    [
        (["training.max_steps=8"], ["training.max_steps=8"], False),
        (["training.max_steps=8"], ["training.max_steps=9"], False),
        (["training.max_steps=9"], ["training.max_steps=8"], False),
        (["training.max_steps=8"], ["training.max_steps=5"], True),
        ([], ["training.max_minutes=1.0"], True),
        ([], ["training.max_minutes=5.0"], False),
        (["training.max_minutes=5.0"], ["training.max_minutes=10.0"], False),
        (["training.max_minutes=5.0"], ["training.max_target_tokens=99"], True),
        (["training.patience=9"], ["training.patience=8"], True),
        ([LANDING, "training.max_steps=8"], [LANDING, "training.max_steps=9"], True),
        ([LANDING, "training.max_steps=8"], [LANDING, "training.max_steps=8"], False),
    ],
)
def test_a_run_goes_on_to_a_budget_that_it_has_not_used(
    before: list[str], now: list[str], is_moved: bool, tmp_path: Path
):
    """The run has made 6 steps, 100 target tokens and 2 minutes."""
    folder = tmp_path / "row-1"
    (folder / "run/checkpoints/000006").mkdir(parents=True)
    (folder / EXPERIMENT).write_text(to_toml(load_experiment(settings=before)), encoding="utf-8")
    state = {"step": 6, "epoch": 1, "num_target_tokens": 100, "seconds": 120.0, "finished": ""}
    (folder / "run/checkpoints/000006/state.json").write_text(json.dumps({"state": state}), encoding="utf-8")
    write_history(folder)
    (tmp_path / "row-1.1").mkdir()
    moved = move_other_budget(make_request((Path("a.tsv"),), folder, settings=tuple(now)))
    assert moved == (tmp_path / "row-1.2" if is_moved else None)
    assert (folder.exists(), (tmp_path / "row-1.2" / EXPERIMENT).is_file()) == (not is_moved, is_moved)


def write_history(folder: Path) -> None:
    History(folder / "run", 0, {}).end("stopped", 6, "a signal")


def test_a_run_that_has_not_begun_has_no_budget(tmp_path: Path):
    request = make_request((Path("a.tsv"),), tmp_path / "row-1", settings=("training.max_steps=1",))
    assert move_other_budget(request) is None
