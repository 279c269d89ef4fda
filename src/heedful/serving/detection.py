"""Language detection among the source languages of the loaded models, by their own vocabularies.

A tokenizer splits text of its own language into few, long tokens, and text of another into many short ones or unknown
ones. Two languages whose models share one vocabulary cannot be told apart in this way; both then get low confidence.
"""

import math
from typing import Final, NamedTuple, final

from heedful.errors import DataError
from heedful.predictors.translator import Translator
from heedful.serving.catalog import Catalog
from heedful.text.vocabulary import UNK

_MOST_CHARACTERS: Final = 500
_SHARPNESS: Final = 6.0
"""Nats by which a language leads another that needs twice as many tokens for the same text."""


class Guess(NamedTuple):
    """Language with its confidence."""

    language: str
    confidence: float
    """Percent, from 0 to 100."""


@final
class Detector:
    """Detector of the source language of a text."""

    def __init__(self, catalog: Catalog) -> None:
        """Take the tokenizers of the models."""
        self._translators: Final[dict[str, Translator]] = {}
        for (source, _), translator in catalog.models.items():
            self._translators.setdefault(source, translator)

    def detect(self, text: str) -> list[Guess]:
        """Guess the language of a text.

        Args:
            text: any text; its first 500 characters are looked at.

        Returns:
            Every source language, best first; none without translators. The confidences add up to at most 100; a text
            whose characters no model knows has low confidence for all.
        """
        if not self._translators:
            return []
        sample = " ".join(text[:_MOST_CHARACTERS].split())
        if not any(character.isalnum() for character in sample):
            return [Guess(language, 0.0) for language in self._translators]
        fits = {language: _fit(translator, sample) for language, translator in self._translators.items()}
        weights = {language: math.exp(_SHARPNESS * math.log2(fit.share + 1e-9)) for language, fit in fits.items()}
        total = sum(weights.values())
        known = max(fit.known for fit in fits.values())
        guesses = [Guess(language, round(100 * known * weight / total, 1)) for language, weight in weights.items()]
        return sorted(guesses, key=lambda guess: -guess.confidence)


class _Fit(NamedTuple):
    share: float
    """Characters per token, those of unknown tokens left out."""
    known: float
    """Fraction of the tokens that the vocabulary has."""


def _fit(translator: Translator, text: str) -> _Fit:
    try:
        ids = translator.source_tokenizer.encode(text)
    except DataError:  # not the columns that the model reads
        ids = []
    if not len(ids):
        return _Fit(0.0, 0.0)
    known = sum(token != UNK for token in ids) / len(ids)
    return _Fit(known * known * len(text) / len(ids), known)
