"""Numbers of sentences and of characters that the sources of training pairs usually have."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from heedful.data.encoded import EncodedSide
from heedful.text.sentences import split_sentences
from heedful.text.tokenizer import Tokenizer

MOST_COUNTED: Final = 2_000
"""Number of sources whose sentences are counted, about."""

USUAL_SHARE: Final = 0.99
"""Share of the training sources that have a usual length: models lose the ends of longer ones. Of four clauses of
Multi30k's length joined by "und", a model left a sixth of the words out, and of ten more than half."""

LEAST_USUAL: Final = 60
"""Number of characters up to which a sentence is of a usual length, whatever the training had."""


def usual_characters(sources: EncodedSide, tokenizer: Tokenizer) -> int:
    """Find the length that training sources usually have, which depends on no one's spelling as tokens do.

    Returns:
        The number of characters that `USUAL_SHARE` of a sample of the sources do not exceed, at least `LEAST_USUAL`.
    """
    sizes = [len(text) for text in _sample(sources, tokenizer)]
    return max(LEAST_USUAL, int(np.quantile(sizes, USUAL_SHARE, method="higher")))


def usual_sentences(sources: EncodedSide, tokenizer: Tokenizer) -> int:
    """Find the number of sentences that training sources usually have.

    Returns:
        The number, 1 or more, that nine tenths of a sample of the sources do not exceed.
    """
    numbers = sorted(len(split_sentences(text)) for text in _sample(sources, tokenizer))
    return max(1, numbers[(len(numbers) * 9 - 1) // 10]) if numbers else 1


def _sample(sources: EncodedSide, tokenizer: Tokenizer) -> Iterator[str]:
    sample = range(0, len(sources), max(1, len(sources) // MOST_COUNTED))
    return (tokenizer.decode(sources[index][:-1].tolist()) for index in sample)
