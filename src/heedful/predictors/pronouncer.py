"""Pronouncer: a model from letters to phones that is asked for the pronunciations of words."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp
from typing import Final, final

import regex

from heedful.predictors.translation import Translation
from heedful.predictors.translator import Translator
from heedful.search.config import with_outputs
from heedful.text.kept import find_kept
from heedful.text.pronunciations import PronouncedText, PronouncedWord, Pronunciation, word_spans
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
        self.has_spaces: Final = translator.text.target_units == "words" or any(
            " " in piece or "▁" in piece for piece in pieces
        )
        """Whether phones stand between spaces in outputs."""

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

    def pronounce_texts(
        self, texts: Sequence[str], known: Mapping[str, Sequence[Pronunciation]] | None = None
    ) -> list[PronouncedText]:
        """Pronounce the words of running texts, each word once for all of them.

        A word has one pronunciation wherever it stands: its sentence is not looked at.

        Args:
            texts: texts of any length.
            known: pronunciations of a lexicon by word, which are taken first.

        Returns:
            Each text with the pronunciations of its words, of which addresses, tags, placeholders and code have none;
            those with letters that the model does not know have none.
        """
        lexicon = known or {}
        spans = [_spoken_spans(text) for text in texts]
        places = [(text, *span) for text, ends in zip(texts, spans, strict=True) for span in ends]
        words = dict.fromkeys(text[start:end] for text, start, end in places)
        forms = {word: self.form(word, lexicon) for word in words}
        unknown = [form for form in dict.fromkeys(forms.values()) if form and form not in lexicon]
        best: dict[str, Sequence[Pronunciation]] = dict(zip(unknown, self.pronounce(unknown), strict=True))

        def pronounced(text: str, start: int, end: int) -> PronouncedWord:
            word = text[start:end]
            known_ones = lexicon.get(forms[word]) or best.get(forms[word]) or [Pronunciation((), 0.0)]
            return PronouncedWord(start, end, word, known_ones[0].phones, known_ones[0].probability)

        return [
            PronouncedText(text, tuple(pronounced(text, *span) for span in ends))
            for text, ends in zip(texts, spans, strict=True)
        ]

    def form(self, word: str, known: Mapping[str, object]) -> str:
        """Return the form under which a word is known, to a lexicon or else to the model.

        Args:
            word: one word.
            known: words of the lexicon.

        Returns:
            The word itself or in lower or upper case, if the lexicon has it; else its `reading`.
        """
        return next((form for form in (word, word.lower(), word.upper()) if form in known), "") or self.reading(word)

    def _of(self, output: Translation, min_probability: float) -> Iterator[Pronunciation]:
        least = exp(max(each.log_prob for each in output.alternatives)) * min_probability
        # The search ranks outputs by probability and length; a lexicon has probabilities alone.
        for number, one in enumerate(sorted(output.alternatives, key=lambda each: -each.log_prob)):
            phones = one.text.split() if self.has_spaces else _LETTER.findall(one.text)
            if phones and (not number or exp(one.log_prob) >= least):
                yield Pronunciation(tuple(phones), exp(one.log_prob))


def _spoken_spans(text: str) -> list[tuple[int, int]]:
    """Words of a text without those in spans that every task leaves as they are."""
    fixed = find_kept(text)
    return [span for span in word_spans(text) if not any(one.start < span[1] and span[0] < one.end for one in fixed)]
