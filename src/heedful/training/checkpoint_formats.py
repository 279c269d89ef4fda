"""Checkpoint formats: older ones are upgraded on reading, one version at a time, to the current one.

Format 1: `manifest.json` maps file names to their sha256 and has no version; tensors of the optimizer are named by the
index of their parameter in the optimizer ("3.exp_avg"), matrices first, then vectors. Format 2: `manifest.json` has its
version, its files and a sha256 of its content; tensors of the optimizer are named by parameter
("encoder.weight.exp_avg").

All future formats must keep the manifest's keys "format" and "sha256", so that a flipped bit can be distinguished from
a newer format.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from torch import Tensor

from heedful.errors import FileRefused
from heedful.files.bounded_read import read_json_object
from heedful.files.formats import CHECKPOINT_FORMAT, KEY

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

    Returns:
        Its format, and sha256 by file name.

    Raises:
        NewerFormat: a newer heedful wrote it.
        DamagedFile: the manifest is not a file of JSON.
        ValueError: the manifest is damaged otherwise.
        OSError: it does not exist, or cannot be read.
    """
    path = folder / MANIFEST
    facts = read_json_object(path)
    if KEY not in facts:
        return 1, facts
    stated = facts.pop("sha256", None)
    if stated != _digest(facts):
        raise ValueError(f"{MANIFEST} does not match its sha256")
    version = CHECKPOINT_FORMAT.check(path, facts)
    if not isinstance(facts.get("files"), dict):
        raise ValueError(f"{MANIFEST} lists no files")
    return version, facts["files"]


def upgrade(version: int, tensors: Tensors, parameter_order: Sequence[str], folder: Path) -> Tensors:
    """Bring the tensors of a checkpoint to the newest format.

    Args:
        parameter_order: names of the optimizer's parameters in its own order.

    Returns:
        The same tensors, named as in the newest format.

    Raises:
        FileRefused: the tensors belong to another model.
    """
    for step in _UPGRADES[version - 1 :]:
        tensors = step(tensors, parameter_order, folder)
    return tensors


def read_state(kind: type[State], facts: Mapping[str, Any], folder: Path) -> State:
    """Build a state from the values of a checkpoint; unknown keys are ignored, missing ones have their defaults.

    Args:
        kind: a data class whose fields have defaults.

    Raises:
        FileRefused: a value does not have the type of its field.
    """
    known = {each.name: facts.get(each.name, each.default) for each in fields(kind)}
    for each in fields(kind):
        wanted = (int, float) if isinstance(each.default, float) else type(each.default)
        if not isinstance(known[each.name], wanted):
            raise FileRefused(f"{folder}: its {each.name} is {known[each.name]!r}; delete it to use the previous one")
    return kind(**known)


def _name_optimizer_tensors(tensors: Tensors, parameter_order: Sequence[str], folder: Path) -> Tensors:
    """Name the optimizer tensors of format 1 by parameter.

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
            raise FileRefused(
                f"{folder}: its optimizer's {key} fits no parameter of this model; was the model changed?"
            )
        named[f"{name}.{role}"] = tensor
    return {**tensors, "optimizer": named}


_UPGRADES: Final[tuple[Callable[[Tensors, Sequence[str], Path], Tensors], ...]] = (_name_optimizer_tensors,)
"""From each format to the next, beginning with format 1."""


def _digest(facts: Mapping[str, Any]) -> str:
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
