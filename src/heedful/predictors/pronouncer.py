"""Pronouncer: a model from letters to phones that is asked for the pronunciations of words."""

import unicodedata
from collections.abc import Iterable, Iterator
from math import exp
from typing import Final, final

import regex

from heedful.predictors.translation import Translation
from heedful.predictors.translator import Translator
from heedful.search.config import with_outputs
from heedful.text.pronunciations import Pronunciation
from heedful.text.vocabulary import UNK

_PLAIN: Final = str.maketrans("’‘‐‑", "''--")
_LETTER: Final = regex.compile(r"\X")


@final
class Pronouncer:
    """Pronouncer of words with one model."""

    def __init__(self, translator: Translator) -> None:
        """Learn from the vocabulary how phones are told apart.

        Args:
            translator: model from letters to phones.
        """
        self.translator: Final = translator
        target = translator.target_tokenizer
        pieces = target.pieces(range(len(target)))
        # Phones of several letters stand between spaces; without spaces each letter, with its marks, is a phone.
        self._has_spaces: Final = translator.text.target_units == "words" or any(
            " " in piece or "▁" in piece for piece in pieces
        )

    def reading(self, word: str) -> str:
        """Return the form of a word whose letters the model knows.

        Returns:
            The word, or in lower, upper or title case; else without typographic forms such as ’ and ﬁ; else without
            accents; empty if it has letters that the model does not know.
        """
        tokenizer = self.translator.source_tokenizer
        plain = unicodedata.normalize("NFKC", word).translate(_PLAIN)
        bare = "".join(one for one in unicodedata.normalize("NFD", plain) if not unicodedata.combining(one))
        forms = dict.fromkeys(
            form for one in (word, plain, bare) for form in (one, one.lower(), one.upper(), one.title())
        )
        return next((form for form in forms if UNK not in tokenizer.encode(form)), "")

    def pronounce(
        self, words: Iterable[str], number: int = 1, min_probability: float = 0.0
    ) -> Iterator[tuple[Pronunciation, ...]]:
        """Pronounce words.

        Args:
            words: words as `reading` returns them.
            number: largest number of pronunciations of a word.
            min_probability: probability that further pronunciations have at least, by that of the best.

        Yields:
            The pronunciations of each word, best first; none if the model writes no phones, or cannot read the whole
            word.
        """
        search = with_outputs(self.translator.search, 0, number)
        for output in self.translator.stream(words, search, segments=None):
            yield () if output.was_cut else tuple(self._of(output, min_probability))

    def _of(self, output: Translation, min_probability: float) -> Iterator[Pronunciation]:
        least = exp(max(each.log_prob for each in output.alternatives)) * min_probability
        # The search ranks outputs by probability and length; a lexicon has probabilities alone.
        for number, one in enumerate(sorted(output.alternatives, key=lambda each: -each.log_prob)):
            phones = one.text.split() if self._has_spaces else _LETTER.findall(one.text)
            if phones and (not number or exp(one.log_prob) >= least):
                yield Pronunciation(tuple(phones), exp(one.log_prob))
