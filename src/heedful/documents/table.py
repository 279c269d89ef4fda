"""Table of document formats."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from heedful.documents.epub import EpubFile
from heedful.documents.gettext_catalog import GettextFile
from heedful.documents.interface import DocumentFile
from heedful.documents.json_strings import JsonFile
from heedful.documents.markdown import MarkdownFile
from heedful.documents.office import PresentationFile, WordFile
from heedful.documents.open_document import OpenDocumentFile
from heedful.documents.plain import HtmlFile, TextFile
from heedful.documents.properties import PropertiesFile
from heedful.documents.subtitles import SubtitleFile
from heedful.documents.xliff import XliffFile
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
    ".epub": EpubFile,
    ".md": MarkdownFile,
    ".po": GettextFile,
    ".xlf": XliffFile,
    ".xliff": XliffFile,
    ".json": JsonFile,
    ".arb": JsonFile,
    ".properties": PropertiesFile,
}
"""Reader of each file name's ending."""


def format_of(name: str) -> str:
    """Find the format of a file by its name.

    Returns:
        A key of `FORMATS`.

    Raises:
        DataError: the format is not read; the message names those that are.
    """
    ending = Path(name).suffix.lower()
    if ending not in FORMATS:
        known = ", ".join(FORMATS)
        raise DataError(f"{name}: files of the format {ending or 'without an ending'} are not read; read are {known}")
    return ending
