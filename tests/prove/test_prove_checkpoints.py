"""A small part of each sweep, in every run of the tests; `make prove-checkpoints` does it all."""

import os
import random
from pathlib import Path

import pytest

from heedful.data.batch import Position
from heedful.training import loop
from tests.prove import prove_checkpoints as sweeps
from tests.prove.prove_checkpoints import PHASES, Record
from tests.thorough import thinned, thorough

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked child")


@pytest.fixture(autouse=True)
def _one_thread():
    """A forked child has one."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def record() -> Record:
    return Record()


@thorough
@pytest.mark.parametrize(
    ("phase", "with_power"),
    thinned([(PHASES[0], False), (PHASES[-1], True)], 2),
    ids=["kill", "power cut, before damaged ones"],
)
def test_death_at_any_call_of_a_save(
    phase: sweeps.Phase, with_power: bool, tmp_path: Path, record: Record, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sweeps, "PHASES", (phase,))
    sweeps.sweep_kills(tmp_path, record, with_power)
    assert record.failures == []
    assert record.num_cases > 30


def test_an_error_at_any_call_of_a_save(tmp_path: Path, record: Record, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sweeps, "PHASES", PHASES[-1:])
    monkeypatch.setattr(sweeps, "ERRORS", sweeps.ERRORS[:1])
    sweeps.sweep_errors(tmp_path, record)
    assert record.failures == []
    assert record.num_cases > 60


def test_kills_at_random_times(tmp_path: Path, record: Record):
    sweeps.sweep_random_kills(tmp_path, 10, random.Random(1), record)
    assert (record.num_cases, record.failures) == (10, [])


def test_damage_is_named_and_the_one_before_taken(tmp_path: Path):
    records = {"bit flips": Record(), "truncations": Record()}
    sweeps.sweep_damage(tmp_path, 100, 50, random.Random(1), records)
    assert {name: (each.num_cases, each.failures) for name, each in records.items()} == {
        "bit flips": (100, []),
        "truncations": (50, []),
    }


def test_a_training_goes_on_to_the_same_bits(tmp_path: Path):
    records = {f"resumed {name}": Record() for name in ("at all", "1x", "3x")}
    sweeps.sweep_resume(tmp_path, iter([(*range(1, 12),), (8,), (2, 3, 10)]), 12, records)
    assert [(each.num_cases, each.failures) for each in records.values()] == [(1, [])] * 3


@pytest.mark.parametrize("kind", thinned(sweeps.TASKS, 3))
def test_a_training_of_another_task_goes_on_to_the_same_bits(kind: str, tmp_path: Path, record: Record):
    records = dict.fromkeys(("resumed at all", "resumed 1x", "resumed 2x", "resumed 3x"), record)
    sweeps.sweep_resume(tmp_path, iter([(*range(1, 12),), (4, 9)]), 12, records, kind)
    assert (record.num_cases, record.failures) == (2, [])


@pytest.mark.parametrize("kind", sweeps.TASKS)
def test_a_training_that_begins_its_epoch_again_is_noticed(
    kind: str, tmp_path: Path, record: Record, monkeypatch: pytest.MonkeyPatch
):
    """A fault that each sweep has to see."""
    monkeypatch.setattr(loop, "Position", lambda epoch, batch: Position(epoch, 0))
    records = {"resumed 1x": record}
    sweeps.sweep_resume(tmp_path, iter([(3,)]), 12, records, kind)
    assert len(record.failures) == 1


def test_a_killed_training_goes_on_to_the_same_bits(tmp_path: Path, record: Record):
    sweeps.sweep_killed_training(tmp_path, 8, 1, random.Random(1), record)
    assert (record.num_cases, record.failures) == (1, [])
