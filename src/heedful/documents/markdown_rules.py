"""Rules of blocks beyond CommonMark: notes below the text, tasks, callouts, fences of colons, and math.

Their marks are layout; the texts within them are blocks like any other.

Source: GitHub Flavored Markdown, and the Markdown of Pandoc, Docusaurus and Obsidian.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, Literal, final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

_NOTE: Final = re.compile(r"\[\^[^\[\]\s]++\]:[ \t]*+")
_DEFINITION: Final = re.compile(
    r"\[[^\[\]\n]++\]:[ \t]*+\S++(?:[ \t]++(?:\"[^\"\n]*+\"|'[^'\n]*+'|\([^()\n]*+\)))?+[ \t]*+"
)
_BOX: Final = re.compile(r"\[[ xX]\][ \t]++(?=\S)")
_CALLOUT: Final = re.compile(r"\[![A-Za-z][\w-]*+\][+-]?+(?:[ \t]++|\Z)")
_INDENT_OF_NOTES: Final = 4

MARKS: Final = {
    "note": ("[^",),
    "definition below a note": ("[^",),
    "box": ("[ ]", "[x]", "[X]"),
    "callout": ("[!",),
    "fence of colons": (":::",),
    "math": ("$$",),
}
"""Names of the rules, and texts of which each needs one in the document."""


class LayoutState(StateBlock, ABC):
    """Parsing with what these rules remember."""

    def __init__(self, source: str, parser: MarkdownIt) -> None:
        """Begin.

        Args:
            source: the document.
        """
        super().__init__(source, parser, {}, [])
        self.starts: Final[dict[int, int]] = {}
        """Place behind the marks of these rules, by the line that begins with them."""
        self.is_in_note = False
        self.math: Final = _MathEnds()

    @abstractmethod
    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        """Add a token."""


@final
class _MathEnds:
    """Lines at which math ends; none is looked for twice."""

    def __init__(self) -> None:
        self._ends: Final[dict[int, int]] = {}
        self._open: tuple[int, int] = 0, 0  # lines among which no math ends

    def find(self, state: StateBlock, first: int, end: int) -> int:
        """Line behind the math that begins in a line; 0 if it never ends."""
        if first in self._ends:
            return self._ends[first]
        start, stop = self._open
        if start <= first < stop:
            return 0
        number = first + 1
        while number < end and (state.sCount[number] >= state.blkIndent or state.isEmpty(number)):
            if _line(state, number).rstrip().endswith("$$"):
                self._ends[first] = number + 1
                return number + 1
            number += 1
        self._open = first, number
        return 0


def add_rules(parser: MarkdownIt) -> None:
    """Add the rules to a parser whose states are of `LayoutState`."""
    ruler = parser.block.ruler
    interrupted: Sequence[str] = ("paragraph", "reference", "blockquote", "list")
    ruler.before("reference", "note", _note, {"alt": [*interrupted]})
    ruler.before("reference", "definition below a note", _definition, {"alt": ["paragraph"]})
    ruler.before("reference", "fence of colons", _colons, {"alt": [*interrupted]})
    ruler.before("reference", "math", _math, {"alt": [*interrupted]})
    ruler.before("heading", "box", _box)
    ruler.before("heading", "callout", _callout)


def _note(state: Any, first: int, end: int, silent: bool) -> bool:
    mark = _match(state, _NOTE, first)
    if mark is None or (state.is_in_note and not silent):
        return False
    if silent:
        return True
    before = state.bMarks[first], state.tShift[first], state.sCount[first], state.parentType
    _skip(state, first, mark.end())
    state.blkIndent += _INDENT_OF_NOTES
    state.sCount[first] = state.blkIndent
    state.parentType, state.is_in_note = "note", True
    state.md.block.tokenize(state, first, end)
    state.blkIndent -= _INDENT_OF_NOTES
    state.is_in_note = False
    state.bMarks[first], state.tShift[first], state.sCount[first], state.parentType = before
    return True


def _definition(state: Any, first: int, end: int, silent: bool) -> bool:
    """True if a line directly below a note defines a link; any other line continues the note."""
    return bool(silent and state.is_in_note and _DEFINITION.fullmatch(_line(state, first)))


def _colons(state: Any, first: int, end: int, silent: bool) -> bool:
    if state.is_code_block(first) or not _line(state, first).startswith(":::"):
        return False
    state.line = state.line if silent else first + 1
    return True


def _math(state: Any, first: int, end: int, silent: bool) -> bool:
    line = _line(state, first).rstrip()
    if state.is_code_block(first) or not line.startswith("$$"):
        return False
    if "$$" in line[2:]:
        behind = first + 1 if line.endswith("$$") and "$$" not in line[2:-2] else 0
    else:
        behind = state.math.find(state, first, end)
    if behind and not silent:
        state.line = behind
    return bool(behind)


def _box(state: Any, first: int, end: int, silent: bool) -> bool:
    """Skip the box of a task, whose text other rules read."""
    mark = _match(state, _BOX, first)
    if mark is not None and _is_behind(state, mark.start(), "-+*.)"):
        _skip(state, first, mark.end())
    return False


def _callout(state: Any, first: int, end: int, silent: bool) -> bool:
    """Mark of a callout, with a title behind it or not."""
    mark = _match(state, _CALLOUT, first)
    if mark is None or not _is_behind(state, mark.start(), ">"):
        return False
    title = state.src[mark.end() : state.eMarks[first]].strip()
    state.line = first + 1
    if title:
        state.starts[first] = mark.end()
        token = state.push("inline", "", 0)
        token.content = title
        token.map = [first, first + 1]
    return True


def _match(state: Any, pattern: re.Pattern[str], number: int) -> re.Match[str] | None:
    """Match at the beginning of a line."""
    if state.is_code_block(number):
        return None
    return pattern.match(state.src, state.bMarks[number] + state.tShift[number], state.eMarks[number])


def _is_behind(state: Any, start: int, marks: str) -> bool:
    """True if the mark that ends at a place of a line ends in one of the given characters."""
    before = state.src[state.src.rfind("\n", 0, start) + 1 : start].rstrip()
    return bool(before) and before[-1] in marks


def _skip(state: Any, number: int, start: int) -> None:
    """Let a line begin at a place."""
    state.bMarks[number], state.tShift[number], state.starts[number] = start, 0, start


def _line(state: Any, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]
