"""The pace of a training, and a training that is planned by it."""

from pathlib import Path

import pytest

from heedful.config.base import read_toml
from heedful.data.same_data import EXPERIMENT
from heedful.runs.train import RunInfo
from heedful.tasks.throughput import LEAST_ITEMS, Throughput
from heedful.training.progress import Outcome
from tests.cli.conftest import write_pairs
from tests.requests import make_request, train
from tests.tasks.reviews import write_reviews
from tests.thorough import thorough


def run(
    data: Path, out: Path, *settings: str, task: str = "", is_compared: bool = False
) -> tuple[RunInfo, Outcome, list[str]]:
    started, warned = list[RunInfo](), list[str]()
    recipe = make_request((data,), out, settings=settings, task=task, is_compared=is_compared)
    outcome = train(recipe, lambda progress: None, started.append, warned.append)
    return started[0], outcome, warned


def test_the_usual_number_of_items_is_validated_where_it_is_quick():
    assert Throughput(180.0, 1.0, 1000.0).validation_items == 0
    assert Throughput(180.0, 1.0, 100.0).validation_items == 360
    assert Throughput(1.0, 1.0, 1.0).validation_items == LEAST_ITEMS


SMALL = ("model.embedding_size=8", "model.hidden_size=8", "model.maxout_size=8", "model.attention.hidden_size=8")


def test_a_short_training_is_planned_and_the_same_command_finds_its_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    data = write_pairs(tmp_path / "words.tsv", 300)
    settings = (*SMALL, "training.patience=100000", "training.max_minutes=0.05")
    started, outcome, _ = run(data, tmp_path / "m", *settings)
    training = started.experiment.training
    assert outcome.reason == "0.05 minutes"
    assert outcome.seconds < 3.0 + 3.0  # a validation and a loud machine
    assert training.optimizer.schedule.warmup_steps < 400
    assert training.optimizer.learning_rate > 1e-3
    stored = read_toml(tmp_path / "m" / EXPERIMENT)["training"]
    # On a machine of another speed the same command goes on with the same settings, even with other limits.
    monkeypatch.setattr("heedful.runs.train.measure_throughput", pytest.fail)
    again, more, _ = run(
        data, tmp_path / "m", *settings[:-1], "training.max_minutes=0.06", f"training.max_steps={outcome.step + 5}"
    )
    assert more.step > outcome.step
    now = read_toml(tmp_path / "m" / EXPERIMENT)["training"]
    assert now["optimizer"] == stored["optimizer"]
    assert again.experiment.training.batch_tokens == training.batch_tokens


def test_runs_of_a_comparison_have_the_same_settings_on_any_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    data = write_pairs(tmp_path / "words.tsv", 120)
    monkeypatch.setattr("heedful.runs.train.measure_throughput", pytest.fail)
    started, _, warned = run(data, tmp_path / "m", *SMALL, "training.max_minutes=0.01", is_compared=True)
    assert started.experiment.training.optimizer.schedule.warmup_steps == 400
    assert warned == []


def test_advice_and_warnings_come_with_the_first_start(tmp_path: Path):
    data = write_pairs(tmp_path / "words.tsv", 120)
    started, _, warned = run(data, tmp_path / "m", "training.max_steps=1")
    assert [line for line in warned if "120 rows to learn from; have 1,000 or more" in line]
    assert [line.partition(":")[0] for line in started.advice] == ["chosen", "chosen", "expect little"]
    _, _, warned = run(data, tmp_path / "m", "training.max_steps=2")
    assert warned == []


@thorough
def test_classification_is_planned_too(tmp_path: Path):
    data = write_reviews(tmp_path / "reviews.tsv", 400)
    settings = ("model.embedding_size=8", "training.max_minutes=0.02", "training.patience=100000")
    started, outcome, _ = run(data, tmp_path / "m", *settings, task="classification")
    assert outcome.reason == "0.02 minutes"
    assert started.experiment.training.optimizer.schedule.warmup_steps <= 20
