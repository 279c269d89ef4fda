"""Documents as paragraphs: plain text, HTML, SubRip subtitles, Word and OpenDocument, taken apart and written again."""

import io
import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, final

from heedful.errors import DataError, needed_for


class DocumentFile(ABC):
    """Opened document."""

    @abstractmethod
    def paragraphs(self) -> list[str]:
        """List the texts to translate.

        Returns:
            One text for each paragraph, in order.
        """

    @abstractmethod
    def write(self, outputs: Sequence[str]) -> bytes:
        """Write the document with translated paragraphs.

        Args:
            outputs: translation of each paragraph.

        Returns:
            The file.
        """


@final
class TextFile(DocumentFile):
    """Plain text or HTML, translated as one text."""

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Decode the file.

        Args:
            content: the file.
            most_bytes: bound of its unpacked size.
        """
        self._text: Final = decode_text(content)

    def paragraphs(self) -> list[str]:
        return [self._text]

    def write(self, outputs: Sequence[str]) -> bytes:
        return outputs[0].encode("utf-8")


@final
class SubtitleFile(DocumentFile):
    """SubRip subtitles; numbers and times stay, and the lines of a subtitle are translated together."""

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Decode the file.

        Args:
            content: the file.
            most_bytes: bound of its unpacked size.
        """
        self._blocks: Final = [block.split("\n") for block in re.split(r"\n{2,}", decode_text(content).strip("\n"))]
        self._starts: Final = [_text_start(lines) for lines in self._blocks]

    def paragraphs(self) -> list[str]:
        return [" ".join(lines[start:]) for lines, start in zip(self._blocks, self._starts, strict=True)]

    def write(self, outputs: Sequence[str]) -> bytes:
        rows = zip(self._blocks, self._starts, outputs, strict=True)
        blocks = ["\n".join([*lines[:start], output]) for lines, start, output in rows]
        return ("\n\n".join(blocks) + "\n").encode("utf-8")


@final
class WordFile(DocumentFile):
    """Word document; a paragraph keeps the format of its first words."""

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Open the file.

        Args:
            content: the file.
            most_bytes: bound of its unpacked size.

        Raises:
            DataError: it is no Word document, or too large.
        """
        check_archive(content, most_bytes)
        with needed_for("Word documents"):
            import docx
            from docx.oxml.ns import qn
        try:
            self._document: Final[Any] = docx.Document(io.BytesIO(content))
            parts = [self._document.element.body]
            for section in self._document.sections:
                parts += [each._element for each in (section.header, section.footer) if not each.is_linked_to_previous]
            runs_of_paragraphs = [[*paragraph.iter(qn("w:t"))] for part in parts for paragraph in part.iter(qn("w:p"))]
        except Exception as error:  # any error of the parser: the file is not what it claims to be
            raise DataError(f"not a readable Word document ({type(error).__name__})") from None
        self._runs: Final[list[list[Any]]] = [runs for runs in runs_of_paragraphs if runs]

    def paragraphs(self) -> list[str]:
        return ["".join(run.text or "" for run in runs) for runs in self._runs]

    def write(self, outputs: Sequence[str]) -> bytes:
        for (first, *others), output in zip(self._runs, outputs, strict=True):
            first.text = output
            for run in others:
                run.text = ""
        written = io.BytesIO()
        self._document.save(written)
        return written.getvalue()


@final
class OpenDocumentFile(DocumentFile):
    """OpenDocument text; a paragraph keeps the format of its first words."""

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Open the file.

        Args:
            content: the file.
            most_bytes: bound of its unpacked size.

        Raises:
            DataError: it is no OpenDocument text, or too large.
        """
        check_archive(content, most_bytes)
        with needed_for("OpenDocument files"):
            import odfdo
        try:
            self._document: Final[Any] = odfdo.Document(io.BytesIO(content))
            paragraphs = self._document.body.get_elements("//text:p|//text:h")
            texts = [str(paragraph.inner_text) for paragraph in paragraphs]
        except Exception as error:  # any error of the parser: the file is not what it claims to be
            raise DataError(f"not a readable OpenDocument text ({type(error).__name__})") from None
        rows = [(paragraph, text) for paragraph, text in zip(paragraphs, texts, strict=True) if text.strip()]
        self._rows: Final[list[tuple[Any, str]]] = rows

    def paragraphs(self) -> list[str]:
        return [text for _, text in self._rows]

    def write(self, outputs: Sequence[str]) -> bytes:
        for (paragraph, _), output in zip(self._rows, outputs, strict=True):
            inner = paragraph.get_elements("descendant::*")
            holder = next((each for each in inner if (each.text or "").strip()), paragraph)
            holder = paragraph if (paragraph.text or "").strip() else holder
            for each in (paragraph, *inner):
                each.text = ""
            for each in inner:
                each.tail = ""
            holder.text = output
        written = io.BytesIO()
        self._document.save(written)
        return written.getvalue()


def decode_text(content: bytes) -> str:
    """Decode a text file.

    Args:
        content: UTF-8, with or without a byte order mark.

    Returns:
        The text, with line feeds as line ends.

    Raises:
        DataError: it is not UTF-8.
    """
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise DataError("not UTF-8 text; convert the file to UTF-8") from None


def check_archive(content: bytes, most_bytes: int) -> None:
    """Refuse an archive that unpacks to too much, before anything is unpacked.

    Args:
        content: a zip archive.
        most_bytes: bound of the unpacked size.

    Raises:
        DataError: it is no archive, too large, or has two members of one name.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise DataError("not a document of this kind") from None
    names = [member.filename for member in members]
    if len(set(names)) < len(names) or len(names) > 10_000:
        raise DataError("an archive with too many members, or two of one name")
    if sum(member.file_size for member in members) > most_bytes:
        raise DataError(f"its content exceeds {most_bytes} bytes")


def _text_start(lines: Sequence[str]) -> int:
    """Index of the first line of text, after a number and a line of times."""
    return next((index + 1 for index, line in enumerate(lines) if "-->" in line), 0)


FORMATS: Final[dict[str, type[DocumentFile]]] = {
    ".txt": TextFile,
    ".html": TextFile,
    ".srt": SubtitleFile,
    ".docx": WordFile,
    ".odt": OpenDocumentFile,
}
"""Reader of each file name's ending."""
