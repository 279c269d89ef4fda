"""Segments of a text: the sentences or lines that a model translates, and the layout between them.

Sources and layout together are the text, to the character, so that nothing of a text can be lost on the way.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from typing import Final, Literal, final

from heedful.text.kept import FOREIGN, MARKUP, Kept
from heedful.text.scripts import UNSPACED, script_of
from heedful.text.segment_edges import without_edges
from heedful.text.sentences import sentence_spans
from heedful.text.word_forms import case_of

Policy = Literal["auto", "sentence", "line"]
"""Parts that are translated by themselves: lines, their sentences, or sentences only of lines that have more of them
than the model usually saw together."""

_BREAKS: Final = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_QUOTE: Final = re.compile(r"(?:(?:[ \t]*+>)+(?=\s|$))?")
"""Marks at the beginning of a quoted line, as in e-mails."""
_QUOTED_BREAK: Final = re.compile(rf"(?:{_BREAKS.pattern}){_QUOTE.pattern}")
_SOFT_BREAK: Final = re.compile(rf"(?:(?<![ \t])[ \t]++)?{_QUOTED_BREAK.pattern}[ \t]*+")
_MARKER: Final = re.compile(r"\s*(?:[-*+•‣▪◦·–—] +|\(?(?:\d{1,3}|[a-z])\) +|(?P<number>\d{1,3})\. +)(?=\S)")
"""Bullet or number at the beginning of an item of a list."""
_CLAUSE_END: Final = re.compile(r"[;:,)\]–—]\s+|[、，；：）]+|\s[–—]\s")
_CONJUNCTIONS: Final = "und|oder|aber|and|or|but|et|ou|mais|pero|или|но"
CONJUNCTION: Final = re.compile(rf"(?:{_CONJUNCTIONS}|y|o|и|а|{_CONJUNCTIONS.upper()})\s+(?=\w)")
"""Word that joins clauses, in lower or upper case."""
_BEFORE_CONJUNCTION: Final = re.compile(rf"\s+(?={CONJUNCTION.pattern})")
_SPACE: Final = re.compile(r"\s+")
_FIRST_WORD: Final = re.compile(r"\w+")
_GLUED: Final = re.compile(r"(?:(?<=[^\W\d_]{2}[.!?])|(?<=[^\W\d_][)\]\"”»][.!?]))[^\W\d_]+")
"""Word behind a mark without a space between them."""
_NEXT_WORD: Final = re.compile(r"(?<=\w )\w+")
"""Word with a word and a space before it."""
_END_MARKS: Final = (".", "!", "?", "…", ":", ";", "。", "！", "？", "：", "؟", "।", "|")
_UNENDED: Final = re.compile(
    r"(?:^|\s)(?:der|die|das|dem|den|des|eine?[mnrs]?|im|am|zum|zur|vom|beim|und|oder|an|the|of|and|or|le|la|les|une?|des?|"
    r"aux?|et|ou|el|los|las|una|del|al)$"
)
"""Article, preposition or conjunction at the end of a line, behind which no sentence ends."""
_MID_SENTENCE: Final = re.compile(r"(?:[^\W_]|[,-])$")
"""Letter, digit, comma or hyphen at the end of a line that may go on in the next one."""
_CELL_END: Final = re.compile(r"\t|\s\|\s")
"""Character between the cells of a row of a table."""
_COLONS: Final = (":", "：")
_READ: Final = frozenset({"number", "date", "identifier", "emoji", FOREIGN})
"""Kinds of kept spans that tell where sentences end."""
_SHORTEST_WRAPPED: Final = 40
"""Width in characters from which on lines that are full are taken for hard-wrapped text."""
_LEAST_WRAPPED: Final = 20
"""Width from which on lines of like width are if their sentences go on in lower case, as in e-mails from phones."""
_LIKE: Final = 0.7
"""Smallest width of such a line in that of the widest one."""
_MOST_AROUND: Final = 500
"""Number of characters around the middle of a long segment in which the end of a clause is looked for."""
_WIDE: Final = "\N{CJK RADICAL REPEAT}"
"""First character of the scripts that are written without spaces."""
_WIDE_ENDS: Final = ("。", "！", "？", "」", "』")


@final
@dataclass(frozen=True)
class Segment:
    """Part of a text that is translated by itself."""

    source: str
    """Characters of the text from `start` to `end`, line breaks of hard-wrapped text included."""
    start: int = 0
    """Index of its first character in the text."""
    end: int = 0
    """Index after its last character."""
    kept: tuple[Kept, ...] = ()
    """Spans of `reading` that stay as they are, in order and apart."""
    is_inner: bool = False
    """True for a part of a longer sentence that does not begin it."""

    @property
    def reading(self) -> str:
        """Source as a model reads it: on one line."""
        return _SOFT_BREAK.sub(_joint, self.source)


@final
@dataclass(frozen=True)
class Text:
    """Text taken apart into segments, and the layout between them."""

    segments: tuple[Segment, ...]
    layout: tuple[str, ...]
    """Characters before the first segment, between two, and after the last one: one string more than segments."""

    def join(self, outputs: Sequence[str]) -> str:
        """Put outputs in the places of the segments.

        Sentences without a space between them, as in Chinese, get one in scripts that use spaces; a space after a
        full-width end mark is left out. Both only beside an output that is not its source.

        Args:
            outputs: output of each segment.

        Returns:
            The whole text; with the sources as outputs, the text as it was.

        Raises:
            ValueError: not one output for each segment.

        Example:
            >>> split("房间很好。服务不错！").join(["The room is good.", "Nice service!"])
            'The room is good. Nice service!'
        """
        return "".join(self._parts(outputs))

    def starts(self, outputs: Sequence[str]) -> list[int]:
        """Locate outputs in the text that `join` makes of them.

        Args:
            outputs: output of each segment.

        Returns:
            Index of the first character of each.
        """
        ends = [0, *accumulate(map(len, self._parts(outputs)))]
        return ends[1:-1:2]

    def _parts(self, outputs: Sequence[str]) -> list[str]:
        """Layout and outputs in turn."""
        parts = [self.layout[0]]
        is_changed = False
        for index, (segment, output, after) in enumerate(zip(self.segments, outputs, self.layout[1:], strict=True)):
            was_changed, is_changed = is_changed, output != segment.source
            if index and (was_changed or is_changed) and parts[-2]:
                ending, between = parts[-2], parts[-1]
                if not between and output and ending[-1] < _WIDE:
                    parts[-1] = " "
                elif between == " " and ending.endswith(_WIDE_ENDS):
                    parts[-1] = ""
            parts += [output, after]
        return parts


def split(
    text: str,
    language: str = "",
    policy: Policy = "sentence",
    usual: int = 1,
    fits: Callable[[str], bool] = lambda _: True,
    find: Callable[[str], Sequence[Kept]] = lambda _: (),
    is_usual: Callable[[str], bool] | None = None,
    begins: Callable[[str], bool] = lambda _: False,
    is_short: Callable[[str], bool] = lambda _: True,
) -> Text:
    r"""Split a text into the segments that a model translates one by one.

    A line break ends a segment, except in hard-wrapped text, whose lines go on in the next. The bullets and numbers of
    lists, the marks of quoted lines, and brackets, quotes and rows of marks around a segment are layout.

    Args:
        language: code of its language; empty = unknown.
        policy: what a segment is; under "line" a line stays as it is, however long.
        usual: number of sentences up to which "auto" leaves a line whole.
        fits: whether a segment is short enough for the model; a longer one is cut behind a clause, else at a space,
            else anywhere.
        find: finds the spans of a line that stay as they are; no segment ends within one.
        is_usual: whether a segment that fits is no longer than those that the model has learned; a longer one is cut
            where a sentence begins, behind a clause or before a conjunction, if one is about its middle. None = as
            `fits`.
        begins: whether the capital of a word tells that a sentence begins, though no mark ends the one before it.
        is_short: whether a piece of a longer sentence is not cut further where such a word begins a clause.

    Returns:
        The segments, none of them blank, and the layout.

    Example:
        >>> [segment.source for segment in split("Good day, Dr. Brown. How are you?\n- Fine.").segments]
        ['Good day, Dr. Brown.', 'How are you?', 'Fine.']
    """
    find = lru_cache(1)(find)  # most lines are one segment
    is_usual = is_usual or fits
    cut = partial(_cut, text, fits=fits, is_usual=is_usual, begins=begins, is_short=is_short)
    spans = (
        ((start, end, False) for start, end in _lines(text))
        if policy == "line"
        else _sentences(text, usual if policy == "auto" else 0, is_usual, cut, find, begins)
    )
    segments: list[Segment] = []
    layout: list[str] = []
    last = 0
    for start, end, is_inner in spans:
        source = text[start:end]
        start, end = start + len(source) - len(source.lstrip()), end - len(source) + len(source.rstrip())
        if start < end:
            one = Segment(text[start:end], start, end, is_inner=is_inner)
            segments.append(replace(one, kept=tuple(find(one.reading))))
            layout.append(text[last:start])
            last = end
    return Text(tuple(segments), (*layout, text[last:]))


def _sentences(
    text: str,
    usual: int,
    is_usual: Callable[[str], bool],
    cut: Callable[[str, int, int, int], Iterator[tuple[int, int]]],
    find: Callable[[str], Sequence[Kept]],
    begins: Callable[[str], bool],
) -> Iterator[tuple[int, int, bool]]:
    """Start and end of each part of a sentence, and whether it does not begin one."""
    for start, end in _paragraphs(text, begins):
        # Line breaks within a paragraph are spaces, and addresses and placeholders a word, of the same length.
        line = _QUOTED_BREAK.sub(lambda match: " " * len(match[0]), text[start:end])
        fixed = [one for one in find(line) if one.kind not in _READ]
        # As a word of one letter, a stand-in for a span would be an initial.
        sentences = sentence_spans(_masked(line, [one for one in fixed if one.kind != MARKUP]))
        line = _masked(line, fixed)
        ends = [match.start() for match in _GLUED.finditer(line) if begins(match[0])]
        spans = [span for span in _divided(sentences, ends) if line[slice(*span)].strip()]
        if len(spans) <= usual and (len(spans) == 1 or is_usual(line)):
            spans = [(0, len(line))]
        for span in spans:
            for first, last in cut(line, start, start + span[0], start + span[1]):
                part = line[first - start : last - start]
                begin = last - len(part.lstrip())
                left, right = without_edges(part.strip())
                yield begin + left, begin + right, first > start + span[0]


def _divided(spans: Iterable[tuple[int, int]], ends: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Spans of sentences, divided at further ends of sentences."""
    waiting = deque(ends)
    for start, end in spans:
        while waiting and waiting[0] < end:
            cut = waiting.popleft()
            if cut > start:
                yield start, cut
                start = cut
        yield start, end


