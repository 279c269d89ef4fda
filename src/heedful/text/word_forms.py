"""Usual forms of words: how the sources of a model write each word, for texts in other case or without marks.

A model reads "hund", "HUND" or "Haende" as rare pieces of words, although it knows "Hund" and "Hände". A text in lower
case, in Title Case or in upper case is therefore read with the usual form of each word, and a word that no source has
with the letters of one that differs from it only in their marks.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self, final

from heedful.errors import DataError
from heedful.files.atomic_write import atomic_write
from heedful.files.formats import KEY, WORD_FORMS_FORMAT
from heedful.text.lines import read_lines

if TYPE_CHECKING:
    from heedful.text.tokenizer import Tokenizer

Case = Literal["lower", "title", "upper", ""]
"""Unusual case of a whole text; empty = none."""
WORD: Final = re.compile(r"[^\W\d_]++(?:['’][^\W\d_]++)*+")
_MARKED: Final = re.compile(r"[^\W\d_\x00-\x7f]")
"""Letter that ASCII does not have."""
MOST_WORDS: Final = 100_000
"""Number of words of a table, the most frequent ones."""
_HEADER: Final = re.compile(r"#heedful word forms (\d{1,9})( without capitals)?")
_FEWEST_LETTERS: Final = 4
"""Number of letters from which on a text in upper case is no abbreviation."""
_FEWEST_WORDS: Final = 3
"""Number of words from which on a text in Title Case is no name, and one in lower case begins with a capital."""
_DIGRAPHS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "œ": "oe", "ø": "oe"})
_PLAIN: Final = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i"})


def case_of(text: str) -> Case:
    """Find the unusual case of a text.

    Args:
        text: text without what stays as it is.

    Returns:
        "upper" for a text in capitals, "title" for three words or more that all begin with one, "lower" for words
        without any; empty for all others, and in scripts without case.

    Example:
        >>> [case_of(text) for text in ("EIN HUND BELLT", "Ein Hund Bellt Laut", "ein hund bellt", "Ein Hund bellt")]
        ['upper', 'title', 'lower', '']
    """
    if text.isupper():
        return "upper" if sum(map(str.isalpha, text)) >= _FEWEST_LETTERS else ""
    if text.islower():
        return "lower"
    num_words = 0
    for match in WORD.finditer(text):
        if match[0][0].islower():
            return ""
        num_words += match[0][0].isupper()
    return "title" if num_words >= _FEWEST_WORDS else ""


@final
class WordForms:
    """Usual form of each word of the training sources of a model.

    On disk, each form is a line, the most frequent word first.
    """

    def __init__(self, forms: Iterable[str], tokenizer: "Tokenizer", has_capitals: bool = True) -> None:
        """Create a table.

        Args:
            forms: the usual forms, the most frequent one first.
            tokenizer: tokenizer of the sources. It decides the case of words that have no usual form: fewer tokens are
                better.
            has_capitals: whether texts begin with a capital.
        """
        self.has_capitals: Final = has_capitals
        self._usual: Final[dict[str, str]] = {}
        for form in forms:
            self._usual.setdefault(form.lower(), form)
        self._tokenizer: Final = tokenizer

    def __len__(self) -> int:
        return len(self._usual)

    @classmethod
    def learn(cls, texts: Iterable[str], tokenizer: "Tokenizer") -> Self:
        """Learn the usual forms from texts.

        The first word of a text does not count, because it begins with a capital in any case; a word that is only ever
        the first gets the case with fewer tokens.

        Args:
            tokenizer: as for `WordForms`.
        """
        within: dict[str, Counter[str]] = {}
        first: Counter[str] = Counter()
        num_capitals = 0
        for text in texts:
            for index, word in enumerate(WORD.findall(text)):
                key = word.lower()
                if index:
                    within.setdefault(key, Counter())[word] += 1
                else:
                    first[key] += 1
                    num_capitals += word[0].isupper()
        counts = first + Counter({key: forms.total() for key, forms in within.items()})
        empty = cls((), tokenizer)
        ranked = sorted(counts, key=lambda key: (-counts[key], key))[:MOST_WORDS]
        forms = (_most_frequent(within[key]) if key in within else empty.usual(key) for key in ranked)
        return cls(
            (form for form in forms if form.lower() != form.upper()), tokenizer, 2 * num_capitals > first.total()
        )

    @classmethod
    def load(cls, path: Path, tokenizer: "Tokenizer") -> Self:
        """Read a table written by `save`.

        Args:
            tokenizer: as for `WordForms`.

        Raises:
            DataError: the file cannot be read or is no such table.
            NewerFormat: a newer heedful wrote it.
        """
        lines = iter(read_lines(path, nul="refuse"))
        header = _HEADER.fullmatch(next(lines, ""))
        if header is None:
            raise DataError(f"{path}:1: no table of word forms; copy the file again")
        WORD_FORMS_FORMAT.check(path, {KEY: int(header[1])})
        return cls(lines, tokenizer, header[2] is None)

    def save(self, path: Path) -> None:
        """Write the table.

        Args:
            path: the file; an existing file is replaced only when the new one is complete.
        """
        with atomic_write(path) as stream:
            capitals = "" if self.has_capitals else " without capitals"
            stream.write(f"#heedful word forms {WORD_FORMS_FORMAT.version}{capitals}\n")
            stream.writelines(f"{form}\n" for form in self._usual.values())

    def lacks(self, word: str) -> bool:
        """Tell whether no source has a word, in any case and with any marks; false for all words of an empty table."""
        return bool(self._usual) and word.lower() not in self._usual and word.lower() not in self._marked

    def usual(self, word: str) -> str:
        """Usual form of a word; of one that has none, lower case or with a capital, whichever takes fewer tokens.

        Where both take as many, a word like "Kowalski" stays, and all others are written in lower case.

        Example:
            >>> WordForms(["Hund"], characters).usual("HUND")  # doctest: +SKIP
            'Hund'
        """
        lower = word.lower()
        form = self._usual.get(lower) or self._marked.get(lower)
        capital = lower[:1].upper() + lower[1:]
        return form or min(*((word, lower) if word == capital else (lower, capital)), key=self._num_tokens)

    def _num_tokens(self, word: str) -> int:
        return len(self._tokenizer.encode(word))

    def restored(self, text: str) -> str:
        """Write a text in unusual case with the usual forms of its words, and restore marks in a text without any.

        Args:
            text: text without what stays as it is, such as addresses.

        Returns:
            The text with as many words and the same characters between them.

        Example:
            >>> forms = WordForms(["Hund", "ein", "läuft", "im", "Schnee", "Hände"], tokenizer)  # doctest: +SKIP
            >>> forms.restored("EIN HUND LÄUFT IM SCHNEE"), forms.restored("Haende im Schnee")  # doctest: +SKIP
            ('Ein Hund läuft im Schnee', 'Hände im Schnee')
        """
        if not case_of(text):
            text = self._without_shouting(text)
            return text if _MARKED.search(text) else WORD.sub(lambda match: self._with_marks(match[0]), text)
        words = WORD.findall(text)
        read = [*map(self.usual, words)]
        if self.has_capitals and len(words) >= _FEWEST_WORDS:
            read[0] = read[0][:1].upper() + read[0][1:]
        # A letter may become two characters in lower case, of which one is no letter.
        forms = iter(form if WORD.fullmatch(form) else word for form, word in zip(read, words, strict=True))
        return WORD.sub(lambda match: next(forms), text)

    def begins_in_lower_case(self, text: str) -> bool:
        """Tell whether a text begins with a word in lower case, unlike the sources of the model."""
        word = WORD.match(text) if self._usual and self.has_capitals else None
        return word is not None and word[0].islower() and len(word[0][0].upper()) == 1

    def _without_shouting(self, text: str) -> str:
        """Text whose words in capitals have their usual forms: those of four letters, and those beside others.

        Short ones by themselves may be abbreviations, and what has no usual form may be a name: both stay.
        """
        matches = [*WORD.finditer(text)]
        shouted = [len(match[0]) > 1 and match[0].isupper() for match in matches]
        parts, end = list[str](), 0
        for index, match in enumerate(matches):
            is_beside = any(shouted[max(0, index - 1) : index]) or any(shouted[index + 1 : index + 2])
            form = self._usual.get(match[0].lower(), "")
            if shouted[index] and form and (is_beside or len(match[0]) >= _FEWEST_LETTERS):
                if index == 0 and self.has_capitals:
                    form = form[:1].upper() + form[1:]
                parts += [text[end : match.start()], form]
                end = match.end()
        return "".join((*parts, text[end:]))

    def _with_marks(self, word: str) -> str:
        """The word, or the form that differs from it only in the marks of letters, with the same first letter."""
        form = self._marked.get(word.lower())
        if form is None or word.lower() in self._usual:
            return word
        return (form[:1].upper() if word[:1].isupper() else form[:1].lower()) + form[1:]

    @cached_property
    def _marked(self) -> dict[str, str]:
        """Usual forms with marks, by the spellings without them."""
        forms: dict[str, str] = {}
        for key, form in self._usual.items():
            if not key.isascii():
                for plain in (key.translate(_DIGRAPHS), _without_marks(key)):
                    if plain != key:
                        forms.setdefault(plain, form)
        return forms


def _without_marks(word: str) -> str:
    decomposed = unicodedata.normalize("NFD", word.translate(_PLAIN))
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def _most_frequent(forms: Counter[str]) -> str:
    return min(forms, key=lambda form: (-forms[form], form))


def origins_of(restored: str, text: str) -> list[int]:
    """Find where the characters of a restored text come from.

    Args:
        restored: text with as many words as `text`, and the same characters between them.

    Returns:
        Index in `text` for each character; the first and the last of a word are at its ends.
    """
    origins: list[int] = []
    last = 0
    for one, other in zip(WORD.finditer(restored), WORD.finditer(text), strict=True):
        origins += range(last, other.start())
        size, most = len(one[0]), len(other[0]) - 1
        origins += [other.start() + min(index, most) for index in range(size - 1)]
        last = other.end()
        origins.append(last - 1)
    return [*origins, *range(last, len(text))]
