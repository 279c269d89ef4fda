"""OpenDocument texts and presentations: spans and links are inline tags.

Source: OpenDocument 1.3, part 3, 6.1 (text content).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, final

from heedful.documents.xml_parts import MOST_AROUND, Item, Paragraph, XmlArchive, rewrite_mixed

_TEXT: Final = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE: Final = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_CELLS: Final = frozenset((f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"))
_VALUE: Final = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}string-value"
_AROUND: Final = frozenset(f"{_TEXT}{name}" for name in ("span", "a", "meta", "meta-field", "ruby", "ruby-base"))
_SPACE: Final = re.compile(r"[\t\n\r ]+")


@final
class OpenDocumentFile(XmlArchive):
    """OpenDocument text or presentation: its content, the headers and footers of its page styles, and its title."""

    kind = "OpenDocument file"
    properties = "meta.xml"

    def parts(self, names: Sequence[str]) -> Iterable[str]:
        return [name for name in ("content.xml", "styles.xml") if name in names] if "content.xml" in names else ()

    def paragraphs(self, tree: Any) -> Iterator[Paragraph]:
        for element in [*tree.iter(f"{_TEXT}p", f"{_TEXT}h")]:
            yield Paragraph(_items(element), partial(_rewrite, element))


def _rewrite(paragraph: Any, items: Sequence[Item]) -> None:
    """Write a paragraph; a cell has its text in an attribute too, which programs would read in place of it."""
    rewrite_mixed(paragraph, items)
    cell = next((one for one in islice(paragraph.iterancestors(), MOST_AROUND) if one.tag in _CELLS), None)
    if cell is not None:
        cell.attrib.pop(_VALUE, None)


def _items(paragraph: Any) -> list[Item]:
    items: list[Item] = []
    _read(paragraph, (), items)
    return items


def _read(element: Any, around: tuple[Any, ...], items: list[Item]) -> None:
    """Append the items of an element to a list: a generator would pass each one through all elements around it."""
    if element.text:
        items.append(Item(_SPACE.sub(" ", element.text), None, around))
    for child in element:
        if child.tag in _AROUND and len(around) < MOST_AROUND:
            _read(child, (*around, child), items)
        elif child.tag == f"{_TEXT}s":
            items.append(Item(" ", None, around))
        elif child.tag == f"{_TEXT}line-break":
            items.append(Item("", child, around, is_break=True))
        else:
            items.append(Item("", child, around, ends=child.tag == f"{_TEXT}tab"))
        if child.tail:
            items.append(Item(_SPACE.sub(" ", child.tail), None, around))
