"""Saves that fail: nothing of it is lost, nothing is said to be saved that is not, and the next one mends it."""

import errno
import json
import math
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

from heedful.errors import ResourceError
from heedful.training.checkpoint import Checkpoint, CheckpointFolder
from heedful.training.storage import Best, Storage
from tests.prove.disk import Call, calls


class Kept:
    """A model's folder that can be full."""

    def __init__(self) -> None:
        self.is_full = False
        self.weights: list[dict[str, Tensor]] = []

    def __call__(self, weights: Mapping[str, Tensor]) -> None:
        if self.is_full:
            raise ResourceError("m: model not saved: full")
        self.weights.append({name: tensor.clone() for name, tensor in weights.items()})


def make(step: int, best: float = -math.inf, best_step: int = 0) -> Checkpoint:
    tensors = {"model": {"weight": torch.full((2,), float(step))}, "average": {}, "optimizer": {}}
    return Checkpoint(step, tensors, {"step": step, "best": best, "best_step": best_step})


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def warned() -> list[str]:
    return []


@pytest.fixture
def storage(tmp_path: Path, kept: Kept, warned: list[str]) -> Storage:
    return Storage(tmp_path, kept, warned.append)


def refuse(number: int = errno.ENOSPC):
    def see(call: Call) -> None:
        if call.name == "open" and "checkpoints" in call.path.parts and call.path.suffix:
            call.fail(number)

    return calls(see)


def newest(folder: Path) -> Checkpoint | None:
    return CheckpointFolder(folder / "checkpoints").load_newest()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_failed_save_is_told_in_one_line_and_made_good_by_the_next(
    number: int, storage: Storage, tmp_path: Path, warned: list[str]
):
    storage.save(make(1))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with refuse(number):
        storage.save(make(2))
    assert len(warned) == 1
    assert "checkpoint of step 2 not saved: " in warned[0]
    assert warned[0].endswith("; training continues and retries at the next save")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    with pytest.raises(ResourceError, match=r"^done, but not saved: .*; the last checkpoint is of step 1;") as caught:
        storage.ensure("done")
    assert caught.value.exit_code == 5
    storage.save(make(3))
    storage.ensure("done")
    found = newest(tmp_path)
    assert found is not None
    assert found.step == 3
    assert len(warned) == 1


def test_where_nothing_was_ever_saved_that_is_said(storage: Storage):
    with refuse():
        storage.save(make(1))
    with pytest.raises(ResourceError, match="there is no checkpoint; free some space and run the same command"):
        storage.ensure("stopped")


def test_a_best_model_that_found_no_room_is_kept_as_it_was_by_the_next_save(
    storage: Storage, tmp_path: Path, kept: Kept, warned: list[str]
):
    storage.hold(Best(1.0, 1, {"w": torch.ones(2)}))
    storage.save(make(1, 1.0, 1))
    weights = torch.full((2,), 2.0)
    storage.hold(Best(2.0, 2, {"w": weights}))
    kept.is_full = True
    storage.save(make(2, 2.0, 2))
    assert warned == ["m: model not saved: full; training continues and retries at the next save"]
    found = newest(tmp_path)
    assert found is not None
    # What the folder holds, for who goes on from here; the loss of that model is not known.
    assert found.state == {"step": 2, "best": 1.0, "best_loss": math.inf, "best_step": 1}
    weights.fill_(99.0)  # training went on
    storage.save(make(3, 2.0, 2))
    kept.is_full = False
    storage.save(make(4, 2.0, 2))
    assert [one["w"].tolist() for one in kept.weights] == [[1.0, 1.0], [2.0, 2.0]]
    found = newest(tmp_path)
    assert found is not None
    assert found.state == {"step": 4, "best": 2.0, "best_step": 2}
    storage.ensure("done")


def test_a_later_best_takes_the_place_of_one_that_found_no_room(storage: Storage, kept: Kept):
    kept.is_full = True
    for step in (1, 2):
        storage.hold(Best(float(step), step, {"w": torch.full((1,), float(step))}))
        storage.save(make(step, float(step), step))
    kept.is_full = False
    storage.save(make(3, 2.0, 2))
    assert [one["w"].tolist() for one in kept.weights] == [[2.0]]


def test_what_was_kept_is_known_after_going_on(storage: Storage, tmp_path: Path, kept: Kept, warned: list[str]):
    storage.hold(Best(1.0, 1, {"w": torch.ones(2)}))
    storage.save(make(1, 1.0, 1))
    again = Storage(tmp_path, kept, warned.append)
    assert again.load() is not None
    kept.is_full = True
    again.hold(Best(2.0, 2, {"w": torch.ones(2)}))
    again.save(make(2, 2.0, 2))
    found = newest(tmp_path)
    assert found is not None
    assert found.state["best"] == 1.0


def test_a_log_that_cannot_be_written_fails_the_save_but_not_the_checkpoint(
    storage: Storage, tmp_path: Path, warned: list[str]
):
    (tmp_path / "metrics.jsonl").mkdir()
    storage.metrics.add({"step": 1})
    storage.save(make(1))
    assert warned == [
        f"{tmp_path / 'metrics.jsonl'}: not written: Is a directory; training continues and retries at the next save"
    ]
    assert newest(tmp_path) is not None
    (tmp_path / "metrics.jsonl").rmdir()
    storage.save(make(2))
    storage.ensure("done")
    assert json.loads((tmp_path / "metrics.jsonl").read_bytes())["step"] == 1


def test_what_was_logged_after_the_checkpoint_that_is_taken_is_forgotten(
    storage: Storage, tmp_path: Path, warned: list[str]
):
    for step in (1, 2):
        storage.metrics.add({"step": step})
        storage.save(make(step))
    (tmp_path / "checkpoints" / "000002" / "model.safetensors").write_bytes(b"")
    again = Storage(tmp_path, lambda weights: None, warned.append)
    found = again.load()
    again.cut()
    assert found is not None
    assert found.step == 1
    assert [json.loads(line)["step"] for line in (tmp_path / "metrics.jsonl").read_bytes().split(b"\n")[:-1]] == [1]
    assert len(warned) == 1
