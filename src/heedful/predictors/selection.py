"""Selection of texts to label next: those that the model is least sure of, unlike each other."""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import exp, log1p
from typing import Final, NamedTuple

import numpy as np

from heedful.engines.label_arrays import Floats
from heedful.errors import UsageError
from heedful.predictors.answerer import Answerer
from heedful.predictors.classifier import Classifier
from heedful.predictors.interface import Predictor
from heedful.predictors.translator import Translator

NGRAM: Final = 3
"""Longest character n-gram by which texts are compared."""
SIZE: Final = 512
"""Size of the vector of a text, into which n-grams are hashed."""
POOL_SHARE: Final = 20
LEAST_POOL: Final = 2_000
"""Number of least certain texts that are chosen from, as a multiple of the wanted number, and the least."""
_MOST: Final = 1.0 - 1e-12
"""Uncertainty from which texts are equally surprising."""


class Candidate(NamedTuple):
    """Text without a label."""

    text: str
    output: str
    """Output of the model."""
    uncertainty: float
    """Probability in [0, 1] that the output is wrong, as the model has it: of a whole label, word or date; of sentences
    the mean of a token, because long ones are never right to the letter."""


def candidates(predictor: Predictor, texts: Iterable[str]) -> Iterator[Candidate]:
    """Predict the output of each text.

    Args:
        texts: as for `Predictor.predict`.

    Raises:
        UsageError: the model's outputs have no probabilities.
    """
    if isinstance(predictor, Classifier):
        for label in predictor.stream(texts):
            yield Candidate(label.text, label.label, 1.0 - label.probability)
    elif isinstance(predictor, Translator):
        is_sentence = predictor.text.target_units == "pieces"
        for output in predictor.stream(texts, predictor.search):
            number = len(predictor.target_tokenizer.encode(output.text)) + 1 if is_sentence else 1
            yield Candidate(output.source, output.text, 1.0 - exp(min(0.0, output.log_prob / number)))
    else:
        what = "questions are about facts" if isinstance(predictor, Answerer) else "its sources are pictures"
        raise UsageError(f"next: a model for {predictor.folder.task}: {what}; give a model of texts")


def select(pool: Sequence[Candidate], number: int) -> list[Candidate]:
    """Choose texts one by one: each has the largest product of surprise and distance from those chosen before.

    Surprise is -log(1 - uncertainty): of outputs that are all likely to be wrong, those of which the model is least
    sure come first, long words among them, which tell more. Distance is one minus the cosine of counts of character
    n-grams, so that a batch has not the same gap many times (uncertainty and diversity: Settles 2009, section 3.6 and
    5; greedy, after Sener and Savarese 2018, arXiv:1708.00489).

    Args:
        pool: texts, none twice.
        number: how many to choose; all of a smaller pool.

    Returns:
        The chosen texts, the most useful first.

    Cost: number * max(20 number, 2,000) * 512 multiply-adds.
    """
    unsure = sorted(pool, key=lambda each: -each.uncertainty)[: max(LEAST_POOL, POOL_SHARE * number)]
    vectors = np.stack([_vector(each.text) for each in unsure]) if unsure else np.zeros((0, SIZE), dtype=np.float32)
    gains = np.array([-log1p(-min(max(each.uncertainty, 1e-9), _MOST)) for each in unsure])
    nearest = np.zeros(len(unsure), dtype=np.float32)
    chosen: list[int] = []
    while len(chosen) < min(number, len(unsure)):
        values = gains * (1.0 - nearest)
        values[chosen] = -1.0
        best = int(np.argmax(values))
        chosen.append(best)
        nearest = np.maximum(nearest, vectors @ vectors[best])
    return [unsure[index] for index in chosen]


def _vector(text: str) -> Floats:
    """Unit vector of the n-grams of a text; square roots of counts, so that frequent ones do not outweigh all."""
    padded = f" {text.casefold()} "
    grams = Counter(padded[i : i + size] for size in range(1, NGRAM + 1) for i in range(len(padded) - size + 1))
    vector = np.zeros(SIZE, dtype=np.float32)
    for gram, count in grams.items():
        vector[zlib.crc32(gram.encode("utf-8", "surrogatepass")) % SIZE] += count**0.5
    return vector / max(1e-9, float(np.linalg.norm(vector)))
