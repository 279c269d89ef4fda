"""Words of a classified text: attention weights beside the effects of leaving each word out."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final, final

import numpy as np

from heedful.engines.label_arrays import Floats
from heedful.predictors.classifier import Classification, Classifier
from heedful.text.sentences import split_sentences
from heedful.text.terms import unit_ranges

MOST_WORDS: Final = 200
"""Largest number of words that are left out, one at a time: those of the largest weights."""
FEWEST_WORDS: Final = 5
"""Number of words from which on a rank correlation is computed."""
_AT_ONCE: Final = 32
"""Number of texts, each without a word, that are classified before `cancelled` is asked again."""
FAITHFUL: Final = 0.5
"""Rank correlation from which on weights are said to agree with effects."""


@final
@dataclass(frozen=True)
class WordEffect:
    """Word of a text, as the model reads it."""

    word: str
    """The word with the space before it; empty for the end of a sentence."""
    weight: float
    """Attention weight, in [0, 1]; 0 from a model without attention."""
    effect: float | None
    """Nats by which the log probability of the label falls without the word, negative if it rises; for numbers, the
    change of the number itself. None = not computed."""


@final
@dataclass(frozen=True)
class WordEffects:
    """Label of a text, and the weights and effects of its words."""

    result: Classification
    sentences: tuple[tuple[WordEffect, ...], ...]
    correlation: float | None
    """Spearman's rank correlation of the weights and the sizes of the effects, in [-1, 1]; None without attention, or
    for fewer than five words."""

    def strongest(self, number: int) -> list[WordEffect]:
        """List the words that matter most.

        Returns:
            At most `number` words, the largest effect in size first.
        """
        known = [each for each in chain.from_iterable(self.sentences) if each.effect is not None]
        return sorted(known, key=lambda each: -abs(each.effect or 0.0))[:number]


def word_effects(classifier: Classifier, text: str, cancelled: Callable[[], bool] | None = None) -> WordEffects:
    """Weigh the words of a text, and leave each out to see what the model then says.

    Weights show where a model looks, which need not be why it decides: Jain and Wallace 2019, arXiv:1902.10186. Leaving
    words out is the plain test of that (Li, Monroe and Jurafsky 2016, arXiv:1612.08220).

    Args:
        cancelled: called now and then; once it returns True, no more words are left out.

    Cost: the text is classified once for each word, at most `MOST_WORDS` + 2 times.
    """
    (result,) = classifier.classify([text])
    sentences = [*_weighted_sentences(classifier, text, result.attention)]
    words = [(word, weight) for sentence in sentences for word, weight in sentence]
    order = sorted((index for index, (word, _) in enumerate(words) if word.strip()), key=lambda index: -words[index][1])
    chosen = order[:MOST_WORDS]
    firsts = {0, *np.cumsum([len(sentence) for sentence in sentences]).tolist()}
    space = " " if " " in text.strip() else ""

    def without(left_out: int) -> str:
        """The text as the model reads it, without a word."""
        parts = (
            (space if index in firsts else "") + word for index, (word, _) in enumerate(words) if index != left_out
        )
        return "".join(parts).strip()

    effects: dict[int, float] = {}
    whole = _measure(classifier, classifier.classify([without(-1)])[0], result) if chosen else 0.0
    for start in range(0, len(chosen), _AT_ONCE):
        if cancelled is not None and cancelled():
            break
        part = chosen[start : start + _AT_ONCE]
        others = classifier.classify([without(index) for index in part])
        effects |= {
            index: whole - _measure(classifier, other, result) for index, other in zip(part, others, strict=True)
        }
    rows = iter(WordEffect(word, weight, effects.get(index)) for index, (word, weight) in enumerate(words))
    return WordEffects(
        result,
        tuple(tuple(next(rows) for _ in sentence) for sentence in sentences),
        _correlation([words[index][1] for index in effects], [*effects.values()])
        if result.attention is not None
        else None,
    )


def _weighted_sentences(
    classifier: Classifier, text: str, attention: Floats | None
) -> Iterator[list[tuple[str, float]]]:
    """Words of each sentence with their weights; last the weight of EOS, with an empty word.

    Put together, the words are the text as the tokenizer normalizes it.
    """
    tokenizer = classifier.tokenizer
    # A text that was cut has words without tokens.
    weights = iter([] if attention is None else attention.tolist())
    for sentence in split_sentences(text) if classifier.text.split_sentences else [text]:
        normalized = tokenizer.normalize(sentence)
        ends = [end for _, end in unit_ranges(normalized)] or [len(normalized)]
        ends[-1] = len(normalized)
        words = [(normalized[begin:end], 0.0) for begin, end in pairwise([0, *ends])]
        for _, end in tokenizer.ranges(normalized):
            # A token belongs to the word of its last character.
            index = min(bisect_left(ends, end), len(ends) - 1)
            word, weight = words[index]
            words[index] = word, weight + next(weights, 0.0)
        yield [*words, ("", next(weights, 0.0))]


def _measure(classifier: Classifier, other: Classification, result: Classification) -> float:
    """Log probability of the labels of a result; or the number, where labels are numbers."""
    if classifier.text.labels == "number":
        return float(other.label)
    return sum(float(np.log(max(other.probabilities[label], 1e-30))) for label in result.labels)


def _correlation(weights: list[float], effects: list[float]) -> float | None:
    """Spearman's rank correlation of weights and sizes of effects."""
    if len(weights) < FEWEST_WORDS:
        return None
    ranks = [_ranks(values) for values in (weights, [abs(effect) for effect in effects])]
    spread = [each.std() for each in ranks]
    if not all(spread):
        return None
    first, second = ((each - each.mean()) / own for each, own in zip(ranks, spread, strict=True))
    return float((first * second).mean())


def _ranks(values: list[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Ranks of values; equal values share the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[places]
