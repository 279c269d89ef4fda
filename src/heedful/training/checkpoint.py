"""Checkpoints that survive a kill at any instant.

One folder each, `checkpoints/000123/`, written under another name, synced, then renamed into place; its manifest holds
the size and sha256 of every file, so a damaged one is recognised, named and passed over for the one before it.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful.errors import FileRefused, ResourceError
from heedful.runtime.folder import digest, sync

_NAME: Final = re.compile(r"\d{6,}")
_HALF_DONE: Final = re.compile(r"\.\d{6,}-\d+")


@dataclass(frozen=True)
class Checkpoint:
    """Everything that training needs to go on as if it had never stopped."""

    step: int
    tensors: Mapping[str, Mapping[str, Tensor]]
    """By file name without suffix: model, average, optimizer."""
    state: Mapping[str, Any]
    """What JSON can hold: position in the data, best scores, seconds trained."""


@final
class CheckpointFolder:
    """The checkpoints of one run; the newest few are kept."""

    def __init__(self, path: Path, num_kept: int = 2, warn: Callable[[str], None] = print) -> None:
        """Use a folder.

        Args:
            path: made when first saved to.
            num_kept: newest checkpoints that stay, at least 2, so that a damaged one has a predecessor.
            warn: told of damaged checkpoints.
        """
        self.path: Final = path
        self._num_kept: Final = max(2, num_kept)
        self._warn: Final = warn

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, then delete the oldest.

        Args:
            checkpoint: what to write.

        Raises:
            ResourceError: the disk is full or refuses; earlier checkpoints are untouched.
        """
        name = f"{checkpoint.step:06d}"
        half_done = self.path / f".{name}-{os.getpid()}"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._clear()
            half_done.mkdir()
            _fill(half_done, checkpoint)
            final = self.path / name
            if final.exists():  # an identical step, or a damaged one that was passed over
                shutil.rmtree(final)
            half_done.rename(final)
            sync(self.path)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(half_done, ignore_errors=True)
            raise ResourceError(f"{self.path}: checkpoint of step {checkpoint.step} not saved: {error}") from None
        for old in self._names()[: -self._num_kept]:
            shutil.rmtree(self.path / old, ignore_errors=True)

    def load_newest(self) -> Checkpoint | None:
        """Read the newest checkpoint whose files are what was written.

        Returns:
            It, or None where there is none yet.

        Raises:
            FileRefused: there are checkpoints but all are damaged.
        """
        names = self._names()
        for name in reversed(names):
            try:
                return _read(self.path / name)
            except FileRefused as error:
                self._warn(f"{error}; taking the one before it")
        if names:
            raise FileRefused(f"{self.path}: all {len(names)} checkpoints are damaged; delete the folder to start over")
        return None

    def _clear(self) -> None:
        """Remove what killed runs left half-done."""
        for entry in self.path.iterdir():
            if _HALF_DONE.fullmatch(entry.name):
                shutil.rmtree(entry, ignore_errors=True)

    def _names(self) -> list[str]:
        if not self.path.is_dir():
            return []
        return sorted((entry.name for entry in self.path.iterdir() if _NAME.fullmatch(entry.name)), key=int)


def _fill(folder: Path, checkpoint: Checkpoint) -> None:
    for name, tensors in checkpoint.tensors.items():
        save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, folder / f"{name}.safetensors")
    state = {"step": checkpoint.step, "state": checkpoint.state}
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8", newline="\n")
    files = {path.name: digest(path) for path in sorted(folder.iterdir())}
    (folder / "manifest.json").write_text(json.dumps(files, indent=1), encoding="utf-8", newline="\n")
    for path in folder.iterdir():
        sync(path)
    sync(folder)


def _read(folder: Path) -> Checkpoint:
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        for name, written in manifest.items():
            if Path(name).name != name or digest(folder / name) != written:
                raise FileRefused(f"{folder / name}: not as it was written")
        held = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        stems = [Path(name).stem for name in manifest if name.endswith(".safetensors")]
        tensors = {stem: load_file(folder / f"{stem}.safetensors") for stem in stems}
        return Checkpoint(int(held["step"]), tensors, held["state"])
    except (OSError, ValueError, KeyError, AttributeError, SafetensorError) as error:
        raise FileRefused(f"{folder}: damaged checkpoint: {error}") from None
