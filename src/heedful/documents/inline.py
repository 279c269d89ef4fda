"""Passage builder: characters and inline elements are collected in the order of reading, and become a tagged text."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, final

from heedful.text.tagged_text import OUTERMOST, Tag, TaggedText, weave

Mark = TypeVar("Mark")


@dataclass
class _Element(Generic[Mark]):
    start: int
    end: int
    parent: int
    opening: Mark
    closing: Mark | None = None
    is_kept: bool = False
    is_break: bool = False


@final
class PassageBuilder(Generic[Mark]):
    """Passage that is being collected.

    Marks are what a format keeps of the edges of an element, such as the place of a tag in the file. An element of
    which one edge is missing, because it was never closed or never opened, becomes a point, so that what is written
    again has the same marks.
    """

    def __init__(self) -> None:
        """Begin an empty passage."""
        self._texts: Final[list[str]] = []
        self._size = 0
        self._elements: Final[list[_Element[Mark]]] = []
        self._open: Final[list[tuple[str, int]]] = []
        self._counts: Final[dict[str, int]] = {}
        self.has_text = False
        self.ending = ""
        """Last characters."""

    def add(self, text: str) -> None:
        """Add characters.

        Args:
            text: the characters.
        """
        self._texts.append(text)
        self._size += len(text)
        self.ending = (self.ending + text)[-4:]
        self.has_text = self.has_text or bool(text.strip())

    def begin(self, name: str, mark: Mark) -> None:
        """Begin an element.

        Args:
            name: name that its end will have.
        """
        self.point(mark)
        self._open.append((name, len(self._elements) - 1))
        self._counts[name] = self._counts.get(name, 0) + 1

    def point(self, mark: Mark, is_break: bool = False) -> None:
        """Add an element without text.

        Args:
            is_break: whether it divides lines.
        """
        parent = self._open[-1][1] if self._open else OUTERMOST
        self._elements.append(_Element(self._size, self._size, parent, mark, is_break=is_break))

    def keep(self, text: str, mark: Mark) -> None:
        """Add an element that stays as it is.

        Args:
            text: its characters, which are read as a part of the sentence.
        """
        self.point(mark)
        self.add(text)
        self._elements[-1].end = self._size
        self._elements[-1].is_kept = bool(text)

    def end(self, name: str, mark: Mark) -> None:
        """End the innermost element of a name; elements within it that did not end are points."""
        if not self._counts.get(name):
            self.point(mark)
            return
        while True:
            opened, index = self._open.pop()
            self._counts[opened] -= 1
            if opened == name:
                self._elements[index].end = self._size
                self._elements[index].closing = mark
                return

    def passage(self) -> "Passage[Mark]":
        """Finish the passage; spaces around it are no part of its text."""
        text = "".join(self._texts)
        first = len(text) - len(text.lstrip())
        size = len(text.strip())
        parents: list[int] = []
        tags: list[Tag] = []
        before = after = OUTERMOST  # elements between the text and a space at its edge
        for index, one in enumerate(self._elements):
            before = index if one.end < first else before
            after = index if one.start > first + size and after == OUTERMOST else after
            parent = one.parent
            if parent != OUTERMOST and self._elements[parent].closing is None:
                parent = parents[parent]  # the element around it never ended
            parents.append(parent)
            start, end = (min(max(offset - first, 0), size) for offset in (one.start, one.end))
            tags.append(Tag(start, end, parent, one.is_kept, one.is_break))
        marks = [(one.opening, one.closing) for one in self._elements]
        return Passage(TaggedText(text[first : first + size], tuple(tags)), marks, before, after)


@final
@dataclass(frozen=True)
class Passage(Generic[Mark]):
    """Passage of a document with the marks of its elements."""

    source: TaggedText
    marks: list[tuple[Mark, Mark | None]]
    """Edges of each tag, without a closing one for points and elements that are kept."""
    before: int = OUTERMOST
    """Index of the last tag before the text that a space divides from it, such as that of a picture."""
    after: int = OUTERMOST
    """Index of the first tag behind the text that a space divides from it."""

    @property
    def needs_translation(self) -> bool:
        """Whether there is text outside the elements that are kept."""
        offset = 0
        for tag in self.source.tags:
            if tag.is_kept:
                if self.source.text[offset : tag.start].strip():
                    return True
                offset = max(offset, tag.end)
        return bool(self.source.text[offset:].strip())

    def woven(self, output: TaggedText) -> "Iterator[str | tuple[Mark]]":
        """Merge a translation and the marks.

        Args:
            output: the translation with the same tags.

        Yields:
            Pieces of the translation, and marks, each in a tuple of its own. The text of elements that are kept is left
            out, because their marks include it. A space between the text and a tag at its edge is a piece.
        """
        occurrence = -1  # index of the kept element whose text is left out
        for piece in weave(output):
            if isinstance(piece, str):
                if occurrence < 0:
                    yield piece
                continue
            edge, index = piece
            opening, closing = self.marks[index]
            tag = output.tags[index]
            if index == self.after and edge != "close" and tag.start == len(output.text):
                yield " "
            if edge != "close":
                yield (opening,)
                if edge == "open" and self.source.tags[index].is_kept:
                    occurrence = index
            if edge != "open" and closing is not None:
                yield (closing,)
            if edge == "close" and occurrence == index:
                occurrence = -1
            if index == self.before and edge != "open" and tag.end == 0:
                yield " "
