"""Layout at the ends of a segment: brackets and quotes around it, emoticons, rows of marks such as "===", and commas.

Models rarely saw any of them at the ends of their sources, so they are put aside and put back.
"""

import re
from typing import Final

_MARK: Final = r"[^\w\s]"
# A word is looked for where one may begin, so that no mark is read again and again.
_BEGINNING: Final = re.compile(rf"(?:\s+|(?<!\S){_MARK}{{2,}}(?=\s)|({_MARK})\1\1+)*")
"""Words of marks alone, and rows of the same mark."""
_ENDING: Final = re.compile(
    rf"(?:(?<!\S)(?![,;:–—]*[.!?…]+\s){_MARK}{{2,}}(?=\s)|[\s,;:–—]+|(?![.!?…])({_MARK})\1\1+)*"
)
"""The same from the end on, and marks that end clauses, but none that end sentences."""
_CLOSING: Final = {"(": ")", "[": "]", "„": "“”", "“": "”", "«": "»", "»": "«", "‹": "›", "›": "‹"}
_OPENING: Final = {")": "(", "]": "[", "“": "„", "”": "„“", "»": "«", "«": "»", "›": "‹", "‹": "›"}
_AROUND: Final = re.compile(r"([\"'*_~])\1*")
"""Mark that stands before a text and behind it."""
_QUOTE: Final = '"'
_FINAL_MARKS: Final = (".", "!", "?")
_MOST_LAYERS: Final = 4
"""Number of brackets and rows around each other that are put aside."""


def without_edges(text: str) -> tuple[int, int]:
    """Find the part of a segment without the layout at its ends.

    A bracket or quote is layout where its partner is at the other end, or in another segment.

    Args:
        text: the segment, in which spans that stay as they are have no marks.

    Returns:
        Start and end of the part; of the whole text where nothing but marks is left.

    Example:
        >>> for text in ("(A dog runs.)", "=== News ===", "Hello :-)", "(Some) dogs run..."):
        ...     print(text[slice(*without_edges(text))])
        A dog runs.
        News
        Hello
        (Some) dogs run...

    Cost: linear in the text.
    """
    start, end = 0, len(text)
    for _ in range(_MOST_LAYERS):
        part = text[start:end]
        first, last = _without_brackets(part, *_without_rows(part))
        if (first, last) == (0, len(part)):
            break
        start, end = start + first, start + last
    return (start, end) if any(map(str.isalnum, text[start:end])) else (0, len(text))


def _without_rows(text: str) -> tuple[int, int]:
    beginning, ending = _BEGINNING.match(text), _ENDING.match(text[::-1])
    start, end = beginning.end() if beginning else 0, len(text) - (ending.end() if ending else 0)
    return (start, end) if start < end else (0, len(text))


def _without_brackets(text: str, start: int, end: int) -> tuple[int, int]:
    if text.endswith(_FINAL_MARKS, start, end):  # it may stand behind the bracket
        first, last = _inside_brackets(text, start, end - 1)
        if last < end - 1:
            return first, last
    return _inside_brackets(text, start, end)


def _inside_brackets(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    around = _AROUND.match(part)
    if around and end - start > 2 * len(around[0]) and part.endswith(around[0]):
        size = len(around[0])
        if around[1] not in part[size:-size]:
            return start + size, end - size
    if part.count(_QUOTE) == 1:
        return start + part.startswith(_QUOTE), end - part.endswith(_QUOTE)
    partner = _partner(part, _CLOSING)
    if partner and partner == len(part) - 1:
        return start + 1, end - 1
    return start + (partner is None), end - (_partner(part[::-1], _OPENING) is None)


def _partner(text: str, partners: dict[str, str]) -> int | None:
    """Place of the partner of the bracket at the beginning of a text; None = it has none, 0 = there is no bracket."""
    bracket = text[:1]
    if bracket not in partners:
        return 0
    depth = 0
    for index, letter in enumerate(text):
        depth += (letter == bracket) - (letter in partners[bracket])
        if not depth:
            return index
    return None
