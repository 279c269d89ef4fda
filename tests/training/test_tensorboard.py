import math
import re
import sys
from pathlib import Path

import pytest

from heedful.errors import MissingExtra, install_command
from heedful.training import tensorboard
from heedful.training.progress import Progress, Validation
from heedful.training.tensorboard import EVENTS, shown_in_tensorboard

pytest.importorskip("tensorboard", reason="needs TensorBoard: pip install 'heedful[tensorboard]'")


def progress(step: int, loss: float, validation: Validation | None = None) -> Progress:
    return Progress(
        step=step,
        epoch=step / 10,
        loss=loss,
        tokens_per_second=100.0,
        learning_rate=0.5,
        seconds=0.0,
        done=0.0,
        validation=validation,
    )


def written(folder: Path, tag: str) -> dict[int, float]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder / EVENTS))
    found.Reload()
    return {event.step: event.value for event in found.Scalars(tag)}


def note(folder: Path, *reports: Progress) -> list[Progress]:
    heard: list[Progress] = []
    with shown_in_tensorboard(heard.append, folder, True, pytest.fail) as watch:
        for report in reports:
            watch(report)
    return heard


def test_reports_are_written_and_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tensorboard, "SECONDS", 0.0)
    validation = Validation({"loss": 1.5, "bleu": 20.0}, ("a *b*", "c", "d"))
    reports = [progress(1, 3.0), progress(2, 2.0, validation)]
    assert note(tmp_path, *reports) == reports
    assert written(tmp_path, "training/loss") == {1: 3.0, 2: 2.0}
    assert written(tmp_path, "training/learning_rate") == {1: 0.5, 2: 0.5}
    assert written(tmp_path, "validation/bleu") == {2: 20.0}
    assert any(b"a *b*" in path.read_bytes() for path in (tmp_path / EVENTS).iterdir())


def test_between_validations_not_every_report_is_written(tmp_path: Path):
    validation = Validation({"loss": 1.5}, ("", "", ""))
    note(tmp_path, progress(1, 3.0), progress(2, 3.0), progress(3, 3.0, validation), progress(4, 3.0))
    assert list(written(tmp_path, "training/loss")) == [1, 3]


def test_what_is_done_again_after_a_kill_is_shown_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tensorboard, "SECONDS", 0.0)
    note(tmp_path, progress(1, 3.0), progress(2, 2.0), progress(3, 9.0))
    note(tmp_path, progress(2, 2.0), progress(3, 1.0))
    assert written(tmp_path, "training/loss") == {1: 3.0, 2: 2.0, 3: 1.0}


def test_nothing_is_written_unless_it_is_wanted(tmp_path: Path):
    with shown_in_tensorboard(print, tmp_path, False, pytest.fail) as watch:
        assert watch is print
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_said_once(tmp_path: Path):
    (tmp_path / "run").write_bytes(b"")
    heard: list[Progress] = []
    said: list[str] = []
    with shown_in_tensorboard(heard.append, tmp_path, True, said.append) as watch:
        watch(progress(1, math.nan))
        watch(progress(20, math.nan))
    assert len(heard) == 2
    assert len(said) == 1
    assert said[0].startswith(f"{tmp_path / EVENTS}: no more events for TensorBoard: ")


def test_without_tensorboard_nothing_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    wanted = shown_in_tensorboard(print, tmp_path, True, pytest.fail)
    with pytest.raises(MissingExtra, match=re.escape(f"needs tensorboard: {install_command('tensorboard')}")):
        wanted.__enter__()
