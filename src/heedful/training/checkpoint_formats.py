"""Checkpoint formats: an older one is upgraded on reading, one version at a time, to the one that is written.

Format 1: `manifest.json` maps file names to their sha256 and says no version; tensors of the optimizer are named by the
index of their parameter in the optimizer ("3.exp_avg"), matrices first, then vectors.
Format 2: `manifest.json` says its version, its files and the sha256 of what it says; tensors of the optimizer are named
by parameter ("encoder.weight.exp_avg").

For all formats to come: the keys "format" and "sha256" of the manifest stay as they are, so that a flipped bit is told
from a newer heedful.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from torch import Tensor

from heedful.errors import FileRefused
from heedful.formats import CHECKPOINT_FORMAT, KEY

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MANIFEST: Final = "manifest.json"
Tensors = Mapping[str, Mapping[str, Tensor]]
"""Tensors by group (model, average, optimizer) and name."""
State = TypeVar("State", bound="DataclassInstance")


def manifest_bytes(hashes: Mapping[str, str]) -> bytes:
    """Write the manifest of a checkpoint.

    Args:
        hashes: sha256 by file name.

    Returns:
        The content of `manifest.json`, in the newest format.
    """
    facts = CHECKPOINT_FORMAT.stamp({"files": dict(hashes)})
    return json.dumps({**facts, "sha256": _digest(facts)}, indent=1).encode()


def read_manifest(folder: Path) -> tuple[int, Mapping[str, str]]:
    """Read the manifest of a checkpoint.

    Args:
        folder: the checkpoint.

    Returns:
        Its format, and sha256 by file name.

    Raises:
        NewerFormat: a newer heedful made it.
        ValueError: the manifest is damaged.
        OSError: there is none, or it cannot be read.
    """
    path = folder / MANIFEST
    facts = json.loads(path.read_bytes().decode())
    if not isinstance(facts, dict):
        raise ValueError(f"{MANIFEST} is no manifest")
    if KEY not in facts:
        return 1, facts
    stated = facts.pop("sha256", None)
    if stated != _digest(facts):
        raise ValueError(f"{MANIFEST} is not as it was written")
    version = CHECKPOINT_FORMAT.check(path, facts)
    if not isinstance(facts.get("files"), dict):
        raise ValueError(f"{MANIFEST} names no files")
    return version, facts["files"]


def upgrade(version: int, tensors: Tensors, parameter_order: Sequence[str], folder: Path) -> Tensors:
    """Bring the tensors of a checkpoint to the newest format.

    Args:
        version: their format.
        tensors: as they were read.
        parameter_order: names of the optimizer's parameters in its own order.
        folder: the checkpoint, for messages.

    Returns:
        The tensors as the newest format has them, the same bits.

    Raises:
        FileRefused: they are of another model.
    """
    for step in _UPGRADES[version - 1 :]:
        tensors = step(tensors, parameter_order, folder)
    return tensors


def read_state(kind: type[State], facts: Mapping[str, Any], folder: Path) -> State:
    """Make a state of the numbers that a checkpoint holds; unknown keys are left out, missing ones have their defaults.

    Args:
        kind: a data class whose fields have defaults.
        facts: values by field name.
        folder: the checkpoint, for messages.

    Returns:
        The state.

    Raises:
        FileRefused: a value is of another type than its field.
    """
    known = {each.name: facts.get(each.name, each.default) for each in fields(kind)}
    for each in fields(kind):
        wanted = (int, float) if isinstance(each.default, float) else type(each.default)
        if not isinstance(known[each.name], wanted):
            raise FileRefused(f"{folder}: its {each.name} is {known[each.name]!r}; delete it to take the one before")
    return kind(**known)


def _name_optimizer_tensors(tensors: Tensors, parameter_order: Sequence[str], folder: Path) -> Tensors:
    """Name what format 1 named by index.

    Raises:
        FileRefused: the tensors are of another model.
    """
    named: dict[str, Tensor] = {}
    weights = tensors.get("model", {})
    for key, tensor in tensors.get("optimizer", {}).items():
        index, _, role = key.partition(".")
        name = parameter_order[int(index)] if index.isdecimal() and int(index) < len(parameter_order) else ""
        fits = name in weights and tensor.shape in ((), weights[name].shape)
        if not fits:
            raise FileRefused(f"{folder}: its optimizer's {key} fits no parameter of this model; was it changed since?")
        named[f"{name}.{role}"] = tensor
    return {**tensors, "optimizer": named}


_UPGRADES: Final[tuple[Callable[[Tensors, Sequence[str], Path], Tensors], ...]] = (_name_optimizer_tensors,)
"""From each format to the next, beginning with format 1."""


def _digest(facts: Mapping[str, Any]) -> str:
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
