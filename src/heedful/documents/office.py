"""Word documents and PowerPoint presentations, in Office Open XML: runs of one format are inline tags.

Source: ECMA-376, part 1, 17.3 (paragraphs and runs of WordprocessingML) and 21.1.2 (those of DrawingML).
"""

import re
from abc import ABC
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Final, final

from heedful.documents.xml_parts import (
    MOST_AROUND,
    Item,
    Paragraph,
    XmlArchive,
    drop,
    elements_around,
    last_child,
    xml_library,
)

_WORD: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_DRAWING: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_SPACE: Final = "{http://www.w3.org/XML/1998/namespace}space"
_SPELLING: Final = frozenset(("lang", "noProof", "proofErr", "lastRenderedPageBreak"))
"""Elements that say what a spelling checker found, or where a page ended: they split runs, and mean nothing else."""
_LONGEST_FORMAT: Final = 4_000
"""Characters of a format of a run, with which it stays as it is; those of programs have a few hundred."""
_SPELLING_ATTRIBUTES: Final = ("lang", "altLang", "dirty", "err", "smtClean", "noProof")
_AROUND: Final = frozenset(
    ("hyperlink", "ins", "smartTag", "sdt", "sdtContent", "fldSimple", "customXml", "moveTo", "dir", "bdo")
)
"""Elements around runs."""


class OfficeFile(XmlArchive, ABC):
    """Document of either kind."""

    properties = "docProps/core.xml"
    namespace: ClassVar[str]
    """Prefix of the names of paragraphs, runs and texts."""

    def paragraphs(self, tree: Any) -> Iterator[Paragraph]:
        for element in [*tree.iter(f"{self.namespace}p")]:
            formats: dict[str, Any] = {}
            items = [*self._items(element, (), formats)]
            yield Paragraph(items, _Rewriter(element, self.namespace, formats).rewrite)

    def _items(self, element: Any, around: tuple[Any, ...], formats: dict[str, Any]) -> Iterator[Item]:
        for child in element:
            name = _local_name(child)
            if name == "r" and child.tag.startswith(self.namespace):
                properties = _plain(child.find(f"{self.namespace}rPr"))
                key = _key(properties)
                formats.setdefault(key, properties)
                # A long format would be copied into each run of a translation.
                whole = len(key) > _LONGEST_FORMAT
                yield from [Item("", child, around)] if whole else self._run_items(child, around, key)
            elif name == "br":  # DrawingML's; WordprocessingML has it within runs
                yield Item("", child, around, is_break=True)
            elif name in _AROUND and len(around) < MOST_AROUND:
                yield from self._items(child, (*around, child), formats)
            elif not (name.endswith("Pr") or name in _SPELLING):
                yield Item("", child, around)

    def _run_items(self, run: Any, around: tuple[Any, ...], key: str) -> Iterator[Item]:
        for child in run:
            name = _local_name(child)
            if name == "t":
                text = child.xpath("string()") if len(child) else child.text  # comments may stand in it
                yield Item(text or "", None, around, key)
            elif name in ("tab", "ptab"):
                yield Item("", child, around, key, ends=True, is_in_run=True)
            elif name == "cr" or (
                name == "br" and child.get(f"{self.namespace}type", "textWrapping") == "textWrapping"
            ):
                yield Item("", child, around, key, is_break=True, is_in_run=True)
            elif name == "br":
                yield Item("", child, around, key, ends=True, is_in_run=True)
            elif name != "rPr" and name not in _SPELLING:
                yield Item("", child, around, key, is_in_run=True)


@final
class WordFile(OfficeFile):
    """Word document: body, tables, text boxes, headers, footers, notes and title; comments stay as they are."""

    kind = "Word document"
    namespace = _WORD

    def parts(self, names: Sequence[str]) -> Iterable[str]:
        known = re.compile(r"word/(document|header\d*|footer\d*|footnotes|endnotes)\.xml")
        chosen = [name for name in names if known.fullmatch(name)]
        is_one = "word/document.xml" in chosen
        return sorted(chosen, key=lambda name: (name != "word/document.xml", name)) if is_one else ()


@final
class PresentationFile(OfficeFile):
    """PowerPoint presentation: slides with their tables and diagrams, notes and title; charts stay as they are."""

    kind = "PowerPoint presentation"
    namespace = _DRAWING

    def parts(self, names: Sequence[str]) -> Iterable[str]:
        known = re.compile(r"ppt/(slides/slide|notesSlides/notesSlide|diagrams/data)(\d+)\.xml")
        matches = [match for name in names if (match := known.fullmatch(name))]
        matches.sort(key=lambda match: (match[1] != "slides/slide", match[1], int(match[2][:9])))
        return [match[0] for match in matches]


@final
class _Rewriter:
    """Paragraph that is written again: its properties stay, its runs are made anew."""

    def __init__(self, paragraph: Any, namespace: str, formats: dict[str, Any]) -> None:
        self._paragraph: Final = paragraph
        self._namespace: Final = namespace
        self._formats: Final = formats

    def rewrite(self, items: Sequence[Item]) -> None:
        """Write items.

        Args:
            items: items of the paragraph, with elements that stood in it.
        """
        around = elements_around(self._paragraph, items)
        old = [child for element in around for child in element if not _local_name(child).endswith("Pr")]
        in_place: set[Any] = set()
        last: tuple[Any, str, Any] | None = None  # parent and format of the last run, and the run
        for item in items:
            parent = self._paragraph
            for element in item.around:
                if element not in in_place:
                    self._append(parent, element)
                    in_place.add(element)
                parent = element
            if item.element is None or item.is_in_run:
                key = str(item.format)
                if last is None or last[0] is not parent or last[1] != key:
                    last = parent, key, self._new_run(key)
                    self._append(parent, last[2])
                self._add_to_run(last[2], item)
            else:
                self._append(parent, item.element)
                in_place.add(item.element)
                last = None
        for child in old:
            if child not in in_place:
                drop(child)

    def _append(self, parent: Any, child: Any) -> None:
        """Append a child, before the properties that must be the last child."""
        final = last_child(parent)
        if final is not None and _local_name(final) == "endParaRPr":
            final.addprevious(child)
        else:
            parent.append(child)

    def _new_run(self, key: str) -> Any:
        run = self._paragraph.makeelement(f"{self._namespace}r")
        if self._formats.get(key) is not None:
            run.append(deepcopy(self._formats[key]))
        return run

    def _add_to_run(self, run: Any, item: Item) -> None:
        if item.element is not None:
            run.append(item.element)
            return
        text = self._paragraph.makeelement(f"{self._namespace}t")
        text.text = item.text
        if self._namespace == _WORD:
            text.set(_SPACE, "preserve")
        run.append(text)


def _local_name(element: Any) -> str:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _plain(properties: Any) -> Any:
    """Copy of a format without what a spelling checker found, or None if nothing is left."""
    if properties is None:
        return None
    plain = deepcopy(properties)
    for child in [*plain]:
        if _local_name(child) in _SPELLING:
            drop(child)
    for name in _SPELLING_ATTRIBUTES:
        plain.attrib.pop(name, None)
    plain.tail = None
    return plain if len(plain) or plain.attrib else None


def _key(properties: Any) -> str:
    return "" if properties is None else str(xml_library().tostring(properties, method="c14n").decode())
