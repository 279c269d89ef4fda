"""Fingerprints that keep a training from mixing data: before a resume, and while the files are read."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol, final

from heedful.errors import DataError, UsageError
from heedful.files.atomic_write import digest, recorded_name
from heedful.files.formats import DATA_FORMAT
from heedful.files.records import read_facts, write_facts
from heedful.text.text_files import file_identity

FINGERPRINTS: Final = "run/data.json"
EXPERIMENT: Final = "run/experiment.toml"
"""Settings of a training, written just before its first step; a folder with this file holds a begun training."""
_MADE_BY_TRAINING: Final = ("heedful.json", "run/checkpoints")


class WatchedFile(Protocol):
    """Data that may change while they are read."""

    def identity(self) -> tuple[Any, ...]:
        """Return a value that changes whenever the content changes, such as sizes and times of change.

        Returns:
            Any values; they may also change while the content stays.
        """
        ...

    def fingerprint(self) -> dict[str, Any]:
        """Return a description that changes exactly when the content changes.

        Returns:
            Values that JSON can hold.
        """
        ...


@final
class WholeFile:
    """File of any content; construct by its path."""

    def __init__(self, path: Path) -> None:
        self._path: Final = path

    def identity(self) -> tuple[Any, ...]:
        """Return values that change whenever the content changes."""
        return file_identity(self._path)

    def fingerprint(self) -> dict[str, Any]:
        """Describe the content so that any change is detected.

        Returns:
            Name, size and sha256. JSON can hold it.
        """
        return {"name": recorded_name(self._path), "size": self._path.stat().st_size, "sha256": digest(self._path)}


@final
class DataWatch:
    """Watch over data files that are read several times."""

    def __init__(self, files: Mapping[str, WatchedFile]) -> None:
        """Compute the fingerprints of all files.

        Args:
            files: files by part of the data, such as "train".
        """
        self._files: Final = files
        self._identities: Final = {name: file.identity() for name, file in files.items()}
        self.fingerprints: Final[Mapping[str, Any]] = {name: file.fingerprint() for name, file in files.items()}
        """Fingerprints by part of the data, as JSON values."""

    def check(self) -> None:
        """Refuse files that changed since their fingerprints were computed.

        Raises:
            DataError: a file changed.
        """
        for name, file in self._files.items():
            identity = file.identity()
            if identity == self._identities[name]:
                continue
            if file.fingerprint() != self.fingerprints[name]:
                raise DataError(
                    f"the {name} data changed while they were read; run the same command once they are final"
                )
            self._identities[name] = identity


def has_begun(folder: Path) -> bool:
    """Tell whether a training has begun in a folder.

    Returns:
        Whether it has settings of a training, which may have steps and so depends on its data and tokenizers.
    """
    return (folder / EXPERIMENT).is_file()


def claim_data(folder: Path, fingerprints: Mapping[str, Any]) -> None:
    """Record the fingerprints of a training's data, or refuse data that differ from the recorded ones.

    Args:
        fingerprints: JSON values by part of the data.

    Raises:
        DataError: the data changed.
        UsageError: the folder has a model or checkpoints, but not the settings that they were trained with.
        FileRefused: the record of the fingerprints is missing or damaged.
        NewerFormat: a newer heedful wrote the record.
    """
    path = folder / FINGERPRINTS
    if not has_begun(folder):
        if product := next((name for name in _MADE_BY_TRAINING if (folder / name).exists()), ""):
            raise UsageError(
                f"{folder}: has {product}, but no {EXPERIMENT}, so it cannot be resumed; choose another --out"
            )
        # Remains of a refused or interrupted attempt with other data must not be used.
        shutil.rmtree(folder / "run" / "data", ignore_errors=True)
        write_facts(path, DATA_FORMAT, fingerprints)
        return
    before = read_facts(path, DATA_FORMAT, "choose another --out, or delete the folder to start over")
    now = dict(fingerprints)
    if changed := sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name)):
        raise DataError(
            f"{folder}: trained on other data ({', '.join(changed)} changed); "
            "choose another --out, or delete the folder to start over"
        )
