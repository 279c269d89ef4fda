"""Packing: an atomic copy of a model folder for shipping, as a folder or an archive.

A packed model contains `heedful.json`, the files that it names and the usable engines, but not `run/`, which only
training needs. Every file is hashed while it is copied and checked against the manifests.
"""

import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, final

from heedful.config.base import read_toml, validate
from heedful.engines.exported import FOLDER as ENGINES
from heedful.engines.exported import MANIFEST as ENGINE_MANIFEST
from heedful.engines.exported import find_exported
from heedful.engines.folder import CONFIG, MANIFEST, ModelFolder
from heedful.errors import FileRefused, ResourceError, UsageError
from heedful.files.atomic_write import sync, temporary_path, write_through
from heedful.text.tokenizer import TextConfig

ARCHIVES: Final = (".zip", ".tar")
OTHER_ARCHIVES: Final = (".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar")
CARD: Final = "README.md"
"""File of the model card, which model hubs show."""
_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""Date of every file in an archive: constant, so that the same model gives the same archive."""
_MODE: Final = 0o644

Write = Callable[[str, bytes], None]
"""Function that writes a file, from its relative name and its content."""


@final
@dataclass(frozen=True)
class Packed:
    """Packed model."""

    path: Path
    num_files: int
    num_bytes: int
    """Size of the folder's files together, or of the archive."""
    engines: tuple[str, ...]
    """Names of the packed engines."""
    left_out: Mapping[str, str]
    """Reasons why engines were not packed, by engine name."""


def pack(folder: ModelFolder, out: Path, card: str = "") -> Packed:
    """Pack a model.

    Args:
        card: text of the model card, which becomes README.md; empty = none.
        out: path of the new folder, or of the new archive if it ends in .zip or .tar; an archive contains one folder,
            named after the archive without the suffix.

    Returns:
        The packed model; a packed folder is a complete model folder.

    Raises:
        UsageError: `out` exists, lies in the model folder, or names an archive of another kind.
        FileRefused: a file differs from its hash in the manifest.
        ResourceError: the disk is full or refuses; `out` is complete or absent then.
    """
    if out.exists() or out.is_symlink():
        raise UsageError(f"{out}: exists; choose another --output")
    if out.suffix.lower() in OTHER_ARCHIVES:
        raise UsageError(f"{out}: archives are {' and '.join(ARCHIVES)}; weights hardly shrink by compression")
    if folder.path.resolve() in out.resolve().parents:
        raise UsageError(f"{out}: lies in the model; choose an --output elsewhere")
    hashes, engines, left_out = _files(folder)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with temporary_path(out, is_folder=out.suffix.lower() not in ARCHIVES) as temporary:
            num_bytes = _write(folder.path, hashes, temporary, out, card)
            temporary.rename(out)
        sync(out.parent)
    except OSError as error:
        raise ResourceError(f"{out}: not written: {error.strerror or error}") from None
    return Packed(out, len(hashes) + bool(card), num_bytes, engines, left_out)


def _files(folder: ModelFolder) -> tuple[dict[str, str], tuple[str, ...], dict[str, str]]:
    """Files to pack with their sha256 (empty for a manifest), names of packed engines, reasons for those left out."""
    hashes = {MANIFEST: "", **folder.facts["files"]}
    text = validate(TextConfig, read_toml(folder.path / CONFIG).get("text", {}), "text")
    engines: list[str] = []
    left_out: dict[str, str] = {}
    for name, engine in find_exported(folder, text.max_tokens).items():
        if engine.fault:
            left_out[name] = engine.fault
            continue
        engine.verify()
        engines.append(name)
        hashes[f"{ENGINES}/{name}/{ENGINE_MANIFEST}"] = ""
        hashes |= {f"{ENGINES}/{name}/{file}": digest for file, digest in engine.facts["files"].items()}
    return hashes, tuple(engines), left_out


def _write(model: Path, hashes: Mapping[str, str], temporary: Path, out: Path, card: str) -> int:
    """Write all files under a temporary name, and return the number of bytes written."""
    if out.suffix.lower() not in ARCHIVES:
        _copy(model, hashes, card, lambda name, content: _write_file(temporary / name, content))
        for parent in {parent for name in hashes for parent in Path(name).parents}:
            sync(temporary / parent)
        return sum(path.stat().st_size for path in temporary.rglob("*") if path.is_file())
    if out.suffix.lower() == ".zip":
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
            _copy(model, hashes, card, lambda name, content: _add_to_zip(archive, f"{out.stem}/{name}", content))
    else:
        with tarfile.open(temporary, "w", format=tarfile.PAX_FORMAT) as archive:
            _copy(model, hashes, card, lambda name, content: _add_to_tar(archive, f"{out.stem}/{name}", content))
    sync(temporary)
    return temporary.stat().st_size


def _copy(model: Path, hashes: Mapping[str, str], card: str, write: Write) -> None:
    """Copy each file with `write`, after checking its hash, and write the card.

    Raises:
        FileRefused: a file differs from its hash in the manifest.
    """
    for name, digest in hashes.items():
        content = (model / name).read_bytes()
        if digest and sha256(content).hexdigest() != digest:
            raise FileRefused(f"{model / name}: changed since it was written; copy the folder again or train anew")
        write(name, content)
    if card:
        write(CARD, card.encode())


def _write_file(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_through(path, content)


def _add_to_zip(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    about = zipfile.ZipInfo(name, _DATE)
    about.external_attr = _MODE << 16
    archive.writestr(about, content)


def _add_to_tar(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode = len(content), _MODE
    archive.addfile(about, io.BytesIO(content))
