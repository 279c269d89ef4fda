"""Model folders on disk: one folder whose `heedful.json` lists every file with its sha256.

Renaming `heedful.json` into place is the only commit point: whatever happens before it leaves the old model whole.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from heedful.custom_code import require_allowed
from heedful.errors import FileRefused, ResourceError, UsageError
from heedful.files import written_whole
from heedful.formats import KEY, MODEL_FORMAT

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

    Raises:
        NewerFormat: the folder is a model of a newer heedful.
    """
    refuse_newer(path)
    manifest = MODEL_FORMAT.stamp({**facts, "files": {name: digest(path / name) for name in files}})
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
        FileRefused: a file is missing or changed, or the model needs code that nobody allowed.
        NewerFormat: a newer heedful made the model.
    """
    if not path.is_dir():
        raise UsageError(f"{path}: {'not a folder' if path.exists() else 'no such model'}{_models_beside(path)}")
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path}: not a model: it has no {MANIFEST}{_unfinished(path)}") from None
    except (ValueError, RecursionError) as error:
        raise FileRefused(f"{path / MANIFEST}: damaged: {error}") from None
    if isinstance(manifest, dict):
        MODEL_FORMAT.check(path / MANIFEST, manifest)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
        raise FileRefused(f"{path / MANIFEST}: not a manifest of a model")
    for name, checksum in manifest["files"].items():
        if Path(name).name != name:
            raise FileRefused(f"{path / MANIFEST}: names a file outside the folder: {name!r}")
        if not (path / name).is_file():
            raise FileRefused(f"{path / name}: missing; copy the whole folder again")
        if digest(path / name) != checksum:
            raise FileRefused(f"{path / name}: changed since it was written; copy the folder again or train anew")
    require_allowed(manifest.get("code", ()), path)
    return ModelFolder(path, manifest)


def refuse_newer(path: Path) -> None:
    """Refuse to write into a model folder of a newer heedful.

    Args:
        path: a folder; one that is no model, or a damaged one, is not refused.

    Raises:
        NewerFormat: a newer heedful made it.
    """
    with suppress(OSError, ValueError, RecursionError):
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        if isinstance(manifest, dict) and isinstance(manifest.get(KEY), int):
            MODEL_FORMAT.check(path / MANIFEST, manifest)


def claim(path: Path) -> None:
    """Make the folder of a training, and prove that it can be written before any work is done.

    Args:
        path: the folder; it may be there, with a training in it.

    Raises:
        UsageError: it holds something else.
        NewerFormat: a newer heedful trained in it; nothing is changed.
        ResourceError: it cannot be written.
    """
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path}: exists and is not a folder; choose another --out")
    if path.is_dir() and any(path.iterdir()) and not (path / "run").is_dir():
        raise UsageError(f"{path}: holds files that are no training run; choose another --out")
    refuse_newer(path)
    probe = path / ".writable"
    try:
        (path / "run").mkdir(parents=True, exist_ok=True)
        probe.write_text("heedful", encoding="utf-8", newline="\n")
        probe.unlink()
    except OSError as error:
        raise ResourceError(f"{path}: cannot be written: {error.strerror}; choose another --out") from None


def require_same_tokens(folder: ModelFolder, like: ModelFolder) -> ModelFolder:
    """Refuse a model whose token ids mean something else than those of another one.

    Args:
        folder: of the model.
        like: of the other one.

    Returns:
        The folder.

    Raises:
        UsageError: their tokenizers differ.
    """
    for role in ("source_tokenizer", "target_tokenizer"):
        own, other = (str(each.facts["files"][each.facts[role]]) for each in (folder, like))
        if own != other:
            raise UsageError(f"ensemble: {folder.path} has other tokens than {like.path}; train it on the same data")
    return folder


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
