"""Models in one archive, as `heedful pack` writes it, in the place of a model folder."""

import shlex
import tarfile
import zipfile
from pathlib import Path
from typing import Final

from heedful.errors import FileRefused, UsageError
from heedful.text.quoting import harmless

ARCHIVES: Final = {".zip": "zipfile", ".tar": "tarfile", ".tar.xz": "tarfile"}
"""Suffixes of archives, with the module of Python that unpacks each."""
MOST_READ: Final = 64 << 20
"""Number of unpacked bytes of an archive .tar.xz in which the manifest is looked for."""


def archive_suffix(path: Path) -> str:
    """Return the suffix of an archive's name, in lower case; empty for a name of anything else."""
    name = path.name.lower()
    return next((suffix for suffix in ARCHIVES if name.endswith(suffix) and name != suffix), "")


def refuse_packed(path: Path, manifest: str) -> None:
    """Refuse an archive in the place of a model folder.

    Args:
        path: what was named; anything but an archive passes.
        manifest: name of the file that makes a folder a model.

    Raises:
        UsageError: it is a packed model; the message has the command that unpacks it.
        FileRefused: it is named as an archive, and is none that can be read.
    """
    suffix = archive_suffix(path)
    if not suffix or not path.is_file():
        return
    try:
        folder = _folder_in(path, manifest)
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, tarfile.TarError, MemoryError):
        raise FileRefused(f"{path}: not an archive of heedful pack, or cut; copy it again") from None
    if folder is not None:
        command = f"python -m {ARCHIVES[suffix]} -e {shlex.quote(str(path))} ."
        raise UsageError(
            f"{path}: a packed model; unpack it with: {command} and name the folder: {shlex.quote(harmless(folder))}"
        )


def _folder_in(path: Path, manifest: str) -> str | None:
    """Name of the folder of the packed model; None if there is none."""
    parts = (name.split("/") for name in _names(path))
    return next((folder for folder, *rest in parts if rest == [manifest]), None)


def _names(path: Path) -> list[str]:
    """Names of the files in an archive.

    Raises:
        tarfile.ReadError: it is damaged.
    """
    suffix = archive_suffix(path)
    if suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    if suffix == ".tar":
        with tarfile.open(path, "r:") as archive:
            return archive.getnames()
    try:
        from lzma import LZMAError
    except ImportError:  # some builds of Python lack it
        return []
    try:
        with tarfile.open(path, "r:xz") as archive:
            names: list[str] = []
            for member in archive:
                names.append(member.name)
                if member.offset_data + member.size > MOST_READ:
                    break
            return names
    except LZMAError as error:
        raise tarfile.ReadError(str(error)) from None
