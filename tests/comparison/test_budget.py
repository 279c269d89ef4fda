"""A run with another budget gives way to one with the budget of the comparison, and is not lost."""

from pathlib import Path

import pytest

from heedful.comparison.budget import move_other_budget
from heedful.config import to_toml
from heedful.data.same_data import EXPERIMENT
from heedful.experiment import load_experiment
from heedful.tasks.interface import Recipe

LANDING = "training.optimizer.schedule.kind=linear"


@pytest.mark.parametrize(
    ("before", "now", "is_moved"),
    [
        (["training.max_steps=8"], ["training.max_steps=8"], False),
        (["training.max_steps=8"], ["training.max_steps=9"], False),
        (["training.max_steps=8"], ["training.max_steps=7"], True),
        ([], ["training.max_minutes=5.0"], True),
        (["training.max_minutes=5.0"], ["training.max_minutes=10.0"], False),
        (["training.patience=9"], ["training.patience=8"], True),
        ([LANDING, "training.max_steps=8"], [LANDING, "training.max_steps=9"], True),
        ([LANDING, "training.max_steps=8"], [LANDING, "training.max_steps=8"], False),
    ],
)
def test_a_run_goes_on_to_a_larger_budget_only(before: list[str], now: list[str], is_moved: bool, tmp_path: Path):
    folder = tmp_path / "row-1"
    (folder / EXPERIMENT).parent.mkdir(parents=True)
    (folder / EXPERIMENT).write_text(to_toml(load_experiment(settings=before)), encoding="utf-8")
    (tmp_path / "row-1.1").mkdir()
    moved = move_other_budget(Recipe((Path("a.tsv"),), folder, settings=tuple(now)))
    assert moved == (tmp_path / "row-1.2" if is_moved else None)
    assert (folder.exists(), (tmp_path / "row-1.2" / EXPERIMENT).is_file()) == (not is_moved, is_moved)


def test_a_run_that_has_not_begun_has_no_budget(tmp_path: Path):
    assert move_other_budget(Recipe((Path("a.tsv"),), tmp_path / "row-1", settings=("training.max_steps=1",))) is None
