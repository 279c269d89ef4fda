"""Packing: an atomic copy of a model folder for shipping, as a folder or an archive.

A packed model contains `heedful.json`, the files that it names and the usable engines, but not `run/`, which only
training needs. Every file is hashed while it is copied and checked against the manifests. The weights and the graphs of
an engine hold the same numbers; an archive .tar.xz, which is compressed as a whole, stores them once.
"""

import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Final, final

from heedful.config.base import read_toml, validate
from heedful.data.corrections import NAME as JOURNAL
from heedful.engines.exported import FOLDER as ENGINES
from heedful.engines.exported import MANIFEST as ENGINE_MANIFEST
from heedful.engines.exported import find_exported
from heedful.engines.folder import CONFIG, MANIFEST, ModelFolder
from heedful.engines.packed_models import ARCHIVES, archive_suffix
from heedful.errors import FileRefused, ResourceError, UsageError
from heedful.files.atomic_write import sync, temporary_path, write_through
from heedful.text.tokenizer import TextConfig

OTHER_ARCHIVES: Final = (".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar")
CARD: Final = "README.md"
"""File of the model card, which model hubs show."""
_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""Date of every file in an archive: constant, so that the same model gives the same archive."""
_MODE: Final = 0o644
_MOST_REACH: Final = 64 << 20
"""Largest distance, in bytes, over which a repetition is found: unpacking takes as much memory."""

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


def pack(folder: ModelFolder, out: Path, card: str = "", corrections: bytes = b"") -> Packed:
    """Pack a model.

    Args:
        out: path of the new folder, or of the new archive if it ends in .zip, .tar or .tar.xz; an archive contains one
            folder, named after the archive without the suffix.
        card: text of the model card, which becomes README.md; empty = none.
        corrections: lines of the new model's journal of corrections; empty = none.

    Returns:
        The packed model; a packed folder is a complete model folder.

    Raises:
        UsageError: `out` exists, lies in the model folder, or names an archive of another kind.
        FileRefused: a file differs from its hash in the manifest.
        ResourceError: the disk is full or refuses; `out` is complete or absent then.
    """
    if out.exists() or out.is_symlink():
        raise UsageError(f"{out}: exists; choose another --output")
    suffix = archive_suffix(out)
    if not suffix and out.suffix.lower() in OTHER_ARCHIVES:
        raise UsageError(f"{out}: archives are {', '.join(ARCHIVES)}; the smallest is .tar.xz")
    if folder.path.resolve() in out.resolve().parents:
        raise UsageError(f"{out}: lies in the model; choose an --output elsewhere")
    hashes, engines, left_out = _files(folder)
    added = {name: content for name, content in ((CARD, card.encode()), (JOURNAL, corrections)) if content}
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with temporary_path(out, is_folder=not suffix) as temporary:
            num_bytes = _write(folder.path, hashes, added, temporary, out)
            temporary.rename(out)
        sync(out.parent)
    except OSError as error:
        raise ResourceError(f"{out}: not written: {error.strerror or error}") from None
    return Packed(out, len(hashes) + len(added), num_bytes, engines, left_out)


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


def _write(model: Path, hashes: Mapping[str, str], added: Mapping[str, bytes], temporary: Path, out: Path) -> int:
    """Write all files under a temporary name, and return the number of bytes written."""
    suffix = archive_suffix(out)
    if not suffix:
        _copy(model, hashes, added, lambda name, content: _write_file(temporary / name, content))
        for parent in {parent for name in hashes for parent in Path(name).parents}:
            sync(temporary / parent)
        return sum(path.stat().st_size for path in temporary.rglob("*") if path.is_file())
    stem = packed_name(out)
    if suffix == ".zip":
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            _copy(model, hashes, added, lambda name, content: _add_to_zip(archive, f"{stem}/{name}", content))
    else:
        size = sum((model / name).stat().st_size for name in hashes)
        with (
            _compressed(temporary, size) if suffix == ".tar.xz" else temporary.open("wb") as file,
            tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            _copy(model, hashes, added, lambda name, content: _add_to_tar(archive, f"{stem}/{name}", content))
    sync(temporary)
    return temporary.stat().st_size


def packed_name(out: Path) -> str:
    """Return the name of the folder of a packed model, from the name of the folder or archive."""
    return out.name[: len(out.name) - len(archive_suffix(out))]


def _compressed(path: Path, size: int) -> IO[bytes]:
    """File that compresses what is written to it, and finds repetitions as far as `_MOST_REACH` apart.

    Args:
        path: the file.
        size: number of bytes that will be written, or a little fewer.

    Raises:
        UsageError: this Python has no such compression.
    """
    try:
        import lzma
    except ImportError:
        raise UsageError(f"{path.name}: this Python was built without lzma; choose .zip or .tar") from None
    reach = min(max(size, 1 << 16), _MOST_REACH)
    filters = [{"id": lzma.FILTER_LZMA2, "preset": lzma.PRESET_DEFAULT, "dict_size": reach}]
    return lzma.open(path, "wb", filters=filters)


def _copy(model: Path, hashes: Mapping[str, str], added: Mapping[str, bytes], write: Write) -> None:
    """Copy each file with `write`, after checking its hash, and write the added files.

    Raises:
        FileRefused: a file differs from its hash in the manifest.
    """
    for name, digest in hashes.items():
        content = (model / name).read_bytes()
        if digest and sha256(content).hexdigest() != digest:
            raise FileRefused(f"{model / name}: changed since it was written; copy the folder again or train anew")
        write(name, content)
    for name, content in added.items():
        write(name, content)


def _write_file(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_through(path, content)


def _add_to_zip(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    about = zipfile.ZipInfo(name, _DATE)
    about.external_attr, about.compress_type = _MODE << 16, archive.compression
    archive.writestr(about, content)


def _add_to_tar(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode = len(content), _MODE
    archive.addfile(about, io.BytesIO(content))
