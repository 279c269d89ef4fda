"""Archives of documents: bounds on what they unpack to, and copies with other content of some members."""

import io
import zipfile
from collections.abc import Mapping
from typing import Final

from heedful.errors import DataError

MOST_MEMBERS: Final = 10_000
"""Largest number of members of an archive."""


def copy_archive(content: bytes, changed: Mapping[str, bytes]) -> bytes:
    """Copy an archive with other content of some members."""
    written = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as archive,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as copy,
    ):
        for member in archive.infolist():
            copy.writestr(member, changed[member.filename] if member.filename in changed else archive.read(member))
    return written.getvalue()


def check_archive(content: bytes, most_bytes: int) -> None:
    """Refuse an archive that unpacks to too much, before anything is unpacked.

    Raises:
        DataError: it is no archive, too large, or has two members of one name.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        raise DataError("not a document of this kind") from None
    names = [member.filename for member in members]
    if len(set(names)) < len(names) or len(names) > MOST_MEMBERS:
        raise DataError("an archive with too many members, or two of one name")
    if sum(member.file_size for member in members) > most_bytes:
        raise DataError(f"its content exceeds {most_bytes} bytes")
