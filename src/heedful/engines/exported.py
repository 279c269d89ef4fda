"""Exported engines of a model folder: `engines/<name>/`, with the weights they came from and their measured parity.

Each engine has a manifest, `engine.json`: the sha256 of its files and of the weights they were made from, and its
parity with PyTorch, measured at export. If the model is trained further, its weights change; the engine is then out of
date and no longer used.
"""

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from heedful.engines.folder import ModelFolder
from heedful.errors import DamagedFile, FileRefused, UsageError, did_you_mean
from heedful.files.atomic_write import digest, move_aside, sync
from heedful.files.bounded_read import read_json_object
from heedful.files.formats import ENGINE_FORMAT
from heedful.files.records import RecordSchema

if TYPE_CHECKING:
    from heedful.engines.engine import Backend
    from heedful.search.config import SearchConfig

MANIFEST: Final = "engine.json"
FOLDER: Final = "engines"
ENGINES: Final = ("ctranslate2", "onnx", "ctranslate2-int8", "onnx-int8")
"""All engines, the fastest first."""
MOST_DIFFERENCE: Final = 1e-3
"""Maximum difference from PyTorch's token log probabilities, in nats, for an engine to count as exact."""


@final
class _ParitySchema(RecordSchema):
    """Schema of the entries of `Parity`."""

    max_difference: float
    num_compared: int
    num_outputs: int
    num_same: int


@final
class _ManifestSchema(RecordSchema):
    """Schema of the entries of `engine.json`."""

    files: dict[str, str]
    parity: _ParitySchema
    engine: str = ""
    weights: str = ""
    precision: str = ""
    max_length: int = 0


@final
@dataclass(frozen=True)
class Parity:
    """Agreement of an engine with PyTorch, measured at export."""

    max_difference: float
    """Largest difference of a token's log probability, in nats."""
    num_compared: int
    """Number of log probabilities compared."""
    num_outputs: int
    """Number of sources decoded with both."""
    num_same: int
    """Number of sources with the same output."""

    @property
    def is_exact(self) -> bool:
        """Whether the largest difference is at most `MOST_DIFFERENCE`; False if it is NaN."""
        return self.max_difference <= MOST_DIFFERENCE


@final
@dataclass(frozen=True)
class Exported:
    """Exported engine in a model folder."""

    name: str
    path: Path
    facts: Mapping[str, Any]
    """Content of the manifest."""
    fault: str
    """Reason why the engine cannot be used; empty if it can."""

    @property
    def parity(self) -> Parity:
        """Parity measured at export."""
        return Parity(**{field.name: self.facts["parity"][field.name] for field in fields(Parity)})

    def summary(self) -> str:
        """Describe the engine in one line.

        Returns:
            Its folder, size and parity with PyTorch.
        """
        size = sum(path.stat().st_size for path in self.path.iterdir())
        return (
            f"{self.path}: {size / 1e6:.1f} MB; log probabilities within {self.parity.max_difference:.1e} of "
            f"PyTorch's, {self.parity.num_same} of {self.parity.num_outputs} outputs the same"
        )

    def why_not(self, config: "SearchConfig", need_alignment: bool, is_exact: bool = False) -> str | None:
        """Say whether the engine supports a search, without loading it.

        Args:
            config: beam, penalties and limits.
            need_alignment: whether attention weights are needed.
            is_exact: whether results must be bit-identical in every batch.

        Returns:
            None if it does, else the reason why not.
        """
        if self.name.startswith("onnx"):
            return None
        from heedful.engines.ctranslate2 import why_not

        return (self.why_not_exact() if is_exact else None) or why_not(config, need_alignment)

    def why_not_exact(self) -> str | None:
        """Say whether results can be bit-identical in every batch, without loading the engine.

        Returns:
            None if they can, else the reason why not.
        """
        from heedful.engines.engine import BATCHED

        return None if self.name.startswith("onnx") else BATCHED

    def load(self, max_length: int, is_named: bool = False) -> "Backend":
        """Load the engine.

        Args:
            max_length: maximum number of tokens of an output, EOS included.
            is_named: whether the user named this engine, and so accepts its own beam search.

        Raises:
            FileRefused: the engine is out of date, or its files are missing or changed.
            MissingExtra: the package that runs it is not installed.
        """
        self.verify()
        if self.name.startswith("onnx"):
            from heedful.engines.onnx import onnx_backend

            return onnx_backend(self.name, self.path, max_length)
        from heedful.engines.ctranslate2 import ctranslate2_backend

        return ctranslate2_backend(self.name, self.path, max_length, is_named)

    def verify(self) -> None:
        """Check all files against the hashes in the manifest.

        Raises:
            FileRefused: the engine is out of date, or its files are missing or changed.
        """
        if self.fault:
            raise FileRefused(f"{self.path}: {self.fault}")
        for name, checksum in self.facts["files"].items():
            if Path(name).name != name or not (self.path / name).is_file() or digest(self.path / name) != checksum:
                raise FileRefused(f"{self.path / name}: missing or changed since it was written; {_again(self.name)}")


