"""Pronunciations of words, and the lines that the lexicons of speech programs have of them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Final, Literal, final

import regex

from heedful.text.chinese_words import chinese_word_spans, has_rows, tells_words_apart

LexiconFormat = Literal["sherpa", "sherpa-ipa", "cmudict", "mfa", "kaldi"]
"""Program whose lexicons have the format: sherpa-onnx, the same with voices whose tokens are letters of the IPA,
CMUdict, Montreal Forced Aligner, or Kaldi (lexiconp.txt)."""
_VARIANT: Final = re.compile(r"(?<=.)\(\d+\)\Z")
_PROBABILITY: Final = re.compile(r"[0-9]*\.[0-9]+")
_BEGIN_NUMBERS: Final = frozenset(".0123456789")
_IPA: Final = re.compile("[\u0250-\u02b8\u02c0-\u02ff\u0361]")
"""Letter that pronunciations in the IPA have and spelling rarely has: IPA Extensions, marks of stress, length and tone,
and the tie above two letters."""
_IPA_MARKS: Final = frozenset("ˈˌːˑ˥˦˧˨˩\u0361")
"""Marks among them that no spelling has."""
_LEAST_LETTERS: Final = 6
"""Number of different letters of the IPA without such marks; Azerbaijani has one in its spelling, Ewe five."""
_LEAST_IPA: Final = 0.3
"""Least share of pronunciations with such a letter; in 72,000 Romanian and 10,000 Greek words it is 0.51 and 0.45."""
_MOST_WITH_SPACES: Final = 0.05
_WORD: Final = regex.compile(r"[\p{L}\p{M}]+(?:['’-][\p{L}\p{M}]+)*")


@final
@dataclass(frozen=True, slots=True)
class Pronunciation:
    """Pronunciation of a word."""

    phones: tuple[str, ...]
    probability: float
    """Probability of the phones given the word, in [0, 1]; 1 for those of a lexicon."""


def has_ipa(texts: Iterable[str]) -> bool:
    """Tell whether texts have marks of the IPA, or several of its letters.

    Example:
        >>> has_ipa(["ˈhufs"]), has_ipa(["dəftər"])
        (True, False)
    """
    letters = {*chain.from_iterable(map(_IPA.findall, texts))}
    return not _IPA_MARKS.isdisjoint(letters) or len(letters) >= _LEAST_LETTERS


def are_in_ipa(words: Sequence[str], pronunciations: Sequence[str]) -> bool:
    """Tell whether texts are pronunciations in the IPA, written without spaces, as of CharsiuG2P and Wiktionary.

    Returns:
        True where enough of them have letters of the IPA, and the words have none.

    Example:
        >>> are_in_ipa(["hoofs", "tone"], ["ˈhufs,ˈhʊfs", "ˈtoʊn"]), are_in_ipa(["Hund"], ["dog"])
        (True, False)
    """
    most_with_spaces = _MOST_WITH_SPACES * len(pronunciations)
    return (
        sum(map(bool, map(_IPA.search, pronunciations))) >= max(1, _LEAST_IPA * len(pronunciations))
        and sum(" " in one for one in pronunciations) <= most_with_spaces
        and sum(map(bool, map(_IPA.search, words))) <= most_with_spaces
        and has_ipa(pronunciations)
    )


def alternatives(pronunciations: str) -> list[str]:
    """Divide pronunciations of one word that have commas between them.

    Example:
        >>> alternatives("ˈhufs,ˈhʊfs"), alternatives(",")
        (['ˈhufs', 'ˈhʊfs'], [','])
    """
    return [one for one in map(str.strip, pronunciations.split(",")) if one] or [pronunciations]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Find the words of a text.

    Returns:
        Start and end of each, in characters, without numbers and punctuation. Words of Chinese are told apart by jieba,
        where it is installed.
    """
    spans = [match.span() for match in _WORD.finditer(text)]
    if text.isascii() or not (has_rows(text) and tells_words_apart()):
        return spans
    return [word for span in spans for word in chinese_word_spans(text, *span)]


def words_of(text: str) -> list[str]:
    """List the words of a text, without numbers and punctuation.

    Example:
        >>> words_of("Don't wait: 3 well-known words.")
        ["Don't", 'wait', 'well-known', 'words']
    """
    return [text[start:end] for start, end in word_spans(text)]


