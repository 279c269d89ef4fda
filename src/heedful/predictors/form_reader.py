"""Reader of numbers, dates and abbreviations: a model from written forms to the words that they are read out as."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Final, final

from heedful.predictors.translator import Translator
from heedful.search.config import with_outputs
from heedful.text.vocabulary import UNK
from heedful.text.written_forms import written_form_spans

LEAST_PROBABILITY: Final = 0.5
"""Smallest probability of a reading that is used."""


@final
@dataclass(frozen=True)
class Reading:
    """Written form in a text, and its reading."""

    start: int
    """Its first character."""
    end: int
    """The character behind its last."""
    words: str
    """Words that are read out; empty = the model is not sure."""


@final
class FormReader:
    """Reader with one model, such as that of `heedful demo --task readings`."""

    def __init__(self, translator: Translator) -> None:
        """Use a model.

        Args:
            translator: model from written forms to words.
        """
        self.translator: Final = translator

    def read(self, texts: Sequence[str]) -> list[tuple[Reading, ...]]:
        """Read the written forms of texts, each form once for all of them.

        Returns:
            The readings of each text, in order.
        """
        spans = [written_form_spans(text) for text in texts]
        forms = dict.fromkeys(text[start:end] for text, ends in zip(texts, spans, strict=True) for start, end in ends)
        tokenizer = self.translator.source_tokenizer
        known = [form for form in forms if UNK not in tokenizer.encode(form)]
        search = with_outputs(self.translator.search, 0, 1)
        outputs = self.translator.stream(known, search, segments=None)
        words = {
            form: output.text
            for form, output in zip(known, outputs, strict=True)
            if not output.was_cut and exp(output.alternatives[0].log_prob) >= LEAST_PROBABILITY
        }
        return [
            tuple(Reading(start, end, words.get(text[start:end], "")) for start, end in ends)
            for text, ends in zip(texts, spans, strict=True)
        ]
