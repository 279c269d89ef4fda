"""Number of sentences that the sources of training pairs usually have."""

from typing import Final

from heedful.data.encoded import EncodedSide
from heedful.text.sentences import split_sentences
from heedful.text.tokenizer import Tokenizer

MOST_COUNTED: Final = 2_000
"""Number of sources whose sentences are counted, about."""


def usual_sentences(sources: EncodedSide, tokenizer: Tokenizer) -> int:
    """Find the number of sentences that training sources usually have.

    Returns:
        The number, 1 or more, that nine tenths of a sample of the sources do not exceed.
    """
    sample = range(0, len(sources), max(1, len(sources) // MOST_COUNTED))
    texts = (tokenizer.decode(sources[index][:-1].tolist()) for index in sample)
    numbers = sorted(len(split_sentences(text)) for text in texts)
    return max(1, numbers[(len(numbers) * 9 - 1) // 10]) if numbers else 1
