"""Table of document formats, whose readers are imported on first use."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from heedful.documents.interface import DocumentFile
from heedful.errors import DataError

READERS: Final = {
    ".txt": ("plain", "TextFile"),
    ".html": ("plain", "HtmlFile"),
    ".htm": ("plain", "HtmlFile"),
    ".srt": ("subtitles", "SubtitleFile"),
    ".vtt": ("subtitles", "SubtitleFile"),
    ".docx": ("office", "WordFile"),
    ".odt": ("open_document", "OpenDocumentFile"),
    ".pptx": ("office", "PresentationFile"),
    ".odp": ("open_document", "OpenDocumentFile"),
    ".epub": ("epub", "EpubFile"),
    ".md": ("markdown", "MarkdownFile"),
    ".po": ("gettext_catalog", "GettextFile"),
    ".xlf": ("xliff", "XliffFile"),
    ".xliff": ("xliff", "XliffFile"),
    ".json": ("json_strings", "JsonFile"),
    ".arb": ("json_strings", "JsonFile"),
    ".properties": ("properties", "PropertiesFile"),
}
"""Module within `heedful.documents` and class of the reader of each file name's ending."""


def reader_of(ending: str) -> Any:
    """Import the class that reads a format.

    Args:
        ending: key of `READERS`.
    """
    module, name = READERS[ending]
    return getattr(import_module(f"heedful.documents.{module}"), name)


def _open(ending: str, content: bytes, most_bytes: int) -> DocumentFile:
    return reader_of(ending)(content, most_bytes)


FORMATS: Final[dict[str, Callable[[bytes, int], DocumentFile]]] = {ending: partial(_open, ending) for ending in READERS}
"""Function that reads a document, by the ending of its file name."""


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
