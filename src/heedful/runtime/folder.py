"""Model folders on disk: one folder whose `heedful.json` lists every file with its sha256.

Renaming `heedful.json` into place is the only commit point: whatever happens before it leaves the old model whole.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from heedful.errors import FileRefused, UsageError
from heedful.files import written_whole

FORMAT: Final = 1
MANIFEST: Final = "heedful.json"
CONFIG: Final = "config.toml"


@dataclass(frozen=True)
class ModelFolder:
    """A verified model folder."""

    path: Path
    facts: Mapping[str, Any]
    """Entries of `heedful.json` beside its files: kind, languages, weights, tokenizers, limits, results."""

    @property
    def task(self) -> str:
        """Name of the task that the model does; models from before there were several translate."""
        return str(self.facts.get("task", "translation"))

    def file(self, role: str) -> Path:
        """Return the path of a file by its purpose.

        Args:
            role: such as "weights".

        Returns:
            Its path.

        Raises:
            FileRefused: the model has no such file, or names one whose content was not verified.
        """
        name = self.facts.get(role)
        if not isinstance(name, str):
            raise FileRefused(f"{self.path / MANIFEST}: names no {role}")
        if name not in self.facts["files"]:
            raise FileRefused(f"{self.path / MANIFEST}: its {role} {name!r} is none of its files")
        return self.path / name


def commit(path: Path, facts: Mapping[str, Any], files: list[str]) -> None:
    """Turn the files in a folder into a model.

    Args:
        path: the folder, with all files already in it.
        facts: what JSON can hold.
        files: names of the immutable files.
    """
    manifest = {"format": FORMAT, **facts, "files": {name: digest(path / name) for name in files}}
    with written_whole(path / MANIFEST) as file:
        json.dump(manifest, file, ensure_ascii=False, indent=1)


def open_folder(path: Path) -> ModelFolder:
    """Verify a model folder and read its manifest.

    Args:
        path: the folder.

    Returns:
        The folder; every file has the sha256 that was written.

    Raises:
        UsageError: there is no such folder, or it is no model.
        FileRefused: a file is missing or changed, or the model needs a newer heedful.
    """
    if not path.is_dir():
        raise UsageError(f"{path}: {'not a folder' if path.exists() else 'no such model'}{_models_beside(path)}")
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path}: not a model: it has no {MANIFEST}{_unfinished(path)}") from None
    except (ValueError, RecursionError) as error:
        raise FileRefused(f"{path / MANIFEST}: damaged: {error}") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
        raise FileRefused(f"{path / MANIFEST}: not a manifest of a model")
    if manifest.get("format") != FORMAT:
        raise FileRefused(f"{path}: format {manifest.get('format')!r}; this heedful reads format {FORMAT}: update it")
    for name, checksum in manifest["files"].items():
        if Path(name).name != name:
            raise FileRefused(f"{path / MANIFEST}: names a file outside the folder: {name!r}")
        if not (path / name).is_file():
            raise FileRefused(f"{path / name}: missing; copy the whole folder again")
        if digest(path / name) != checksum:
            raise FileRefused(f"{path / name}: changed since it was written; copy the folder again or train anew")
    return ModelFolder(path, manifest)


def digest(path: Path) -> str:
    """Hash a file.

    Args:
        path: which.

    Returns:
        Its sha256 in hexadecimal.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _models_beside(path: Path) -> str:
    try:
        near = sorted(p.parent.name for p in path.parent.glob(f"*/{MANIFEST}"))
    except OSError:
        near = []
    return f"; models beside it: {', '.join(near[:5])}" if near else "; make one with: heedful train PAIRS"


def _unfinished(path: Path) -> str:
    return "; its training has not validated yet" if (path / "run").is_dir() else ""
