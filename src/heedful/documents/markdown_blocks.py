"""Blocks of a Markdown document that hold text, found by markdown-it (CommonMark with tables)."""

from collections.abc import Sequence
from typing import Any, Final, Literal, final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

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
}
"""Rules of blocks, and texts of which each needs one in the document; a rule that cannot apply is asked at no line."""


@final
class _Text:
    """Text of a block, as the rules fill it in; the rule of lists asks each for its level and type."""

    __slots__ = ("children", "content", "map")
    level: Final = 0
    type: Final = "inline"


@final
class _TextBlocks(StateBlock):
    """Parsing that keeps the texts of blocks; a cell has three tokens otherwise, most of the time of a large table."""

    _OTHER: Final = Token("", "", 0)

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        if ttype == "inline":
            text: Any = _Text()
            self.tokens.append(text)
            return text
        self.level += nesting
        return self._OTHER


def text_blocks(document: str) -> Sequence[tuple[int, str]]:
    """List the paragraphs, headings, items and cells of a document.

    Args:
        document: its lines end in line feeds alone.

    Returns:
        Of each, its first line in the document, and its own lines without the marks of the blocks around it.
    """
    idle = [rule for rule, marks in _MARKS_OF_RULES.items() if not any(mark in document for mark in marks)]
    parser = MarkdownIt("commonmark").enable("table").disable(idle)
    state = _TextBlocks(document, parser, {}, [])
    parser.block.tokenize(state, state.line, state.lineMax)
    return [(token.map[0], token.content) for token in state.tokens if token.map and token.content.strip()]
