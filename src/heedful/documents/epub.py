"""Electronic books (EPUB): title, chapters in XHTML and table of contents; all other members stay to the byte."""

import io
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Final, final

from heedful.documents.archives import check_archive, copy_archive
from heedful.documents.html import HtmlMarkup
from heedful.documents.html_tokens import html_tokens
from heedful.documents.interface import DocumentFile, decode_text
from heedful.documents.markup_rules import XHTML, MarkupRules, TagHandling
from heedful.errors import DataError
from heedful.text.tagged_text import TaggedText

_CHAPTERS: Final = frozenset((".xhtml", ".html", ".htm"))
_PACKAGE: Final = ".opf"
_AROUND_TITLES: Final = frozenset(("package", "metadata", "dc-metadata"))


@final
class EpubFile(DocumentFile):
    """Electronic book."""

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Read the chapters.

        Args:
            most_bytes: bound of the unpacked size.

        Raises:
            DataError: it is no electronic book, or too large.
            MemoryError: it takes too much memory.
        """
        check_archive(content, most_bytes)
        self._content: Final = content
        self._markup: Final[dict[str, HtmlMarkup]] = {}
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                if damaged := archive.testzip():
                    raise DataError(f"not a readable electronic book: {damaged} is damaged")
                for name in archive.namelist():
                    ending = PurePosixPath(name).suffix.lower()
                    if ending in _CHAPTERS:
                        self._markup[name] = HtmlMarkup(decode_text(archive.read(name)), XHTML)
                    elif ending == _PACKAGE:
                        with suppress(UnicodeDecodeError):  # a package in UTF-16 stays
                            text = archive.read(name).decode("utf-8")
                            self._markup[name] = HtmlMarkup(text, _package_rules(text))
                    elif ending == ".ncx":
                        text = decode_text(archive.read(name))
                        self._markup[name] = HtmlMarkup(text, TagHandling("xml").rules(text))
        except (DataError, MemoryError):
            raise
        except Exception as error:  # any error of the decompressors: the file is not what it claims to be
            raise DataError(f"not a readable electronic book ({type(error).__name__})") from None
        if all(PurePosixPath(name).suffix.lower() == _PACKAGE for name in self._markup):
            raise DataError("not a readable electronic book: it has no chapters")

    @property
    def passages(self) -> list[TaggedText]:
        return [passage for markup in self._markup.values() for passage in markup.passages]

    def write(self, outputs: Sequence[TaggedText]) -> bytes:
        changed: dict[str, bytes] = {}
        start = 0
        for name, markup in self._markup.items():
            stop = start + len(markup.passages)
            changed[name] = markup.write(outputs[start:stop]).encode("utf-8")
            start = stop
        return copy_archive(self._content, changed)


def _package_rules(package: str) -> MarkupRules:
    """Rules by which only titles are translated."""
    names = frozenset(token.name for token in html_tokens(package, is_xml=True) if token.kind == "start")
    read = frozenset(name for name in names if name.rpartition(":")[2] in {"title", *_AROUND_TITLES})
    nothing = frozenset[str]()
    return MarkupRules(names, nothing, names - read, nothing, is_xml=True, has_html=False)
