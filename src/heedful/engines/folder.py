"""Model folders on disk: a folder whose `heedful.json` lists every file of the model with its sha256.

Renaming `heedful.json` into place is the only commit point: a failure before it leaves the old model intact.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from pydantic import Field

from heedful.config.plugins import require_allowed
from heedful.engines.packed_models import refuse_packed
from heedful.errors import DamagedFile, FileRefused, ResourceError, UsageError
from heedful.files.atomic_write import atomic_write, digest
from heedful.files.bounded_read import read_json_object
from heedful.files.formats import KEY, MODEL_FORMAT
from heedful.files.records import CHECKSUM, RecordSchema, checksum

MANIFEST: Final = "heedful.json"
CONFIG: Final = "config.toml"


@final
class _ManifestSchema(RecordSchema):
    """Schema of the entries of `heedful.json`."""

    files: dict[str, str]
    heedful: str = ""
    task: str = ""
    kind: str = ""
    code: list[str] = Field(default_factory=list)
    languages: list[str] = Field(default=["", ""], min_length=2, max_length=2)
    vectors: dict[str, str] = Field(default_factory=dict)
    weights: str = ""
    members: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class ModelFolder:
    """Verified model folder."""

    path: Path
    facts: Mapping[str, Any]
    """Content of `heedful.json`: files with their sha256, kind, languages, weights, tokenizers, limits, results."""

    @property
    def task(self) -> str:
        """Name of the model's task; models from before there were tasks are translation models."""
        return str(self.facts.get("task", "translation"))

    def file(self, role: str) -> Path:
        """Return the path of a file by its role.

        Args:
            role: key of `heedful.json`, such as "weights".

        Raises:
            FileRefused: the manifest names no file for this role, or one that is not among its hashed files.
        """
        name = self.facts.get(role)
        if not isinstance(name, str):
            raise FileRefused(f"{self.path / MANIFEST}: names no {role}")
        if name not in self.facts["files"]:
            raise FileRefused(f"{self.path / MANIFEST}: its {role} {name!r} is none of its files")
        return self.path / name


def commit(path: Path, facts: Mapping[str, Any], files: list[str]) -> None:
    """Write the manifest of a model folder, which makes its files a model.

    Args:
        facts: entries of the manifest, as JSON values.
        files: names of the immutable files, which are hashed.

    Raises:
        NewerFormat: the folder is a model of a newer heedful.
    """
    refuse_newer(path)
    hashes = {name: digest(path / name) for name in files}
    entries = {key: value for key, value in facts.items() if key != CHECKSUM}
    stamped = MODEL_FORMAT.stamp({**entries, "files": hashes})
    manifest = json.loads(json.dumps(stamped, ensure_ascii=False).encode(errors="replace"))  # as it will be read
    with atomic_write(path / MANIFEST, is_internal=True) as file:
        json.dump({**manifest, CHECKSUM: checksum(manifest)}, file, ensure_ascii=False, indent=1)


def read_manifest(path: Path) -> ModelFolder:
    """Read the manifest of a model folder; its files are not verified.

    Returns:
        The folder, of which only the facts may be used.

    Raises:
        UsageError: there is no such folder, it is not a model, or it is a packed one.
        FileRefused: the manifest is damaged.
        NewerFormat: a newer heedful made the model.
    """
    if not path.is_dir():
        refuse_packed(path, MANIFEST)
        raise UsageError(f"{path}: {'not a folder' if path.exists() else 'no such model'}{_models_beside(path)}")
    try:
        manifest = read_json_object(path / MANIFEST)
    except FileNotFoundError:
        raise UsageError(f"{path}: not a model: it has no {MANIFEST}{_unfinished(path)}") from None
    MODEL_FORMAT.check(path / MANIFEST, manifest)
    # Manifests of earlier versions of heedful have no checksum.
    stored = manifest.pop(CHECKSUM, None)
    if stored is not None and stored != checksum(manifest):
        raise FileRefused(f"{path / MANIFEST}: changed since it was written; copy the folder again or train anew")
    if reason := _ManifestSchema.error(manifest):
        raise FileRefused(f"{path / MANIFEST}: not a manifest of a model: {reason}; copy the folder again")
    return ModelFolder(path, manifest)


def open_folder(path: Path, will_run: bool = True) -> ModelFolder:
    """Verify a model folder and read its manifest.

    Args:
        will_run: whether the model will be run; if it is only described or copied, its custom code is not needed.

    Returns:
        The folder; every file matches its sha256 in the manifest.

    Raises:
        UsageError: there is no such folder, or it is not a model.
        FileRefused: a file is missing or changed, or the model needs custom code that the user did not allow.
        NewerFormat: a newer heedful made the model.
    """
    folder = read_manifest(path)
    manifest = folder.facts
    for name, expected in manifest["files"].items():
        if Path(name).name != name:
            raise FileRefused(f"{path / MANIFEST}: names a file outside the folder: {name!r}")
        if not (path / name).is_file():
            raise FileRefused(f"{path / name}: missing; copy the whole folder again")
        if digest(path / name) != expected:
            raise FileRefused(f"{path / name}: changed since it was written; copy the folder again or train anew")
    if will_run:
        require_allowed(manifest.get("code", ()), path)
    return folder


def refuse_newer(path: Path) -> None:
    """Refuse to write into a model folder of a newer heedful.

    Args:
        path: a folder; a folder without a model, or with a damaged one, is accepted.

    Raises:
        NewerFormat: a newer heedful made the model.
    """
    with suppress(OSError, DamagedFile):
        manifest = read_json_object(path / MANIFEST)
        if isinstance(manifest.get(KEY), int):
            MODEL_FORMAT.check(path / MANIFEST, manifest)


def claim(path: Path) -> None:
    """Create the folder of a training run, or accept that of an earlier run, and check that it is writable.

    Args:
        path: the folder; it may exist if it is empty or has a training run.

    Raises:
        UsageError: the path is not a folder, or the folder has other files.
        NewerFormat: a newer heedful trained in the folder; nothing is changed.
        ResourceError: the folder is not writable.
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
    """Refuse a model whose tokenizers or labels differ from those of another model: its ids differ in meaning.

    Args:
        like: folder of the other model.

    Raises:
        UsageError: tokenizers or labels differ.
    """
    for role in ("source_tokenizer", "target_tokenizer", "tokenizer", "labels"):
        own, other = (each.facts.get("files", {}).get(each.facts.get(role)) for each in (folder, like))
        if own != other:
            what = "labels" if role == "labels" else "tokens"
            raise UsageError(f"ensemble: {folder.path} has other {what} than {like.path}; train it on the same data")
    return folder


def _models_beside(path: Path) -> str:
    try:
        near = sorted(p.parent.name for p in path.parent.glob(f"*/{MANIFEST}"))
    except OSError:
        near = []
    return f"; models beside it: {', '.join(near[:5])}" if near else "; make one with: heedful train PAIRS"


def _unfinished(path: Path) -> str:
    return "; its training has not validated yet" if (path / "run").is_dir() else ""