def _masked(line: str, fixed: Sequence[Kept]) -> str:
    parts: list[str] = []
    last = 0
    for one in fixed:
        parts += [line[last : one.start], "X" * (one.end - one.start)]
        last = one.end
    return "".join([*parts, line[last:]])


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _BREAKS.finditer(text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _paragraphs(text: str, begins: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """Lines without the marks of quotes and list items; lines of hard-wrapped text together."""
    quotes = [_QUOTE.match(text, *line) for line in _lines(text)]
    lines = [(quote.end() if quote else start, end) for quote, (start, end) in zip(quotes, _lines(text), strict=True)]
    levels = [quote[0].count(">") if quote else 0 for quote in quotes]
    starts = [*_item_starts(text, lines, begins)]
    block: list[int] = []  # consecutive lines of one quote that are not blank, and no items but the first
    for index, (line_start, line_end) in enumerate(lines):
        is_blank = not text[line_start:line_end].strip()
        if block and (is_blank or starts[index] > line_start or levels[index] != levels[index - 1]):
            yield from _unwrapped(text, [(starts[one], lines[one][1]) for one in block])
            block = []
        if not is_blank:
            block.append(index)
    yield from _unwrapped(text, [(starts[one], lines[one][1]) for one in block])


def _item_starts(text: str, lines: Sequence[tuple[int, int]], begins: Callable[[str], bool]) -> Iterator[int]:
    """Start of each line, behind its bullet or number.

    A number with a period may be an ordinal, as in "3. Mai"; it is a mark where the number before or after it stands at
    another line, or where a sentence begins behind it.
    """
    markers = [_MARKER.match(text, *line) for line in lines]
    numbers = {int(marker["number"]) for marker in markers if marker and marker["number"]}
    for (start, _), marker in zip(lines, markers, strict=True):
        number = int(marker["number"]) if marker and marker["number"] else None
        word = _FIRST_WORD.match(text, marker.end()) if marker else None
        is_mark = marker and (
            number is None or not numbers.isdisjoint((number - 1, number + 1)) or (word and begins(word[0]))
        )
        yield marker.end() if marker and is_mark else start


def _unwrapped(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Lines, those together that were wrapped: that the first word of the next line would have made too long."""
    if not lines:
        return
    parts = [text[start:end].strip() for start, end in lines]
    is_joined = _joins(parts, max(len(text[start:end].rstrip()) for start, end in lines))
    begin = lines[0][0]
    for (_, end), (following, _), is_one in zip(lines, lines[1:], is_joined, strict=False):
        if not is_one:
            yield begin, end
            begin = following
    yield begin, lines[-1][1]


def _joins(lines: Sequence[str], width: int) -> list[bool]:
    """Tell which lines go on in the next one: full ones, and those in whose middle of a sentence the next begins."""
    is_ended = [line.endswith(_END_MARKS) for line in lines]
    return [full or going for full, going in zip(_full(lines, width, is_ended), _going(lines, is_ended), strict=True)]


def _going(lines: Sequence[str], is_ended: Sequence[bool]) -> list[bool]:
    """Tell which lines go on in the next one, however long they are.

    The next one begins in lower case, and their sentence has a capital at its beginning and a mark at its end, as items
    of lists have not; or no sentence ends in the last word of the line.
    """
    is_open = [_UNENDED.search(line) is not None for line in lines]
    joins = [False] * (len(lines) - 1)
    start = 0
    for index, line in enumerate(lines):
        rest = lines[index + 1] if index + 1 < len(lines) else ""
        is_row = _CELL_END.search(line) or _CELL_END.search(rest)
        may_go_on = _MID_SENTENCE.search(line) and (is_open[index] or rest[:1].islower())
        if not rest or is_ended[index] or is_row or not may_go_on:
            is_sentence = is_ended[index] and not lines[start][0].islower()
            joins[start:index] = [is_sentence or one for one in is_open[start:index]]
            start = index + 1
    return joins


def _full(lines: Sequence[str], width: int, is_ended: Sequence[bool]) -> list[bool]:
    """Tell which lines are full; what a colon ends, such as who wrote an e-mail, does not go on."""
    pairs = [*pairwise(lines)]
    is_full = [len(line) + _size_of_first_word(rest) > width for line, rest in pairs]
    if width < _SHORTEST_WRAPPED:
        is_full = [full or len(line) >= _LIKE * width for full, (line, _) in zip(is_full, pairs, strict=True)]
        is_lower = [rest[0].islower() for (_, rest), ended in zip(pairs, is_ended, strict=False) if not ended]
        is_even = all(full or ended for full, ended in zip(is_full, is_ended, strict=False))
        is_begun = is_ended[-1] or (len(lines) > 2 and not lines[0][0].islower())
        if not (width >= _LEAST_WRAPPED and is_even and is_begun and 2 * sum(is_lower) >= len(is_lower) > 0):
            return [False] * len(pairs)
    return [
        full and not line.endswith(_COLONS) and (not ended or len(lines) > 2)
        for (line, _), full, ended in zip(pairs, is_full, is_ended, strict=False)
    ]


def _size_of_first_word(text: str) -> int:
    """Number of characters that the first word of a line adds to the line before it."""
    return 1 if script_of(text[0]) in UNSPACED else 1 + len(_SPACE.split(text, maxsplit=1)[0])


def _cut(
    text: str,
    line: str,
    offset: int,
    start: int,
    end: int,
    fits: Callable[[str], bool],
    is_usual: Callable[[str], bool],
    begins: Callable[[str], bool],
    is_short: Callable[[str], bool],
) -> Iterator[tuple[int, int]]:
    """A segment, or its pieces where it is too long: cut where a sentence or a clause begins, near the middle.

    The cuts are looked for in `line`, which begins at `offset` in the text and has no spaces within kept spans.
    """
    waiting = [(start, end)]
    whole = end - start
    while waiting:
        start, end = waiting.pop()
        source = text[start:end]
        is_learned = is_usual(source)
        if end - start < 2 or (is_learned and (end - start == whole or is_short(source))):
            yield start, end
            continue
        middle, around = (start + end) // 2 - offset, min((end - start) // 4, _MOST_AROUND)
        window = line, middle - around, middle + around
        clauses, spaces = ([match.end() for match in pattern.finditer(*window)] for pattern in (_CLAUSE_END, _SPACE))
        joints = [match.end() for match in _BEFORE_CONJUNCTION.finditer(*window)]
        likely = [index for index in (*clauses, *joints) if _begins_clause(line, index, begins)]
        clauses = likely or ([] if is_learned else clauses or joints)
        starts = [match.start() for match in _NEXT_WORD.finditer(*window) if begins(match[0])]
        if case_of(source):
            starts = []  # capitals tell nothing
        if not (starts or clauses) and (is_learned or fits(source)):
            yield start, end
            continue
        cut = min(starts or clauses or spaces or [middle], key=lambda one: abs(one - middle))
        cut = min(max(cut + offset, start + 1), end - 1)
        waiting += [(cut, end), (start, cut)]


def _begins_clause(line: str, start: int, begins: Callable[[str], bool]) -> bool:
    """Tell whether a word that begins sentences stands at a place, behind a conjunction or not."""
    joint = CONJUNCTION.match(line, start)
    word = _FIRST_WORD.match(line, joint.end() if joint else start)
    return word is not None and begins(word[0].capitalize())


def _joint(match: re.Match[str]) -> str:
    """Text that a line break of hard-wrapped text stands for: a space, or nothing in scripts without spaces."""
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    is_unspaced = before and after and {script_of(before), script_of(after)} <= UNSPACED
    return "" if is_unspaced else " "
