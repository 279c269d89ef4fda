"""Markdown: paragraphs, headings, items, notes, cells and HTML are passages; emphasis, links and HTML are inline tags.

Blocks are found by markdown-it; all that is not translated stays to the character.
"""

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import accumulate
from typing import Final, NamedTuple, final

from heedful.documents.html import HtmlMarkup
from heedful.documents.interface import DocumentFile, decode_text
from heedful.documents.lines import goes_on
from heedful.documents.markdown_inline import MarkedText, marked_text
from heedful.documents.markup_rules import HTML
from heedful.text.tagged_text import TaggedText

_FRONT_MATTER: Final = re.compile(r"---[ \t]*+\n.*?\n---[ \t]*+(?:\n|\Z)", re.DOTALL)
_IMAGE: Final = re.compile(r"!\[([^\[\]\\\n]*+)\]\([^()\s\\]*+(?: \"[^\"\n]*+\")?\)[ \t]*+")
_FIRST_TAG: Final = re.compile(r"[ \t]*+</?([A-Za-z][A-Za-z0-9-]*+)")


class _Region(NamedTuple):
    """Passage and its place in the document."""

    text: MarkedText
    start: int
    end: int


class _HtmlRegion(NamedTuple):
    """Block of HTML and its place in the document."""

    markup: HtmlMarkup
    start: int
    end: int
    line_break: str
    """Line feed and the marks before the next line."""


@final
class MarkdownFile(DocumentFile):
    """Markdown, with YAML in front of it left as it is."""

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Read the file.

        Args:
            most_bytes: bound of its unpacked size.
        """
        # Line ends and NUL as the parser has them.
        self._document: Final = decode_text(content).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
        self._regions: Final = [*self._read()]

    @property
    def passages(self) -> list[TaggedText]:
        passages: list[TaggedText] = []
        for region in self._regions:
            if isinstance(region, _Region):
                passages.append(region.text.passage.source)
            else:
                passages += region.markup.passages
        return passages

    def write(self, outputs: Sequence[TaggedText]) -> bytes:
        written: list[str] = []
        offset = first = 0
        for region in self._regions:
            if isinstance(region, _Region):
                output = outputs[first]
                first += 1
                if output == region.text.passage.source:
                    continue
                text = region.text.written(output)
            else:
                passages = region.markup.passages
                own = outputs[first : first + len(passages)]
                first += len(passages)
                if [*own] == passages:
                    continue
                text = region.markup.write(own).replace("\n", region.line_break)
            written += [self._document[offset : region.start], text]
            offset = region.end
        return "".join([*written, self._document[offset:]]).encode("utf-8")

    def _read(self) -> Iterator[_Region | _HtmlRegion]:
        document = self._document
        front = _FRONT_MATTER.match(document)
        skipped = front.end() if front else 0
        # Lines of the front matter are blank for the parser, so that lines keep their numbers.
        num_lines = document.count("\n", 0, skipped)
        text = "\n" * num_lines + document[skipped:]
        starts = [0, *accumulate(len(line) + 1 for line in document.split("\n"))]
        cursors = [*starts]  # of each line, the end of what was found in it
        starts += [starts[-1]] * 2
        for line, content, first, is_html in import_module("heedful.documents.markdown_blocks").text_blocks(text):
            own_lines = content.rstrip("\n").split("\n")
            if is_html:
                yield from self._html(own_lines, starts[line : line + len(own_lines) + 1])
                continue
            if first:
                cursors[line] = first - num_lines + skipped
            spans: list[tuple[int, int]] = []
            for number, own_line in enumerate(own_lines, line):
                own = own_line.strip()
                start = document.find(own, cursors[number], starts[number + 1])
                if start < 0:
                    break
                cursors[number] = end = start + len(own)
                spans.append((start, end))
            yield from self._leading_images(spans)
            if len(spans) == 1:  # as of a cell, of which there are very many
                start, end = spans[0]
                yield from self._passage(document[start:end].removesuffix("\\"), start)
            else:
                yield from self._passages(spans)

    def _leading_images(self, spans: list[tuple[int, int]]) -> Iterator[_Region]:
        """Descriptions of images before the text of a block, which then begins behind them."""
        while spans and (image := _IMAGE.match(self._document, *spans[0])):
            yield from self._passage(image[1], image.start(1))
            spans[:1] = [(image.end(), spans[0][1])] if image.end() < spans[0][1] else []

    def _passage(self, line: str, start: int) -> Sequence[_Region]:
        text = marked_text(line)
        return (_Region(text, start, start + len(line)),) if text.passage.needs_translation else ()

    def _html(self, lines: Sequence[str], starts: Sequence[int]) -> Iterator[_HtmlRegion]:
        """Passages of a block of HTML; it stays where marks before its lines differ."""
        document = self._document
        own_starts = [stop - 1 - len(line) for line, stop in zip(lines, starts[1:], strict=False)]
        prefixes = {document[start:own_start] for start, own_start in zip(starts[1:], own_starts[1:], strict=False)}
        if len(prefixes) > 1 or any(
            not document.startswith(line, max(own_start, start))
            for line, own_start, start in zip(lines, own_starts, starts, strict=False)
        ):
            return
        # A tag of a sentence begins a block only while it is alone in its line.
        tag = _FIRST_TAG.match(lines[0])
        is_whole = tag is None or tag[1].lower() in HTML.blocks | HTML.opaque
        first = 0 if is_whole else 1
        if first == len(lines):
            return
        markup = HtmlMarkup("\n".join(lines[first:]))
        line_break = "\n" + "".join(prefixes)
        yield _HtmlRegion(markup, own_starts[first], own_starts[len(lines) - 1] + len(lines[-1]), line_break)

    def _passages(self, spans: Sequence[tuple[int, int]]) -> Iterator[_Region]:
        """Lines of a block; a line that was broken by hand ends a passage, unless its sentence goes on."""
        document = self._document
        lines: list[str] = []
        first = 0
        for index, (start, end) in enumerate(spans, 1):
            has_backslash = document.endswith("\\", start, end)
            stop = end - 1 if has_backslash else end
            lines.append(document[start:stop])
            if index < len(spans):
                is_broken = has_backslash or document.startswith("  ", end)
                following = spans[index][0]
                if not is_broken or goes_on(document[max(0, end - 8) : stop], document[following : following + 1]):
                    continue
            text = marked_text(" ".join(lines))
            if text.passage.needs_translation:
                yield _Region(text, spans[first][0], stop)
            first = index
            lines = []
