from types import SimpleNamespace
from typing import Any, cast

import pytest

from heedful.runs.finish import judge
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
