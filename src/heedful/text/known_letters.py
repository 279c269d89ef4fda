"""Letters that a model of characters knows, and the forms in which it reads words with others."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final, final

_WORD: Final = re.compile(r"\S+")
_ACCENT: Final = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f]"
)
"""Accents, points of Hebrew and vowels of Arabic; without them a letter is still the same, other than without a voicing
mark of Japanese or a vowel of an Indian script."""
_PLAIN: Final = str.maketrans("’‘‐‑", "''--")


@final
class KnownLetters:
    """Letters that a model knows."""

    def __init__(self, letters: Iterable[str]) -> None:
        """Store them.

        Args:
            letters: characters of the vocabulary.
        """
        self._letters: Final = frozenset(letters)

    def fold(self, text: str) -> str:
        """Write words with unknown letters in forms whose letters are known; all other words stay.

        Args:
            text: text in its normal form.

        Returns:
            The text with, for each such word, the first form that has the fewest unknown letters: as it is, in lower,
            upper or title case, the same without typographic forms such as ’ and ﬁ, the same without accents.

        Example:
            >>> KnownLetters("abcdefghijklmnopqrstuvwxyz '").fold("HÉLLO don’t 北")
            "hello don't 北"

        Cost: linear in the text.
        """
        return text if self._letters.issuperset(text) else _WORD.sub(lambda word: self._known_form(word[0]), text)

    def unknown(self, text: str) -> tuple[str, ...]:
        """List the characters of a text that the model does not know in any form.

        Returns:
            Each once, in their order, a space within the text included.

        Example:
            >>> KnownLetters("abc").unknown("A1 1é ")
            ('1', ' ', 'é')
        """
        if self._letters.issuperset(text):
            return ()
        folded = self.fold(text).strip()
        if self._letters.issuperset(folded):
            return ()
        # As they stand in the text: a word may be read in another case and still have an unknown letter.
        own = [one for one in dict.fromkeys(text.strip()) if _bare(one) and self._num_unknown(self._known_form(one))]
        return tuple(own) or tuple(dict.fromkeys(one for one in folded if one not in self._letters))

    def _known_form(self, word: str) -> str:
        best, fewest = word, self._num_unknown(word)
        for base in (_same, _plain, _bare):
            written = "".join(map(base, word))
            for form in (written, written.lower(), written.upper(), written[:1].upper() + written[1:].lower()):
                if not fewest:
                    return best
                if (number := self._num_unknown(form)) < fewest:
                    best, fewest = form, number
        return best

    def _num_unknown(self, word: str) -> int:
        return len(word) - sum(map(self._letters.__contains__, word)) if word else 1


def _same(character: str) -> str:
    return character


def _plain(character: str) -> str:
    return unicodedata.normalize("NFKC", character).translate(_PLAIN)


def _bare(character: str) -> str:
    return _ACCENT.sub("", unicodedata.normalize("NFD", _plain(character)))
