"""XLIFF 1.1, 1.2 and 2.0: the source of each unit that has no translation is translated into its target."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Final, final

from heedful.documents.interface import DocumentFile
from heedful.documents.xml_heads import with_head
from heedful.documents.xml_parts import (
    MOST_AROUND,
    Item,
    Paragraph,
    TextOfParagraphs,
    drop,
    parse_xml,
    rewrite_mixed,
    write_xml,
)
from heedful.errors import DataError
from heedful.text.tagged_text import TaggedText
from heedful.text.xml_files import declared_codec

_UNITS: Final = {
    "{urn:oasis:names:tc:xliff:document:1.1}": "trans-unit",
    "{urn:oasis:names:tc:xliff:document:1.2}": "trans-unit",
    "{urn:oasis:names:tc:xliff:document:2.0}": "segment",
}
"""Name of the element with a source and a target, by the namespace of the version."""
_AROUND: Final = frozenset(("g", "pc", "mrk"))
"""Elements around text; all others are codes without text."""


@final
class XliffFile(DocumentFile):
    """Translation file of either version."""

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Read the units.

        Raises:
            DataError: it is no XLIFF of these versions, or too large.
            MissingExtra: lxml is not installed.
        """
        if len(content) > most_bytes:
            raise DataError(f"its content exceeds {most_bytes} bytes")
        try:
            self._root: Final = parse_xml(content)
        except ValueError as error:
            raise DataError(f"not readable XML: {error}") from None
        namespace = str(self._root.tag).rpartition("}")[0] + "}"
        if namespace not in _UNITS:
            raise DataError("not XLIFF 1.1, 1.2 or 2.0")
        self._content: Final = content
        self._namespace: Final = namespace
        self._text: Final = TextOfParagraphs(self._targets())

    def _targets(self) -> Iterator[Paragraph]:
        name = f"{self._namespace}{_UNITS[self._namespace]}"
        for unit in [*self._root.iter(name)]:
            if next(unit.iterancestors(name), None) is not None:
                continue  # a part of the text of another, which is copied with it
            source, target = unit.find(f"{self._namespace}source"), unit.find(f"{self._namespace}target")
            is_done = target is not None and "".join(target.itertext()).strip()
            marks = [each.get("translate") for each in (unit, *unit.iterancestors())]
            if source is None or is_done or next((mark for mark in marks if mark), "yes") == "no":
                continue
            if target is not None:
                drop(target)
            target = deepcopy(source)
            target.tag = f"{self._namespace}target"
            source.addnext(target)
            yield Paragraph(_items(target), partial(rewrite_mixed, target))

    @property
    def passages(self) -> list[TaggedText]:
        return self._text.passages

    def write(self, outputs: Sequence[TaggedText]) -> bytes:
        self._text.rewrite(outputs)
        encoding = declared_codec(self._content) or self._root.getroottree().docinfo.encoding or "UTF-8"
        return with_head(write_xml(self._root), self._content, encoding)


def _items(target: Any) -> list[Item]:
    items: list[Item] = []
    _read(target, (), items)
    return items


def _read(element: Any, around: tuple[Any, ...], items: list[Item]) -> None:
    """Append the items of an element to a list: a generator would pass each one through all elements around it."""
    if element.text:
        items.append(Item(element.text, None, around))
    for child in element:
        if str(child.tag).rpartition("}")[2] in _AROUND and len(around) < MOST_AROUND:
            _read(child, (*around, child), items)
        else:
            items.append(Item("", child, around))
        if child.tail:
            items.append(Item(child.tail, None, around))
