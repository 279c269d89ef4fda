from types import SimpleNamespace
from typing import Any, cast

import pytest

from heedful.data.split import on_training
from heedful.runs.finish import ending, judge
from heedful.runs.train import RunInfo
from heedful.training.progress import Outcome
from tests.requests import load_experiment


@pytest.mark.parametrize(("steps", "is_told"), [(9, True), (10, False)])
def test_a_soft_start_as_long_as_the_training_is_told(steps: int, is_told: bool):
    settings = ["training.soft_start=9", "training.select_by=bleu", "training.max_steps=9"]
    settings += ["training.optimizer.schedule.kind=linear"]
    info: Any = SimpleNamespace(
        experiment=load_experiment("syntactic", settings=settings), data=SimpleNamespace(num_examples=5000, report=())
    )
    outcome = Outcome(steps, 1.0, 30.0, steps, f"{steps} steps", 100, 100.0)
    told = judge(cast("RunInfo", info), outcome)
    assert ("training.soft_start is 9 steps, and the training ended after 9" in told) == is_told


@pytest.mark.parametrize(("epochs", "told"), [(0.97, "less than one epoch"), (1.5, "1.5 epochs")])
def test_a_part_of_an_epoch_has_no_number(epochs: float, told: str, monkeypatch: pytest.MonkeyPatch):
    task = SimpleNamespace(judgement=lambda data, best, short: short)
    monkeypatch.setattr("heedful.runs.finish.find_task", lambda name: task)
    info = SimpleNamespace(experiment=load_experiment("syntactic", settings=["training.max_steps=8"]), data=None)
    outcome = Outcome(8, 1.0, 30.0, 8, "8 steps", 100, 100.0, epochs)
    assert judge(cast("RunInfo", info), outcome) == f"after 8 steps, {told}"


def run_of(step: int, report: tuple[str, ...] = ()) -> RunInfo:
    """Run that began at a step."""
    experiment = load_experiment(settings=["training.select_by=exact_match"])
    return cast("RunInfo", SimpleNamespace(step=step, experiment=experiment, data=SimpleNamespace(report=report)))


def test_a_score_on_the_training_data_is_called_so():
    outcome = Outcome(9, 1.0, 50.0, 9, "9 steps", 100, 100.0)
    by_heart = ending(run_of(0, (on_training("pairs"),)), outcome)
    assert by_heart == (
        "finished: 9 steps (step 9, 1 s)\n"
        "best:  exact match 50.00 % on the training pairs, at step 9; it says nothing about new ones: give --dev FILE"
    )
    assert ending(run_of(0), outcome).endswith("exact match 50.00 % on validation, at step 9")


@pytest.mark.parametrize(
    ("reason", "more"),
    [
        ("3 minutes", "--minutes"),
        ("1 minute", "--minutes"),
        ("8 steps", "training.max_steps"),
        ("24 epochs", "training.max_epochs"),
        ("900 target tokens", "training.max_target_tokens"),
        ("no better bleu in 8 validations", "training.patience"),
    ],
)
def test_a_training_that_had_ended_tells_what_would_continue_it(reason: str, more: str):
    outcome = Outcome(9, 240.0, 50.0, 9, reason, 100, 100.0)
    status = ending(run_of(9), outcome).split("\n")[0]
    assert status == f"already finished: {reason} (step 9, 4 min 00 s in all); a larger {more} continues"
    assert "continues" not in ending(run_of(5), outcome)
