"""Terms: pairs of a source term and the form that translations shall have for it, and their matches in texts.

Lists are read by `heedful.text.term_files`. Words match regardless of case and of their inflection, which is told by
the stem: the first letters that two words share, four at least, accents aside. In a source, where a false match costs
more than a missed one, one word is the stem, or a letter more, and the other has as many letters more as the stem has
above four (weißes, weißen; not bride and bridge), or up to three behind the whole of the other word (Haus, Hauses). A
few regular pairs of endings need three letters before them (story, stories; leaf, leaves; cheval, chevaux). In an
output, the endings may be longer, and words of three letters take the commonest ones (rot, roten). In scripts without
spaces each character is a unit; so is each sign.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final, Literal, final

from heedful.text.scripts import UNSPACED, script_of

Use = Literal["exact", "stem", ""]
"""Form of a term in an output: the target form itself, another form of its words, or none."""

_STEM: Final = 4
_ENDING: Final = 3
_SHORT: Final = 3
_SHORT_ENDINGS: Final = frozenset({"", "e", "n", "s", "em", "en", "er", "es"})
"""Endings of words of three letters in outputs."""
_REGULAR: Final = frozenset({("y", "ies"), ("f", "ves"), ("fe", "ves"), ("l", "ux")})
"""Pairs of endings that replace letters, in English and French."""


@final
@dataclass(frozen=True)
class Term:
    """Source term and the form that translations shall have for it."""

    source: str
    target: str
    note: str = ""
    origin: str = field(default="", compare=False, repr=False)
    """File and line, or concept, for messages; empty = unknown."""

    def used(self, output: str) -> Use:
        """Find the target form in an output.

        Returns:
            "exact" where the form stands in it, "stem" where only other forms of its words do, else "".
        """
        wanted = split_units(self.target)
        form = split_units(self.form_in(output))
        return "exact" if form == wanted else "stem" if form else ""

    def form_in(self, output: str) -> str:
        """Find the words of an output that are the target form, or else another form of its words.

        Returns:
            The words as the output has them; empty where there are none.
        """
        output = unicodedata.normalize("NFC", output)
        ranges = unit_ranges(output)
        units, wanted = [output[start:stop] for start, stop in ranges], split_units(self.target)
        other, words = [unit.casefold() for unit in units], folded_units(self.target)
        starts = range(len(units))
        exact = (start for start in starts if units[start : start + len(wanted)] == wanted)
        inflected = (start for start in starts if _matches(words, other[start:], _is_use))
        start = next(exact, next(inflected, None))
        return "" if start is None else output[ranges[start][0] : ranges[start + len(wanted) - 1][1]]


@final
@dataclass(frozen=True)
class TermPlace:
    """Term with the characters of a source that it stands for."""

    term: Term
    start: int
    """Index of its first character."""
    stop: int
    """Index after its last character."""


@final
@dataclass(frozen=True)
class Terms:
    """List of terms."""

    terms: tuple[Term, ...]

    def match(self, source: str) -> list[Term]:
        """Find the terms of a source.

        Returns:
            The terms in the order of their places. Of overlapping ones the longest counts; of equally long ones the one
            whose words are not inflected, then the first.
        """
        return [match.term for match in self.find(unicodedata.normalize("NFC", source))]

    def find(self, source: str) -> "list[TermPlace]":
        """Find the places of the terms of a source.

        Returns:
            The terms of `match`, with their characters.
        """
        ranges = unit_ranges(source)
        units = [source[start:stop].casefold() for start, stop in ranges]
        spans = [
            (start, start + len(words), term)
            for start, unit in enumerate(units)
            for words, term in self._by_stem.get(without_marks(unit)[:_SHORT], ())
            if _matches(words, units[start:], _is_form)
        ]
        spans.sort(
            key=lambda span: (
                -_size(units[span[0] : span[1]]),
                units[span[0] : span[1]] != folded_units(span[2].source),
            )
        )
        is_free = [True] * len(units)
        chosen: list[TermPlace] = []
        for start, stop, term in spans:
            if all(is_free[start:stop]):
                is_free[start:stop] = [False] * (stop - start)
                chosen.append(TermPlace(term, ranges[start][0], ranges[stop - 1][1]))
        return sorted(chosen, key=lambda match: match.start)

    @cached_property
    def _by_stem(self) -> Mapping[str, Sequence[tuple[list[str], Term]]]:
        """Terms with their units, by the first letters of the first."""
        index: defaultdict[str, list[tuple[list[str], Term]]] = defaultdict(list)
        for term in self.terms:
            words = folded_units(term.source)
            index[without_marks(words[0])[:_SHORT]].append((words, term))
        return dict(index)


@final
@dataclass
class TermCounts:
    """Numbers of the terms of sources, and of those that outputs use."""

    num_terms: int = 0
    num_exact: int = 0
    num_stem: int = 0
    """Terms that are used in another form of their words only."""

    @classmethod
    def of(cls, terms: Terms, sources: Sequence[str], outputs: Sequence[str]) -> "TermCounts":
        """Count the terms that outputs use.

        Args:
            outputs: the output of each.

        Returns:
            The counts; a term that occurs twice in a source counts once.
        """
        counts = cls()
        for source, output in zip(sources, outputs, strict=True):
            for term in dict.fromkeys(terms.match(source)):
                use = term.used(output)
                counts.num_terms += 1
                counts.num_exact += use == "exact"
                counts.num_stem += use == "stem"
        return counts

    def __str__(self) -> str:
        if not self.num_terms:
            return "terms: none in the sources"
        exact, other = (100 * number / self.num_terms for number in (self.num_exact, self.num_stem))
        return f"terms: {self.num_terms:,} in the sources, {exact:.1f} % used in their form, {other:.1f} % in another"


def split_units(text: str) -> list[str]:
    """Split a text into words, characters of scripts without spaces, and signs.

    Returns:
        The units.

    Example:
        >>> split_units("C++ im Jahr 2026, 你好")
        ['C', '+', '+', 'im', 'Jahr', '2026', ',', '你', '好']
    """
    return [text[start:stop] for start, stop in unit_ranges(text)]


def unit_ranges(text: str) -> list[tuple[int, int]]:
    """Locate the units of a text.

    Returns:
        Index of the first character of each unit of `split_units`, and the index after its last one.
    """
    ranges: list[tuple[int, int]] = []
    for run in _units(frozenset(filter(_is_mark, text))).finditer(text):
        begin = run.start()
        for index in range(run.start(), run.end()):
            if script_of(text[index]) in UNSPACED:
                ranges += [(begin, index)] * (begin < index) + [(index, index + 1)]
                begin = index + 1
        if begin < run.end():
            ranges.append((begin, run.end()))
    return ranges


def is_word(unit: str) -> bool:
    """Tell whether a unit is a word, not a sign.

    Args:
        unit: a unit of `split_units`, or several together.

    Returns:
        Whether it consists of letters and digits, and of marks such as vowel signs.

    Example:
        >>> is_word("किताब"), is_word("2026"), is_word("+")
        (True, True, False)
    """
    return all(letter.isalnum() or _is_mark(letter) for letter in unit)


def _is_mark(letter: str) -> bool:
    return not letter.isascii() and unicodedata.category(letter).startswith("M")


@lru_cache(maxsize=64)  # texts of users choose the marks
def _units(marks: frozenset[str]) -> re.Pattern[str]:
    r"""Pattern of words and signs; marks such as vowel signs, which are no part of \\w, belong to words."""
    letters = rf"\w{re.escape(''.join(sorted(marks)))}"
    return re.compile(rf"[{letters}]+|[^{letters}\s]")


def folded_units(text: str) -> list[str]:
    """Split a text into units regardless of case.

    Returns:
        The units of `split_units` in NFC, case folded.
    """
    return [unit.casefold() for unit in split_units(unicodedata.normalize("NFC", text))]


def _size(units: Sequence[str]) -> int:
    return sum(map(len, units))


def _matches(words: Sequence[str], units: Sequence[str], are_forms: Callable[[str, str], bool]) -> bool:
    """Tell whether the first units of a text are forms of the words of a term."""
    return len(words) <= len(units) and all(map(are_forms, words, units))


def _is_use(word: str, other: str) -> bool:
    """Tell whether a unit of an output is a form of a word of a term."""
    if word == other:
        return True
    stem, *endings = _stem_and_endings(word, other)
    shorter, longer = sorted(map(len, endings))
    if len(word) == _SHORT == stem:
        return endings[1] in _SHORT_ENDINGS
    return _is_regular(stem, endings) or (stem >= _STEM and shorter <= 1 and longer <= min(_ENDING, stem // 2))


def _is_form(word: str, other: str) -> bool:
    """Tell whether a unit of a source is a form of a word of a term."""
    if word == other:
        return True
    stem, *endings = _stem_and_endings(word, other)
    shorter, longer = sorted(map(len, endings))
    most = min(_ENDING, stem - _STEM if shorter else stem // 2)
    return _is_regular(stem, endings) or (stem >= _STEM and shorter <= 1 and longer <= most)


def _is_regular(stem: int, endings: Sequence[str]) -> bool:
    return stem >= _SHORT and not _REGULAR.isdisjoint({tuple(endings), tuple(reversed(endings))})


def _stem_and_endings(word: str, other: str) -> tuple[int, str, str]:
    """Number of letters that two words share, accents aside, 0 for signs; and the letters of each that follow."""
    left, right = without_marks(word), without_marks(other)
    size = min(len(left), len(right))
    stem = next((index for index in range(size) if left[index] != right[index]), size)
    return stem if is_word(left + right) and not any(map(str.isdigit, left + right)) else 0, left[stem:], right[stem:]


def without_marks(word: str) -> str:
    """Remove the accents of a word, which inflection may change (Haus, Häuser).

    Returns:
        The text in NFC, without combining marks.
    """
    letters = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", "".join(one for one in letters if unicodedata.category(one) != "Mn"))
