"""Documents that are archives of XML parts, of which only those with text are written anew: all else stays to the byte.

A paragraph is a sequence of texts and elements, each within other elements, such as a link, and in a format. What is in
the format of most characters of a passage has no tag; other formats, and the elements around text, are inline tags.
"""

import io
import re
import zipfile
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import groupby
from typing import Any, ClassVar, Final, NamedTuple, final

from heedful.documents.archives import check_archive, copy_archive
from heedful.documents.inline import Passage, PassageBuilder
from heedful.documents.interface import DocumentFile
from heedful.documents.lines import goes_on
from heedful.errors import DataError, MissingExtra, needed_for
from heedful.text.tagged_text import TaggedText, weave
from heedful.text.xml_files import declared_codec

MOST_AROUND: Final = 32
"""Elements around a word, formats and links; what is nested deeper stays as it is, untranslated."""
BYTES_PER_TAG: Final = 20
"""Bytes of the bound of the unpacked size for each tag: a tag of a few bytes takes two hundred when it is parsed."""
_NAMESPACE: Final = re.compile(rb"\sxmlns:")
_MOST_NAMESPACES: Final = 200
"""Namespaces that one element may declare: each element below it is compared with all of them."""
_DUBLIN_CORE: Final = "{http://purl.org/dc/elements/1.1/}"
_TITLE: Final = re.compile(rb"title\b[^<>]*>\s*[^\s<]")
"""Title that is not blank."""
Format = Hashable
"""Format of characters: equal for those that look the same."""


class Item(NamedTuple):
    """Text, or an element without text, in a paragraph."""

    text: str
    element: Any
    """Element; None for text."""
    around: tuple[Any, ...]
    """Elements around it within the paragraph, outermost first."""
    format: Format = None
    ends: bool = False
    """Whether a passage ends here: at a tab, or at a line break after which no sentence goes on."""
    is_break: bool = False
    """Whether it is a line break, after which a sentence may go on."""
    is_in_run: bool = False
    """Whether the element stands in a run of characters, beside text of its format."""


class Paragraph(NamedTuple):
    """Paragraph of a part, and how it is written again."""

    items: list[Item]
    rewrite: Callable[[Sequence[Item]], None]


@dataclass
class _Run:
    """Items of one paragraph that are a passage, or stay."""

    items: list[Item]
    passage: Passage[Any] | None = None
    format: Format = None
    """Format of what has no tag."""


@final
class TextOfParagraphs:
    """Passages of a sequence of paragraphs."""

    def __init__(self, paragraphs: Iterable[Paragraph]) -> None:
        """Divide the paragraphs.

        Args:
            paragraphs: the paragraphs, in the order of reading.
        """
        divided = [(paragraph, [*_runs(paragraph.items)]) for paragraph in paragraphs]
        self._paragraphs: Final = [each for each in divided if any(run.passage for run in each[1])]

    @property
    def passages(self) -> list[TaggedText]:
        """Texts to translate with their inline tags."""
        return [run.passage.source for _, runs in self._paragraphs for run in runs if run.passage]

    def rewrite(self, outputs: Sequence[TaggedText]) -> None:
        """Write the paragraphs that change.

        Args:
            outputs: translation of each passage, with the same tags.
        """
        remaining = iter(outputs)
        for paragraph, runs in self._paragraphs:
            items: list[Item] = []
            is_changed = False
            for run in runs:
                output = next(remaining) if run.passage else None
                if run.passage and output is not None and output != run.passage.source:
                    is_changed = True
                    items += _rewritten(run, run.passage, output)
                else:
                    items += run.items
            if is_changed:
                paragraph.rewrite(items)


