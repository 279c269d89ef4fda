"""Blocks of a Markdown document that hold text, found by markdown-it (CommonMark with tables, notes and callouts)."""

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from heedful.documents.markdown_rules import MARKS, LayoutState, add_rules

_MARKS_OF_RULES: Final = {
    "table": ("|",),
    "code": ("\t", "    "),
    "fence": ("```", "~~~"),
    "blockquote": (">",),
    "hr": ("-", "*", "_"),
    "list": ("-", "+", "*", ".", ")"),
    "reference": ("[",),
    "html_block": ("<",),
    "heading": ("#",),
    "lheading": ("=", "-"),
    **MARKS,
}
"""Rules of blocks, and texts of which each needs one in the document; a rule that cannot apply is asked at no line."""


class Block(NamedTuple):
    """Block with text."""

    line: int
    """Its first line in the document."""
    content: str
    """Its own lines without the marks of the blocks around it."""
    start: int = 0
    """Place in the document behind the marks at the beginning of its first line; 0 if there is no such mark."""
    is_html: bool = False
    """True for a block of HTML."""


@final
class _Text:
    """Text of a block or HTML, as the rules fill it in; the rule of lists asks each for its level and type."""

    __slots__ = ("children", "content", "map", "type")
    level: Final = 0

    def __init__(self, kind: str) -> None:
        self.type: Final = kind


@final
class _TextBlocks(LayoutState):
    """Parsing that keeps the texts of blocks; a cell has three tokens otherwise, most of the time of a large table."""

    _OTHER: Final = Token("", "", 0)

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        if ttype in ("inline", "html_block"):
            text: Any = _Text(ttype)
            self.tokens.append(text)
            return text
        self.level += nesting
        return self._OTHER


def text_blocks(document: str) -> Sequence[Block]:
    """List the paragraphs, headings, items, cells and HTML of a document.

    Args:
        document: its lines end in line feeds alone.

    Returns:
        The blocks in order.
    """
    idle = [rule for rule, marks in _MARKS_OF_RULES.items() if not any(mark in document for mark in marks)]
    parser = MarkdownIt("commonmark").enable("table")
    add_rules(parser)
    state = _TextBlocks(document, parser.disable(idle))
    parser.block.tokenize(state, state.line, state.lineMax)
    starts = state.starts
    blocks: list[Block] = []
    for token in state.tokens:
        if token.map and token.content.strip():
            line = token.map[0]
            is_html = token.type == "html_block"
            blocks.append(Block(line, token.content, starts.get(line, 0) if starts else 0, is_html))
    return blocks