def find_exported(folder: ModelFolder, max_length: int) -> dict[str, Exported]:
    """Find the exported engines of a model.

    Args:
        max_length: maximum number of tokens that the model accepts.

    Returns:
        Engines by name, the fastest first; `fault` says why an engine cannot be used.
    """
    engines: dict[str, Exported] = {}
    for name in ENGINES:
        path = folder.path / FOLDER / name
        if path.is_dir():
            facts = _read(path / MANIFEST)
            engines[name] = Exported(name, path, facts or {}, _fault(name, facts, folder, max_length))
    return engines


def named_engine(engines: Mapping[str, Exported], name: str, folder: ModelFolder) -> Exported:
    """Return the engine of a name.

    Args:
        engines: engines from `find_exported`.

    Raises:
        UsageError: there is no such engine.
    """
    if name not in ENGINES:
        raise UsageError(f"engine {name!r}: unknown{did_you_mean(name, ('auto', 'torch', *ENGINES))}")
    if name not in engines:
        raise UsageError(f"{folder.path}: has no engine {name}; {_again(name, folder.path)}")
    return engines[name]


def commit_engine(folder: ModelFolder, name: str, files_folder: Path, facts: Mapping[str, Any], parity: Parity) -> Path:
    """Write the manifest of a finished engine, and move it to its final name, replacing an older one.

    Args:
        name: name of the engine, in `ENGINES`.
        files_folder: temporary folder of the engine's files, inside `engines` of the model folder; it is moved.
        parity: agreement with PyTorch, as measured.

    Returns:
        The engine's folder.
    """
    files = {path.name: digest(path) for path in sorted(files_folder.iterdir())}
    weights = folder.facts["files"][folder.file("weights").name]
    about = {"engine": name, "weights": weights, **facts, "parity": asdict(parity), "files": files}
    with (files_folder / MANIFEST).open("w", encoding="utf-8", newline="\n") as file:
        json.dump(ENGINE_FORMAT.stamp(about), file, ensure_ascii=False, indent=1)
    for path in files_folder.iterdir():
        sync(path)
    final_path = folder.path / FOLDER / name
    old = move_aside(final_path) if final_path.exists() else None
    files_folder.replace(final_path)
    sync(final_path.parent)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
    return final_path


def _read(path: Path) -> Mapping[str, Any] | None:
    with suppress(OSError, DamagedFile):
        return read_json_object(path)
    return None


def _fault(name: str, facts: Mapping[str, Any] | None, folder: ModelFolder, max_length: int) -> str:
    if facts is None:
        return f"not an engine: it has no readable {MANIFEST}; {_again(name)}"
    try:
        ENGINE_FORMAT.check(folder.path / FOLDER / name / MANIFEST, facts)
    except FileRefused as error:
        return f"{error}; or {_again(name)}"
    if reason := _ManifestSchema.error(facts):
        return f"damaged: {MANIFEST}: {reason}; {_again(name)}"
    if facts.get("engine") != name:
        return f"of another kind than this heedful reads; {_again(name)}"
    if facts.get("weights") != folder.facts["files"].get(folder.facts.get("weights")):
        return f"out of date: it was made from other weights than the model has now; {_again(name)}"
    if facts.get("max_length", 0) < max_length:
        return f"made for at most {facts.get('max_length')} tokens, the model takes {max_length}; {_again(name)}"
    return ""


def _again(name: str, path: Path | str = "MODEL") -> str:
    kind, _, precision = name.partition("-")
    return f"make it with: heedful export {path} --to {kind}{' --int8' if precision else ''}"
