"""Formats of checkpoints: each older one comes out as the newest, the same bits, and none is guessed at."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from heedful.config.base import read_toml, validate
from heedful.errors import DamagedFile, FileRefused, NewerFormat
from heedful.tasks.experiment import Experiment, build_model
from heedful.tasks.table import TASKS
from heedful.text.vocabulary import Vocabulary
from heedful.training.checkpoint import CheckpointFolder
from heedful.training.checkpoint_formats import manifest_bytes, read_manifest, read_state, upgrade
from heedful.training.distributed import SingleProcess
from heedful.training.loop import TrainerState
from heedful.training.train_state import TrainState
from tests.files.test_formats import NEWEST, SAMPLES


def learner(version: str) -> TrainState:
    """The training state of a sample's model, before its checkpoint."""
    experiment = validate(Experiment, read_toml(SAMPLES / version / "run/experiment.toml"))
    size = len(Vocabulary.load(SAMPLES / version / "tokenizer.json"))
    model = build_model(experiment, (size, size, experiment.text.is_shared))
    return TrainState(TASKS[experiment.task].step(experiment, model), experiment.training, SingleProcess())


def test_an_older_sample_holds_the_bits_of_the_newest():
    """Both were written after the same ten steps."""
    order = learner(NEWEST).parameter_order
    old, new = (CheckpointFolder(SAMPLES / v / "run/checkpoints").load_newest(order) for v in ("1", NEWEST))
    assert old is not None
    assert new is not None
    assert old.tensors.keys() == new.tensors.keys() == {"model", "average", "optimizer"}
    for group, tensors in new.tensors.items():
        assert tensors.keys() == old.tensors[group].keys()
        assert all(torch.equal(tensor, old.tensors[group][name]) for name, tensor in tensors.items())


def test_optimizer_tensors_are_named_by_parameter():
    stored = load_file(SAMPLES / NEWEST / "run/checkpoints/000010/optimizer.safetensors")
    roles = ("step", "exp_avg", "exp_avg_sq")
    assert stored.keys() == {f"{name}.{role}" for name in learner(NEWEST).parameter_order for role in roles}


def by_index(tensors: Mapping[str, Tensor], order: list[str]) -> dict[str, Tensor]:
    """The optimizer's tensors as format 1 named them."""
    parts = ((*name.rpartition("."), tensor) for name, tensor in tensors.items())
    return {f"{order.index(name)}.{role}": tensor for name, _, role, tensor in parts}


def test_the_upgrade_is_the_inverse_of_naming_by_index():
    state = learner(NEWEST)
    checkpoint = CheckpointFolder(SAMPLES / NEWEST / "run/checkpoints").load_newest()
    assert checkpoint is not None
    state.restore(checkpoint.tensors)
    tensors, order = state.tensors(), state.parameter_order
    old = {**tensors, "optimizer": by_index(tensors["optimizer"], order)}
    again = upgrade(1, old, order, Path("a"))
    assert again["optimizer"].keys() == tensors["optimizer"].keys()
    assert all(again["optimizer"][name] is tensor for name, tensor in tensors["optimizer"].items())
    assert upgrade(2, tensors, (), Path("a")) is tensors


@pytest.mark.parametrize("order", [[], ["b"], ["w", "w2"], ["b", "w"]])
def test_tensors_of_another_model_are_refused_and_none_before_them_is_taken(order: list[str]):
    tensors = {
        "model": {"w": torch.zeros(2, 3), "b": torch.zeros(3)},
        "optimizer": {"0.exp_avg": torch.zeros(2, 3), "1.exp_avg": torch.zeros(3), "1.step": torch.tensor(1.0)},
    }
    with pytest.raises(FileRefused, match="fits no parameter of this model"):
        upgrade(1, tensors, order, Path("a"))
    assert set(upgrade(1, tensors, ["w", "b"], Path("a"))["optimizer"]) == {"w.exp_avg", "b.exp_avg", "b.step"}


def test_an_older_one_of_another_model_is_not_called_damaged():
    said: list[str] = []
    with pytest.raises(FileRefused, match="was the model changed"):
        CheckpointFolder(SAMPLES / "1" / "run/checkpoints", warn=said.append).load_newest(["nothing"])
    assert said == []


def test_a_manifest_says_what_it_was_given(tmp_path: Path):
    (tmp_path / "manifest.json").write_bytes(manifest_bytes({"a": "1", "b": "2"}))
    assert read_manifest(tmp_path) == (2, {"a": "1", "b": "2"})


def test_a_flipped_bit_is_never_taken_for_a_newer_format(tmp_path: Path):
    whole = manifest_bytes({"state.json": "0" * 64})
    for index in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[index // 8] ^= 1 << index % 8
        (tmp_path / "manifest.json").write_bytes(flipped)
        try:
            version, _ = read_manifest(tmp_path)
        except (ValueError, DamagedFile):
            continue
        assert version == 1, index  # no version at all: then its files have no hashes that fit


@pytest.mark.parametrize("version", [3, 10**9])
def test_a_newer_manifest_is_refused(version: int, tmp_path: Path):
    facts = {"format": version, "anything": {}}
    digest = sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    (tmp_path / "manifest.json").write_text(json.dumps({**facts, "sha256": digest}), encoding="utf-8")
    with pytest.raises(NewerFormat, match=f"checkpoint format {version}; this one reads up to 2"):
        read_manifest(tmp_path)


def test_a_state_keeps_what_it_knows():
    state = read_state(TrainerState, {"step": 3, "seconds": 2, "unheard of": [1]}, Path("a"))
    assert state == TrainerState(step=3, seconds=2)


@pytest.mark.parametrize("facts", [{"step": "3"}, {"finished": 1}, {"seconds": None}, {"best": [1.0]}])
def test_a_state_of_another_type_is_refused(facts: dict[str, object]):
    with pytest.raises(FileRefused, match=f"^a: its {next(iter(facts))} is .*; delete it to use the previous one"):
        read_state(TrainerState, facts, Path("a"))
