"""Pronouncer: a model from letters to phones that is asked for the pronunciations of words."""

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import exp
from operator import itemgetter
from typing import Final, final

import regex

from heedful.predictors.form_reader import FormReader, Reading
from heedful.predictors.translation import Translation
from heedful.predictors.translator import Translator
from heedful.search.config import with_outputs
from heedful.text.column_tokenizer import ColumnTokenizer
from heedful.text.columns import join_columns
from heedful.text.kept import find_kept
from heedful.text.pronunciations import PronouncedText, PronouncedWord, Pronunciation, word_spans, words_of
from heedful.text.sentences import sentence_spans
from heedful.text.vocabulary import UNK

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
        tokenizer = translator.source_tokenizer
        self.reads_sentences: Final = isinstance(tokenizer, ColumnTokenizer) and {*tokenizer.kinds} == {"text"}
        """True for sources of two columns of text: a word and its sentence."""
        self._letters: Final = tokenizer.text if isinstance(tokenizer, ColumnTokenizer) else tokenizer
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
        normal = self._letters.normalize(word)
        return "" if UNK in self._letters.encode(normal) else normal

    def pronounce(
        self, words: Iterable[str], number: int = 1, min_probability: float = 0.0, beam: int = 0
    ) -> Iterator[tuple[Pronunciation, ...]]:
        """Pronounce words.

        Args:
            words: words as `reading` returns them; for a model that reads sentences, each with its own behind it as
                `join_columns` writes them.
            number: largest number of pronunciations of a word.
            min_probability: probability that further pronunciations have at least, by that of the best.
            beam: number of hypotheses carried; 0 = the model's default.

        Yields:
            The pronunciations of each word, best first; none if the model writes no phones, or cannot read the whole
            word.
        """
        search = with_outputs(self.translator.search, beam, number)
        for output in self.translator.stream(words, search, segments=None):
            yield () if output.was_cut else tuple(self._of(output, min_probability))

    def pronounce_texts(
        self,
        texts: Sequence[str],
        known: Mapping[str, Sequence[Pronunciation]] | None = None,
        reader: FormReader | None = None,
    ) -> list[PronouncedText]:
        """Pronounce the words of running texts, each word once for all of them.

        A word has one pronunciation wherever it stands, unless the model reads sentences.

        Args:
            texts: texts of any length.
            known: pronunciations of a lexicon by word, which are taken first.
            reader: reads numbers, dates and abbreviations, whose words are pronounced then; None = they stay.

        Returns:
            Each text with the pronunciations of its words, of which addresses, tags, placeholders and code have none;
            those with letters that the model does not know have none, nor have forms that the reader is not sure of.
        """
        lexicon = known or {}
        readings = reader.read(texts) if reader else [()] * len(texts)
        places = [_places(text, read) for text, read in zip(texts, readings, strict=True)]
        words = dict.fromkeys(word for spans in places for _, _, word in spans)
        forms = {word: self.form(word, lexicon) for word in words}
        sentences = [_Sentences(text) for text in texts]
        sources = {
            (forms[word], self._sentence(forms[word], within, start))
            for spans, within in zip(places, sentences, strict=True)
            for start, _, word in spans
            if forms[word] and forms[word] not in lexicon
        }
        ordered = sorted(sources)
        outputs = self.pronounce(join_columns(filter(None, source)) for source in ordered)
        best = dict(zip(ordered, outputs, strict=True))

        def pronounced(start: int, end: int, word: str, within: "_Sentences") -> PronouncedWord:
            form = forms[word]
            pronunciations = lexicon.get(form) or best.get((form, self._sentence(form, within, start)))
            first = pronunciations[0] if pronunciations else Pronunciation((), 0.0)
            return PronouncedWord(start, end, word, first.phones, first.probability)

        return [
            PronouncedText(text, tuple(pronounced(*span, within) for span in spans))
            for text, spans, within in zip(texts, places, sentences, strict=True)
        ]

    def _sentence(self, form: str, sentences: "_Sentences", start: int) -> str:
        """Sentence of a word as the model reads it, cut around a word far from both ends; empty if it reads none."""
        if not self.reads_sentences:
            return ""
        return sentences.around(start, max(1, self.translator.text.max_tokens - len(form) - 2))

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


@final
class _Sentences:
    """Sentences of a text."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        return [*sentence_spans(self._text)]

    def around(self, index: int, most: int) -> str:
        """Return the sentence at a character, or so many of its characters around that one."""
        first, last = self._spans[bisect(self._spans, (index, len(self._text))) - 1]
        if last - first > most:
            first = min(max(first, index - most // 2), last - most)
            last = first + most
        return " ".join(self._text[first:last].replace("|", " ").split())


def _places(text: str, readings: Sequence[Reading]) -> list[tuple[int, int, str]]:
    """Start, end and word of all that is pronounced, in order: words of a text and of its readings."""
    is_taken = bytearray(len(text))
    for one in (*find_kept(text), *readings):
        is_taken[one.start : one.end] = b"\1" * (one.end - one.start)
    places = [(start, end, text[start:end]) for start, end in word_spans(text) if not any(is_taken[start:end])]
    for one in readings:
        # A form without a reading is named as a word that cannot be pronounced.
        places += [(one.start, one.end, word) for word in words_of(one.words) or [text[one.start : one.end]]]
    return sorted(places, key=itemgetter(0))
