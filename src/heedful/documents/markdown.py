"""Markdown: paragraphs, headings, items and cells are passages; emphasis, links and HTML are inline tags.

Blocks are found by markdown-it (CommonMark with tables); all that is not translated stays to the character.
"""

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import accumulate
from typing import Final, NamedTuple, final

from heedful.documents.inline import Passage, PassageBuilder
from heedful.documents.interface import DocumentFile, decode_text
from heedful.documents.lines import goes_on
from heedful.text.tagged_text import TaggedText

_FRONT_MATTER: Final = re.compile(r"---[ \t]*+\n.*?\n---[ \t]*+(?:\n|\Z)", re.DOTALL)
_MARK: Final = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<code>`++)"
    r"|(?P<link>!?\[)"
    r"|(?P<target>\]\((?:[^()\\\n]|\\.|\([^()\\\n]*+\))*+\)|\]\[[^\[\]\n]*+\])"
    r"|(?P<address><[A-Za-z][A-Za-z0-9+.-]*+:[^<>\s]*+>|<[^<>@\s]++@[^<>@\s]++>)"
    r"|(?P<tag></?(?P<name>[A-Za-z][A-Za-z0-9-]*+)[^<>]*+>)"
    r"|(?P<emphasis>\*++|_++|~~)"
)
_FIRST: Final = frozenset("0123456789-+#=")
_SPECIAL: Final = re.compile(r"[\\`*\[\]<>~|]|(?<![^\W_])_|_(?![^\W_])|&(?=[#A-Za-z])")
_NUMBER: Final = re.compile(r"\d{1,9}")


class _Region(NamedTuple):
    """Passage and its place in the document."""

    passage: Passage[str]
    start: int
    end: int


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
        return [region.passage.source for region in self._regions]

    def write(self, outputs: Sequence[TaggedText]) -> bytes:
        written: list[str] = []
        offset = 0
        for region, output in zip(self._regions, outputs, strict=True):
            if output == region.passage.source:
                continue
            if region.passage.marks:
                woven = region.passage.woven(output)
                text = "".join(_escaped(piece) if isinstance(piece, str) else piece[0] for piece in woven)
            else:
                text = _escaped(output.text)
            written += [self._document[offset : region.start], _as_paragraph(text)]
            offset = region.end
        return "".join([*written, self._document[offset:]]).encode("utf-8")

    def _read(self) -> Iterator[_Region]:
        document = self._document
        front = _FRONT_MATTER.match(document)
        skipped = front.end() if front else 0
        # Lines of the front matter are blank for the parser, so that lines keep their numbers.
        text = "\n" * document.count("\n", 0, skipped) + document[skipped:]
        starts = [0, *accumulate(len(line) + 1 for line in document.split("\n"))]
        cursors = [*starts]  # of each line, the end of what was found in it
        starts += [starts[-1]] * 2
        for first, content in import_module("heedful.documents.markdown_blocks").text_blocks(text):
            spans: list[tuple[int, int]] = []
            for number, own_line in enumerate(content.split("\n"), first):
                line = own_line.strip()
                start = document.find(line, cursors[number], starts[number + 1])
                if start < 0:
                    break
                cursors[number] = end = start + len(line)
                spans.append((start, end))
            yield from self._passages(spans)

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
            passage = _inline(" ".join(lines))
            if passage.needs_translation:
                yield _Region(passage, spans[first][0], stop)
            first = index
            lines = []


def _inline(text: str) -> Passage[str]:
    """Passage of a text with marks."""
    match = _MARK.search(text)
    if match is None:
        return Passage(TaggedText(text.strip()), [])
    builder: PassageBuilder[str] = PassageBuilder()
    codes = _code_ends(text)
    offset = 0
    emphasis: list[str] = []
    num_links = 0
    last_target = max(text.rfind("]("), text.rfind("]["))
    while match is not None:
        builder.add(text[offset : match.start()])
        offset = match.end()
        mark = match[0]
        if match["escape"]:
            builder.add(mark[1])
        elif match["code"]:
            if end := codes.get(match.start()):
                builder.keep(text[match.end() : end - len(mark)].strip(), text[match.start() : end])
                offset = end
            else:
                builder.add(mark)
        elif match["link"] and match.start() < last_target:
            builder.begin("link", mark)
            num_links += 1
        elif match["target"] and num_links:
            builder.end("link", mark)
            num_links -= 1
        elif match["address"]:
            builder.keep(mark[1:-1], mark)
        elif match["tag"]:
            (builder.end if mark.startswith("</") else builder.begin)(f"<{match['name']}", mark)
        elif match["emphasis"]:
            before, after = text[match.start() - 1 : match.start()], text[offset : offset + 1]
            is_word = mark[0] == "_" and before.isalnum() and after.isalnum()
            if emphasis and emphasis[-1] == mark and not before.isspace() and not is_word:
                builder.end(emphasis.pop(), mark)
            elif after.strip() and not is_word:
                emphasis.append(mark)
                builder.begin(mark, mark)
            else:
                builder.add(mark)
        else:
            builder.add(mark)
        match = _MARK.search(text, offset)
    builder.add(text[offset:])
    return builder.passage()


def _code_ends(text: str) -> dict[int, int]:
    """End of the code that begins at each run of backticks: behind the next run of the same length."""
    ends: dict[int, int] = {}
    following: dict[int, int] = {}
    for run in reversed([*re.finditer(r"`++", text)]):
        size = len(run[0])
        if size in following:
            ends[run.start()] = following[size]
        following[size] = run.end()
    return ends


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: "\\" + match[0], text)


def _as_paragraph(text: str) -> str:
    """Text that begins no heading, list or quotation."""
    if text[:1] not in _FIRST:
        return text
    number = _NUMBER.match(text)
    if number and text[number.end() : number.end() + 1] in (".", ")"):
        return f"{text[: number.end()]}\\{text[number.end() :]}"
    return "\\" + text if text[:1] in ("-", "+", "#", "=") else text