@final
@dataclass(frozen=True)
class PronouncedWord:
    """Word in a text."""

    start: int
    """Its first character, or that of the number, date or abbreviation that it is read from."""
    end: int
    """The character behind its last."""
    word: str
    phones: tuple[str, ...]
    """Its pronunciation; empty = none is known."""
    probability: float
    """Probability of the phones given the word, in [0, 1]; 1 for those of a lexicon, 0 without phones."""


@final
@dataclass(frozen=True)
class PronouncedText:
    """Text and the pronunciations of its words."""

    text: str
    words: tuple[PronouncedWord, ...]
    """In their order."""

    def shown(self, has_spaces: bool) -> str:
        """Write the text with phones in the place of its words; all else stays.

        Args:
            has_spaces: whether phones of a word stand between spaces, and the word between braces.

        Example:
            >>> word = PronouncedWord(0, 2, "Hi", ("HH", "AY1"), 0.9)
            >>> PronouncedText("Hi, 3!", (word,)).shown(True), PronouncedText("Hi, 3!", (word,)).shown(False)
            ('{HH AY1}, 3!', 'HHAY1, 3!')

        What is read as several words, such as a number, has their phones if all of them have some.
        """
        parts: list[str] = []
        last = 0
        for (start, end), group in groupby(self.words, lambda one: (one.start, one.end)):
            words = [one.phones for one in group]
            if all(words):
                written = ["{" + " ".join(phones) + "}" if has_spaces else "".join(phones) for phones in words]
                parts += [self.text[last:start], " ".join(written)]
                last = end
        return "".join([*parts, self.text[last:]])


def entry_of(line: str) -> tuple[str, tuple[str, ...]] | None:
    """Read a line of a lexicon in any format that is written here.

    Returns:
        Word and phones, without the number of a variant, probabilities and a comment; None for a comment or a line
        without phones.

    Example:
        >>> entry_of("READ(2)  R IY1 D"), entry_of("read 0.5000 R IY1 D"), entry_of(";;; comment")
        (('READ', ('R', 'IY1', 'D')), ('read', ('R', 'IY1', 'D')), None)
    """
    text = (line.partition(" #")[0] if "#" in line else line).strip()
    word, _, rest = text.partition(" || " if " || " in text else "\t" if "\t" in text else " ")
    listed = rest.split()
    while listed and listed[0][0] in _BEGIN_NUMBERS and _PROBABILITY.fullmatch(listed[0]):
        del listed[0]
    if not listed or word.startswith(("#", ";;;")):
        return None
    return _VARIANT.sub("", word) if word.endswith(")") else word, tuple(listed)


def entry_lines(word: str, pronunciations: Sequence[Pronunciation], kind: LexiconFormat) -> str:
    r"""Write the pronunciations of a word as a lexicon has them.

    Args:
        pronunciations: the pronunciations, best first, at least one.

    Returns:
        A line for each, with its end; for sherpa-ipa one for the best, since the program takes the last of a word.

    Example:
        >>> two = [Pronunciation(("R", "EH1", "D"), 0.6), Pronunciation(("R", "IY1", "D"), 0.3)]
        >>> print(entry_lines("READ", two, "cmudict"), end="")
        READ  R EH1 D
        READ(2)  R IY1 D
        >>> entry_lines("read", two, "kaldi")
        'read 1.0000 R EH1 D\nread 0.5000 R IY1 D\n'
    """
    best = pronunciations[0].probability or 1.0
    lines: list[str] = []
    for number, one in enumerate(pronunciations[:1] if kind == "sherpa-ipa" else pronunciations, start=1):
        phones = " ".join(one.phones)
        variant = f"({number})" if number > 1 else ""
        share = one.probability / best if number > 1 else 1.0
        lines.append(
            {
                "sherpa": f"{word} {phones}",
                "sherpa-ipa": f"{word} || {phones}",
                "cmudict": f"{word}{variant}  {phones}",
                "mfa": f"{word}\t{max(one.probability, 0.01):.2f}\t{phones}",
                "kaldi": f"{word} {min(1.0, max(1e-4, share)):.4f} {phones}",
            }[kind]
        )
    return "".join(f"{line}\n" for line in lines)
