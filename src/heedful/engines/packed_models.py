"""Models in one archive, as `heedful pack` writes it, in the place of a model folder."""

import shlex
import tarfile
import zipfile
from pathlib import Path

from heedful.errors import FileRefused, UsageError
from heedful.text.quoting import harmless


def refuse_packed(path: Path, manifest: str) -> None:
    """Refuse an archive in the place of a model folder.

    Args:
        path: what was named; anything but an archive passes.
        manifest: name of the file that makes a folder a model.

    Raises:
        UsageError: it is a packed model; the message has the command that unpacks it.
        FileRefused: it is named as an archive, and is none that can be read.
    """
    module = {".zip": "zipfile", ".tar": "tarfile"}.get(path.suffix.lower())
    if module is None or not path.is_file():
        return
    try:
        folder = _folder_in(path, manifest)
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, tarfile.TarError):
        raise FileRefused(f"{path}: not an archive of heedful pack, or cut; copy it again") from None
    if folder is not None:
        command = f"python -m {module} -e {shlex.quote(str(path))} ."
        raise UsageError(
            f"{path}: a packed model; unpack it with: {command} and name the folder: {shlex.quote(harmless(folder))}"
        )


def _folder_in(path: Path, manifest: str) -> str | None:
    """Name of the folder of the packed model; None if there is none."""
    if path.suffix.lower() == ".zip":
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    else:
        with tarfile.open(path, "r:") as archive:
            names = archive.getnames()
    parts = (name.split("/") for name in names)
    return next((folder for folder, *rest in parts if rest == [manifest]), None)
