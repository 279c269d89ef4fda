"""Documents as paragraphs: plain text, HTML, SubRip subtitles, Word and OpenDocument, taken apart and written again."""

import io
import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

from heedful.errors import DataError, MissingExtra, needed_for
from heedful.serving.markup import Node


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
    """SubRip subtitles; numbers, times and tags stay, and the lines of a subtitle are translated together."""

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Decode the file.

        Args:
            content: the file.
            most_bytes: bound of its unpacked size.
        """
        blocks = re.split(r"\n{2,}", decode_text(content).strip("\n"))
        self._nodes: Final = [node for block in blocks for node in _subtitle_nodes(block)]

    def paragraphs(self) -> list[str]:
        return [node.text for node in self._nodes if node.is_text]

    def write(self, outputs: Sequence[str]) -> bytes:
        remaining = iter(outputs)
        text = "".join(next(remaining) if node.is_text else node.text for node in self._nodes)
        return (text.rstrip("\n") + "\n").encode("utf-8")


class MarkedFile(DocumentFile):
    """Document of XML elements; a paragraph keeps the format of its first words.

    A paragraph is a list of slots in the XML, and ends at a line break or a tab too, so that these stay.
    """

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Open the file.

        Args:
            content: the file.
            most_bytes: bound of its unpacked size.

        Raises:
            DataError: it is no such document, or too large.
            MissingExtra: the library that reads it is not installed.
        """
        check_archive(content, most_bytes)
        try:
            paragraphs = [[*paragraph] for paragraph in self._open(io.BytesIO(content))]
        except MissingExtra:
            raise
        except Exception as error:  # any error of the parser: the file is not what it claims to be
            raise DataError(f"not a readable {self.kind} ({type(error).__name__})") from None
        self._paragraphs: Final = [each for each in paragraphs if "".join(slot.text for slot in each).strip()]

    kind: ClassVar[str]
    """Name of the format in messages."""

    @abstractmethod
    def _open(self, content: io.BytesIO) -> Iterable[list["TextSlot"]]:
        """Parse the document and give the slots of each paragraph."""

    @abstractmethod
    def _save(self, content: io.BytesIO) -> None:
        """Write the document."""

    def paragraphs(self) -> list[str]:
        return ["".join(slot.text for slot in paragraph) for paragraph in self._paragraphs]

    def write(self, outputs: Sequence[str]) -> bytes:
        for paragraph, output in zip(self._paragraphs, outputs, strict=True):
            first = next(index for index, slot in enumerate(paragraph) if slot.text.strip())
            for index, slot in enumerate(paragraph):
                slot.text = output if index == first else ""
        written = io.BytesIO()
        self._save(written)
        return written.getvalue()


@final
@dataclass
class TextSlot:
    """Text of an XML element, or the text that follows its end."""

    element: Any
    is_tail: bool = False

    @property
    def text(self) -> str:
        """The characters, which can be set."""
        return str((self.element.tail if self.is_tail else self.element.text) or "")

    @text.setter
    def text(self, text: str) -> None:
        setattr(self.element, "tail" if self.is_tail else "text", text)


@final
class WordFile(MarkedFile):
    """Word document: body, tables, text boxes, headers and footers; notes and comments stay as they are."""

    kind = "Word document"

    def _open(self, content: io.BytesIO) -> Iterable[list[TextSlot]]:
        with needed_for("Word documents"):
            import docx
            from docx.oxml.ns import qn
        self._document: Any = docx.Document(content)
        parts = [self._document.element.body]
        for section in self._document.sections:
            parts += [each._element for each in (section.header, section.footer) if not each.is_linked_to_previous]
        text = qn("w:t")
        for part in parts:
            # The text around the anchor of a text box is one paragraph, which the paragraphs of the box interrupt.
            paragraphs: list[list[TextSlot]] = []
            unended: dict[Any, list[TextSlot]] = {}
            for element in part.iter(text, *map(qn, ("w:br", "w:cr", "w:tab"))):
                owner = next(element.iterancestors(qn("w:p")), None)
                if element.tag != text:
                    unended.pop(owner, None)
                    continue
                if owner not in unended:
                    unended[owner] = []
                    paragraphs.append(unended[owner])
                element.set(qn("xml:space"), "preserve")
                unended[owner].append(TextSlot(element))
            yield from paragraphs

    def _save(self, content: io.BytesIO) -> None:
        self._document.save(content)


@final
class OpenDocumentFile(MarkedFile):
    """OpenDocument text: the body with its tables, notes and frames; headers and footers stay as they are."""

    kind = "OpenDocument text"

    def _open(self, content: io.BytesIO) -> Iterable[list[TextSlot]]:
        with needed_for("OpenDocument files"):
            import odfdo
        self._document: Any = odfdo.Document(content)
        for each in self._document.body.get_elements("//text:p|//text:h"):
            slots: list[TextSlot] = []
            for slot in _slots(each):
                if slot is None:
                    yield slots
                    slots = []
                else:
                    slots.append(slot)
            yield slots

    def _save(self, content: io.BytesIO) -> None:
        self._document.save(content)


def _slots(element: Any) -> Iterator[TextSlot | None]:
    """Places inside an OpenDocument element in the order of reading; None where a part of the text ends."""
    yield TextSlot(element)
    for child in element.children:
        if child.tag in ("text:line-break", "text:tab", "text:note", "office:annotation", "draw:frame"):
            yield None  # the paragraphs in notes and frames are found by themselves
        else:
            yield from _slots(child)
        yield TextSlot(child, is_tail=True)


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


def _subtitle_nodes(block: str) -> Iterator[Node]:
    lines = block.split("\n")
    start = next((index + 1 for index, line in enumerate(lines) if "-->" in line), 0)
    yield Node("".join(f"{line}\n" for line in lines[:start]), is_text=False)
    text = re.sub(r"\n(?!\s*[-–—])", " ", "\n".join(lines[start:]))  # a line of another speaker stays a line
    for index, piece in enumerate(re.split(r"((?:<[^<>]*>|\{[^{}]*\})+)", text)):
        yield Node(piece, is_text=index % 2 == 0 and bool(piece.strip()))
    yield Node("\n\n", is_text=False)


FORMATS: Final[dict[str, Callable[[bytes, int], DocumentFile]]] = {
    ".txt": TextFile,
    ".html": TextFile,
    ".srt": SubtitleFile,
    ".docx": WordFile,
    ".odt": OpenDocumentFile,
}
"""Reader of each file name's ending."""
