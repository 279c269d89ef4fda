"""Table of document formats."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from heedful.documents.interface import DocumentFile
from heedful.documents.office import PresentationFile, WordFile
from heedful.documents.open_document import OpenDocumentFile
from heedful.documents.plain import HtmlFile, TextFile
from heedful.documents.subtitles import SubtitleFile
from heedful.errors import DataError

FORMATS: Final[dict[str, Callable[[bytes, int], DocumentFile]]] = {
    ".txt": TextFile,
    ".html": HtmlFile,
    ".htm": HtmlFile,
    ".srt": SubtitleFile,
    ".vtt": SubtitleFile,
    ".docx": WordFile,
    ".odt": OpenDocumentFile,
    ".pptx": PresentationFile,
    ".odp": OpenDocumentFile,
}
"""Reader of each file name's ending."""


def format_of(name: str) -> str:
    """Find the format of a file by its name.

    Args:
        name: file name.

    Returns:
        A key of `FORMATS`.

    Raises:
        DataError: the format is not read; the message names those that are.
    """
    ending = Path(name).suffix.lower()
    if ending not in FORMATS:
        raise DataError(f"files of the format {ending or name!r} are not read; read are {', '.join(FORMATS)}")
    return ending