class XmlArchive(DocumentFile):
    """Archive with paragraphs in some of its XML parts."""

    kind: ClassVar[str]
    """Name of the format in messages."""
    properties: ClassVar[str]
    """Name of the member with the properties of the document, of which the title is translated."""

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Parse the parts with text.

        Args:
            most_bytes: bound of the unpacked size.

        Raises:
            DataError: it is no such document, or too large.
            MemoryError: it takes too much memory.
            MissingExtra: lxml is not installed.
        """
        check_archive(content, most_bytes)
        self._content: Final = content
        self._trees: Final[dict[str, Any]] = {}
        num_tags = 0
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                if damaged := archive.testzip():
                    raise DataError(f"not a readable {self.kind}: {damaged} is damaged")
                names = archive.namelist()
                for name in [*self.parts(names), *({self.properties} & {*names})]:
                    part = archive.read(name)
                    if name == self.properties and not _TITLE.search(part):
                        continue
                    num_tags += part.count(b"<")
                    if num_tags > most_bytes // BYTES_PER_TAG:
                        raise DataError(f"it has more than {most_bytes // BYTES_PER_TAG:,} tags; divide it")
                    try:
                        self._trees[name] = parse_xml(part)
                    except ValueError as error:
                        if name == self.properties:
                            continue  # programs open the document all the same
                        raise DataError(f"not a readable {self.kind}: {name}: {error}") from None
        except (DataError, MissingExtra, MemoryError):
            raise
        except Exception as error:  # any error of the decompressors: the file is not what it claims to be
            raise DataError(f"not a readable {self.kind} ({type(error).__name__})") from None
        if self._trees.keys() <= {self.properties}:
            raise DataError(f"not a readable {self.kind}: it has no part with text")
        self._text: Final = TextOfParagraphs(
            each
            for name, tree in self._trees.items()
            for each in (_titles(tree) if name == self.properties else self.paragraphs(tree))
        )

    @abstractmethod
    def parts(self, names: Sequence[str]) -> Iterable[str]:
        """Choose the parts with text.

        Returns:
            Names of members, in the order of reading.
        """

    @abstractmethod
    def paragraphs(self, tree: Any) -> Iterator[Paragraph]:
        """Find the paragraphs of a part.

        Yields:
            The paragraphs, in the order of reading.
        """

    @property
    def passages(self) -> list[TaggedText]:
        return self._text.passages

    def write(self, outputs: Sequence[TaggedText]) -> bytes:
        self._text.rewrite(outputs)
        return copy_archive(self._content, {name: write_xml(tree) for name, tree in self._trees.items()})


def _titles(properties: Any) -> Iterator[Paragraph]:
    """Titles among the properties of a document."""
    for element in [*properties.iter(f"{_DUBLIN_CORE}title")]:
        if len(element) == 0:
            yield Paragraph([Item(element.text or "", None, ())], partial(rewrite_mixed, element))


def xml_library() -> Any:
    """Import lxml's element trees.

    Raises:
        MissingExtra: lxml is not installed.
    """
    with needed_for("documents"):
        return import_module("lxml.etree")


def parse_xml(content: bytes) -> Any:
    """Parse an XML part.

    Raises:
        ValueError: it is no XML, declares an encoding that no file is read in, is not in the encoding that it
            declares, declares entities, which may grow without bound, or very many namespaces.
        MissingExtra: lxml is not installed.
    """
    etree = xml_library()
    codec = declared_codec(content)
    if codec:
        content = content.decode(codec).encode()
    plain = content.replace(b"\0", b"")  # of UTF-16
    if plain.count(b"xmlns:") > _MOST_NAMESPACES and any(
        len(_NAMESPACE.findall(tag)) > _MOST_NAMESPACES for tag in plain.split(b"<")
    ):
        raise ValueError(f"an element declares more than {_MOST_NAMESPACES} namespaces")
    encoding = "utf-8" if codec else None
    parser = etree.XMLParser(
        encoding=encoding, resolve_entities=False, no_network=True, load_dtd=False, remove_blank_text=False
    )
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from None
    if root.getroottree().docinfo.doctype and root.getroottree().docinfo.internalDTD is not None:
        if any(True for _ in root.getroottree().docinfo.internalDTD.iterentities()):
            raise ValueError("it declares entities")
    return root


def write_xml(root: Any) -> bytes:
    """Write an XML part.

    Returns:
        The part in UTF-8.
    """
    etree = xml_library()
    written: bytes = etree.tostring(root.getroottree(), xml_declaration=True, encoding="UTF-8", standalone=True)
    return written


def rewrite_mixed(paragraph: Any, items: Sequence[Item]) -> None:
    """Write a paragraph whose text stands between its elements."""
    around = elements_around(paragraph, items)
    elements = {*around, *(item.element for item in items)}
    for element in around:
        element.text = None
        for child in [*element]:
            child.tail = None
            if child not in elements:
                drop(child)
    before: dict[Any, Any] = {}  # last child of each element that stands in its place again
    for (path, is_text), group in groupby(items, key=lambda item: (item.around, item.element is None)):
        parent = paragraph
        for element in path:
            if element not in before:
                parent.append(element)
                before[parent], before[element] = element, None
            parent = element
        if not is_text:
            for item in group:
                parent.append(item.element)
                before[parent] = item.element
        elif (child := before.get(parent)) is not None:
            child.tail = "".join([child.tail or "", *(item.text for item in group)])
        else:
            parent.text = "".join([parent.text or "", *(item.text for item in group)])


def elements_around(paragraph: Any, items: Sequence[Item]) -> list[Any]:
    """List a paragraph and the elements around its items."""
    elements: dict[Any, None] = {paragraph: None}
    for around, _ in groupby(items, key=lambda item: item.around):
        elements |= dict.fromkeys(around)
    return [*elements]


def drop(element: Any) -> None:
    """Remove an element and all that is in it.

    It is emptied first, because the time in which lxml takes an element out of its tree grows with the square of the
    number of elements below it. For the same reason elements are moved while they stand in the tree.
    """
    parent = element.getparent()
    element.clear()
    parent.remove(element)


def last_child(element: Any) -> Any:
    """Last child of an element, or None, without counting the others: `len` goes through all of them."""
    return next(element.iterchildren(reversed=True), None)


def _runs(items: Sequence[Item]) -> Iterator[_Run]:
    """Passages of a paragraph, and what stays between them."""
    start = 0
    before = ""
    following = _following_texts(items)
    for index, item in enumerate(items):
        if item.ends or (item.is_break and not goes_on(before, following[index])):
            yield from _trimmed(items[start:index])
            yield _Run([item])
            start, before = index + 1, ""
        before = item.text[-8:] if item.text.strip() else before
    yield from _trimmed(items[start:])


def _following_texts(items: Sequence[Item]) -> list[str]:
    """Beginning of the text behind each item."""
    following: list[str] = []
    text = ""
    for item in reversed(items):
        following.append(text)
        text = item.text.lstrip()[:8] or text
    return following[::-1]


def _trimmed(items: Sequence[Item]) -> Iterator[_Run]:
    """A passage without the elements and spaces at its ends, which stay."""
    texts = [index for index, item in enumerate(items) if item.text.strip()]
    if not texts:
        if items:
            yield _Run([*items])
        return
    first, last = texts[0], texts[-1]
    middle = [*items[first : last + 1]]
    begin, end = middle[0].text, middle[-1].text
    before = [*items[:first], middle[0]._replace(text=begin[: len(begin) - len(begin.lstrip())])]
    after = [middle[-1]._replace(text=end[len(end.rstrip()) :]), *items[last + 1 :]]
    middle[0] = middle[0]._replace(text=middle[0].text.lstrip())
    middle[-1] = middle[-1]._replace(text=middle[-1].text.rstrip())
    yield _Run([item for item in before if item.text or item.element is not None])
    yield _passage(middle)
    yield _Run([item for item in after if item.text or item.element is not None])


@final
@dataclass(frozen=True, eq=False)
class _Wrapper:
    """Element around some items, or their format."""

    element: Any = None
    format: Format = None

    def is_same(self, other: "_Wrapper") -> bool:
        return self.element is other.element and self.format == other.format


_CLOSED: Final = True
"""Mark of the end of an element, whose beginning says all."""


def _passage(items: Sequence[Item]) -> _Run:
    sizes: Counter[Format] = Counter()
    for item in items:
        sizes[item.format] += len(item.text)
    usual = max(sizes, key=lambda each: sizes[each])
    builder: PassageBuilder[Any] = PassageBuilder()
    common = _common(items)
    opened: list[_Wrapper] = []
    for item in items:
        wrappers = [_Wrapper(element) for element in item.around[common:]]
        if item.element is None and item.format != usual:
            wrappers.append(_Wrapper(format=item.format))
        shared = 0
        while shared < min(len(opened), len(wrappers)) and opened[shared].is_same(wrappers[shared]):
            shared += 1
        while len(opened) > shared:
            opened.pop()
            builder.end(str(len(opened)), _CLOSED)
        for wrapper in wrappers[shared:]:
            builder.begin(str(len(opened)), wrapper)
            opened.append(wrapper)
        if item.element is None:
            builder.add(item.text)
        else:
            builder.point(item, is_break=item.is_break)
            if item.is_break:
                builder.add(" ")
    while opened:
        opened.pop()
        builder.end(str(len(opened)), _CLOSED)
    return _Run([*items], builder.passage(), usual)


def _common(items: Sequence[Item]) -> int:
    """Number of elements that are around all items."""
    first, last = items[0].around, items[-1].around
    if first is last:  # words between two breaks, in one element
        return len(first)
    shared = 0
    while shared < min(len(first), len(last)) and first[shared] is last[shared]:
        shared += 1
    # An element that is around the first and the last item is around those between.
    return shared


def _rewritten(run: _Run, passage: Passage[Any], output: TaggedText) -> Iterator[Item]:
    """Items of a translated passage."""
    around = run.items[0].around[: _common(run.items)]
    opened: list[_Wrapper] = []
    is_after_break = False
    for piece in weave(output):
        if isinstance(piece, str):
            wrapped = (*around, *(one.element for one in opened if one.element is not None))
            formats = [one.format for one in opened if one.element is None]
            text = piece.lstrip() if is_after_break else piece
            is_after_break = is_after_break and not text
            if text:
                yield Item(text, None, wrapped, formats[-1] if formats else run.format)
            continue
        edge, index = piece
        mark = passage.marks[index][0]
        if edge == "point" and isinstance(mark, Item):
            wrapped = (*around, *(one.element for one in opened if one.element is not None))
            is_after_break = mark.is_break
            yield mark._replace(around=wrapped)
        elif edge == "point" and mark.element is not None:  # an element whose words have no counterpart
            wrapped = (*around, *(one.element for one in opened if one.element is not None), mark.element)
            yield Item("", None, wrapped, run.format)
        elif edge == "open":
            opened.append(mark)
        elif edge == "close":
            opened.pop()
