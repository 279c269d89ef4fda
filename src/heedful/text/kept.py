"""Kept spans: parts of a text that no translation changes, such as addresses, numbers and placeholders, found by rules.

The rules stand in `kept_rules.json`, in the order of precedence and in the common syntax of regular expressions of
Python and JavaScript. The time of each is linear in the text.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, final

from heedful.errors import UsageError, needed_for
from heedful.text.scripts import script_of

MOST_SECONDS: Final = 2
"""Time that a pattern of a user may take on one line."""
OWN: Final = "own"
"""Kind of spans that the user's own pattern finds."""
MARKUP: Final = "markup"
"""Kind of spans that the markup of a text excludes from translation, such as code."""
FOREIGN: Final = "script"
"""Kind of spans that are written in a script which the model does not know."""
ACRONYM: Final = "acronym"
"""Kind of spans that are a short word in capitals which no source of a model has."""
LONG: Final = "word"
"""Kind of spans that are longer than words are, such as keys and a key held down."""
FEWEST_PIECES: Final = 8
"""Number of pieces of a script from which on a vocabulary knows the script, not only some of its letters."""
_LONG: Final = re.compile(
    r"(?<![A-Za-zª-ʯͰ-ۿ_\d])(?:[A-Za-zª-ʯͰ-ۿ_\d]{41,}|(?=[A-Za-z+/]{0,60}\d)[A-Za-z\d+/]{41,}={0,2}|"
    r"(?:[A-Za-zª-ʯͰ-ۿ_\d]{1,40}-){12,}[A-Za-zª-ʯͰ-ۿ_\d]*|([A-Za-zª-ʯͰ-ۿ])\1{7,})"
    r"(?![A-Za-zª-ʯͰ-ۿ_\d])"
)
"""Word of more letters or hyphens than any in common use, or of one letter again and again."""
_SPECIAL: Final = re.compile(r"[^\w\s.,;:!?'\"()-]|[\d_ℹ¼-¾⅐-⅞]|\.[^\W\d_]|--")
"""Character or word without which a text has nothing that a rule of the table finds; most texts have none."""
_CAPITALS: Final = re.compile(r"(?<![\w'’-])[A-ZÀ-ÖØ-Þ]{2,6}(?![\w'’-])")
_SMALL: Final = re.compile("[a-zß-öø-ÿ]")
_VOWEL: Final = re.compile("[AEIOUYÀ-ÆÈ-ÏÒ-ÖØ-Ý]")
_WORDS: Final = re.compile(r"[^\W\d_]++(?:[\s'’-]++[^\W\d_]++)*+")
_JOINERS: Final = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
_MARK: Final = "a"
"""Letter that stands for a combining mark while words are looked for."""


@final
@dataclass(frozen=True, order=True)
class Kept:
    """Span of a text that stays as it is."""

    start: int
    """Index of its first character."""
    end: int
    """Index after its last character."""
    kind: str
    """Name of the rule that found it."""


@cache
def kept_rules() -> Mapping[str, re.Pattern[str]]:
    """Read the table of rules.

    Returns:
        Pattern of each kind of span, in the order of precedence.
    """
    content = json.loads(files("heedful.text").joinpath("kept_rules.json").read_text("utf-8"))
    return {kind: re.compile(pattern) for kind, pattern in content.items()}


