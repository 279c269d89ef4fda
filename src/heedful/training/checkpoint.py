"""Checkpoints that survive a kill at any instant.

Each checkpoint is a folder such as `checkpoints/000123/`, written under another name, synced, then renamed into place.
Its manifest holds the sha256 of every file, so that a damaged checkpoint is detected, reported and skipped for the
previous one. To remove a checkpoint, its folder is renamed first, so a folder with a number as its name is always
complete. Checkpoints of a newer heedful are refused and never removed.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Final, final

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from heedful.errors import DamagedFile, FileRefused, NewerFormat, ResourceError
from heedful.files.atomic_write import sync, write_through
from heedful.files.bounded_read import open_regular, parse_json
from heedful.training.checkpoint_formats import MANIFEST, manifest_bytes, read_manifest, upgrade

_NAME: Final = re.compile(r"\d{6,}")
_HALF_DONE: Final = re.compile(r"\.\d{6,}-\d+(-\d+)?")
_STATE: Final = "state.json"
_TENSORS: Final = ".safetensors"


class _Damaged(FileRefused):
    """Damaged checkpoint; the previous one is used instead."""


@dataclass(frozen=True)
class Checkpoint:
    """Complete state of a training, from which it continues as if it had never stopped."""

    step: int
    tensors: Mapping[str, Mapping[str, Tensor]]
    """Tensors by file name without suffix: model, average, optimizer."""
    state: Mapping[str, Any]
    """State that JSON can hold: position in the data, best scores, seconds trained."""


@final
class CheckpointFolder:
    """Checkpoints of one run; the newest few are kept."""

    def __init__(self, path: Path, num_kept: int = 2, warn: Callable[[str], None] = print) -> None:
        """Use a folder.

        Args:
            path: folder, created at the first save.
            num_kept: number of newest checkpoints to keep, at least 2, so that a damaged one has a predecessor.
            warn: callback for warnings about damaged checkpoints.
        """
        self.path: Final = path
        self._num_kept: Final = max(2, num_kept)
        self._warn: Final = warn

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, then delete the oldest, and those of later steps, which were skipped as damaged.

        Raises:
            ResourceError: writing failed, for example because the disk is full; earlier checkpoints are untouched.
            NewerFormat: a newer heedful saved the same step; nothing is changed.
        """
        name = f"{checkpoint.step:06d}"
        if newer := self._newer(name):
            raise newer
        half_done = self.path / f".{name}-{os.getpid()}"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._clear()
            half_done.mkdir()
            _fill(half_done, checkpoint)
            if (self.path / name).exists():  # the same checkpoint, or a damaged one that was skipped
                self._discard(name)
            half_done.rename(self.path / name)
            sync(self.path)
            sync(self.path.parent)
            names = self._names()
        except (OSError, SafetensorError) as error:
            shutil.rmtree(half_done, ignore_errors=True)
            raise ResourceError(f"{self.path}: checkpoint of step {checkpoint.step} not saved: {error}") from None
        index = names.index(name) + 1
        for old in (*names[:index][: -self._num_kept], *names[index:]):
            if self._newer(old):
                continue
            try:
                self._discard(old)
            except OSError as error:
                self._warn(f"{self.path / old}: old checkpoint not removed: {error.strerror}")

    def load_newest(self, parameter_order: Sequence[str] = ()) -> Checkpoint | None:
        """Read the newest checkpoint whose files match their hashes.

        Args:
            parameter_order: names of the optimizer's parameters in its own order, by which older formats named them.

        Returns:
            The checkpoint, or None if there is none yet.

        Raises:
            FileRefused: there are checkpoints but all are damaged, or the newest is of another model.
            NewerFormat: the newest was saved by a newer heedful.
        """
        names = self._names()
        for name in reversed(names):
            try:
                return _read(self.path / name, parameter_order)
            except _Damaged as error:
                self._warn(f"{error}; using the previous one")
        if names:
            raise FileRefused(f"{self.path}: all {len(names)} checkpoints are damaged; delete the folder to start over")
        return None

    def _clear(self) -> None:
        """Remove unfinished files of killed runs."""
        for entry in self.path.iterdir():
            if _HALF_DONE.fullmatch(entry.name):
                shutil.rmtree(entry, ignore_errors=True)

    def _discard(self, name: str) -> None:
        """Remove a checkpoint so that a partial one is never read."""
        aside = next(path for number in count() if not (path := self.path / f".{name}-{os.getpid()}-{number}").exists())
        (self.path / name).rename(aside)
        shutil.rmtree(aside, ignore_errors=True)

    def _newer(self, name: str) -> NewerFormat | None:
        """Error for a checkpoint that a newer heedful saved; None for any other."""
        try:
            read_manifest(self.path / name)
        except NewerFormat as error:
            return error
        except (OSError, ValueError):
            pass
        return None

    def _names(self) -> list[str]:
        if not self.path.is_dir():
            return []
        return sorted((entry.name for entry in self.path.iterdir() if _NAME.fullmatch(entry.name)), key=int)


def _fill(folder: Path, checkpoint: Checkpoint) -> None:
    """Write all files of a checkpoint; hashes are of the intended content, not of the content read back."""
    hashes: dict[str, str] = {}

    def write(name: str, content: bytes) -> None:
        write_through(folder / name, content)
        hashes[name] = sha256(content).hexdigest()

    for name, tensors in checkpoint.tensors.items():
        write(name + _TENSORS, save({key: tensor.contiguous() for key, tensor in tensors.items()}))
    write(_STATE, json.dumps({"step": checkpoint.step, "state": checkpoint.state}).encode())
    write_through(folder / MANIFEST, manifest_bytes(hashes))
    sync(folder)


def _read(folder: Path, parameter_order: Sequence[str]) -> Checkpoint:
    try:
        content: dict[str, Any] = {}
        tensors: dict[str, Mapping[str, Tensor]] = {}
        version, hashes = read_manifest(folder)
        for name, stated in {_STATE: None, **hashes}.items():
            raw = b""
            if Path(name).name == name:
                with open_regular(folder / name) as file:
                    raw = file.read()
            if sha256(raw).hexdigest() != stated:
                raise _Damaged(f"{folder / name}: not as it was written")
            if name == _STATE:
                content = parse_json(raw)
            else:
                tensors[name.removesuffix(_TENSORS)] = load(raw)
        step, state = int(content["step"]), dict(content["state"])
    except (OSError, DamagedFile, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise _Damaged(f"{folder}: damaged checkpoint: {error}") from None
    return Checkpoint(step, upgrade(version, tensors, parameter_order, folder), state)