def find_kept(
    text: str,
    kinds: Sequence[str] | None = None,
    own: Callable[[str], Sequence[tuple[int, int]]] | None = None,
    knows: Callable[[str], bool] | None = None,
    lacks: Callable[[str], bool] | None = None,
) -> tuple[Kept, ...]:
    """Find the spans of a text that stay as they are.

    Args:
        kinds: kinds of spans to look for; None = all of the table.
        own: finds the spans of the user's own pattern, which precede those of the table; None = no such pattern.
        knows: whether a model knows a script, so that words in other scripts are kept; None = all scripts.
        lacks: whether no source of a model has a word, so that it is kept where it is short and in capitals, and
            without vowels if all of the text is in capitals; None = none is.

    Returns:
        The spans in order, none overlapping another.

    Example:
        >>> text = "Hallo {name}, mehr unter https://example.org/x."
        >>> [(text[one.start : one.end], one.kind) for one in find_kept(text)]
        [('{name}', 'braces'), ('https://example.org/x', 'url')]
    """
    spans: list[Kept] = []
    is_taken = bytearray(len(text))

    def take(start: int, end: int, kind: str) -> None:
        if start < end and not any(is_taken[start:end]):
            is_taken[start:end] = b"\1" * (end - start)
            spans.append(Kept(start, end, kind))

    for start, end in own(text) if own else ():
        take(start, end, OWN)
    for kind, pattern in kept_rules().items() if _SPECIAL.search(text) else ():
        if kinds is None or kind in kinds:
            for match in pattern.finditer(text):
                take(match.start(), match.end(), kind)
    for match in _LONG.finditer(text):
        take(match.start(), match.end(), LONG)
    if knows is not None and not text.isascii() and not all(map(knows, {*map(script_of, {*text})} - {""})):
        for start, end in _foreign(text, knows):
            take(start, end, FOREIGN)
    if lacks is not None:
        is_mixed = _SMALL.search(text) is not None
        for match in _CAPITALS.finditer(text):
            # Among capitals, a word that a small model has not seen is rather "JA" than "NATO".
            if lacks(match[0]) and (is_mixed or not _VOWEL.search(match[0])):
                take(match.start(), match.end(), ACRONYM)
    return tuple(sorted(spans))


def known_scripts(pieces: Iterable[str]) -> frozenset[str]:
    """Find the scripts that a vocabulary knows.

    Args:
        pieces: pieces of the vocabulary.
    """
    counts = Counter(script_of(letter) for piece in pieces for letter in set(piece))
    return frozenset(script for script, number in counts.items() if number >= FEWEST_PIECES)


def own_spans(patterns: Sequence[str]) -> Callable[[str], list[tuple[int, int]]]:
    """Compile patterns of users.

    Returns:
        Function from a text to the spans that match; it raises UsageError where a pattern takes longer than
        `MOST_SECONDS`.

    Raises:
        UsageError: a pattern is no regular expression.
        MissingExtra: the package that bounds their time is not installed.
    """
    with needed_for("patterns of your own"):
        import regex
    compiled: list[Any] = []
    for pattern in patterns:
        try:
            compiled.append(regex.compile(pattern))
        except regex.error as error:
            raise UsageError(f"--keep {pattern!r}: no regular expression: {error}") from None

    def spans(text: str) -> list[tuple[int, int]]:
        places: list[tuple[int, int]] = []
        for pattern in compiled:
            try:
                places += [match.span() for match in pattern.finditer(text, timeout=MOST_SECONDS)]
            except TimeoutError:
                raise UsageError(
                    f"--keep {pattern.pattern!r}: takes more than {MOST_SECONDS} s on a line of {len(text):,} "
                    "characters; write it without nested repetitions"
                ) from None
        return places

    return spans


def _foreign(text: str, knows: Callable[[str], bool]) -> list[tuple[int, int]]:
    """Runs of words in scripts that a model does not know."""
    spans: list[tuple[int, int]] = []
    letters = "".join(_MARK if _is_mark(character) else character for character in text)
    for match in _WORDS.finditer(letters):
        start = -1
        end = 0
        for index in range(match.start(), match.end()):
            is_mark = _is_mark(text[index])
            script = "" if is_mark else script_of(text[index])
            if is_mark and start >= 0 and index == end:
                end = index + 1
            elif script and not knows(script):
                start, end = (index if start < 0 else start), index + 1
            elif script and start >= 0:
                spans.append((start, end))
                start = -1
        if start >= 0:
            spans.append((start, end))
    return spans


def _is_mark(character: str) -> bool:
    """Tell whether a character belongs to the letter before it, as vowel signs of Indic scripts do."""
    return character in _JOINERS or unicodedata.category(character)[0] == "M"


def has_words(text: str, fixed: Sequence[Kept]) -> bool:
    """Tell whether a text has letters outside its kept spans, so that there is something to translate.

    Args:
        fixed: its kept spans, in order.

    Returns:
        False for blank text, punctuation, signs, emoji and digits alone.
    """
    start = 0
    for one in fixed:
        if any(map(str.isalpha, text[start : one.start])):
            return True
        start = one.end
    return any(map(str.isalpha, text[start:]))
