"""Numbers of sentences and of characters that sources of training pairs usually have, and how they begin and end."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.text.sentences import split_sentences
from heedful.text.tokenizer import Tokenizer
from heedful.text.word_forms import WORD

MOST_COUNTED: Final = 2_000
"""Number of sources whose sentences are counted, about."""

USUAL_SHARE: Final = 0.99
"""Share of the training sources that have a usual length: models lose the ends of longer ones. Of four clauses of
Multi30k's length joined by "und", a model left a sixth of the words out, and of ten more than half."""

LEAST_USUAL: Final = 60
"""Number of characters up to which a sentence is of a usual length, whatever the training had."""

_FINAL_MARKS: Final = frozenset(".!?…。！？।؟۔")
_LEAST_ENDED: Final = 0.9
"""Share of the texts that end in a mark from which on a text without one is unusual."""
_MOST_READ: Final = 20_000
"""Number of sources whose words are counted, about."""
_MOST_OPENINGS: Final = 200
_FEWEST_FIRST: Final = 5
"""Number of sources that a word begins with a capital, at least."""
_FEWEST_WITHIN: Final = 20
"""Number of times that a word stands in lower case within sources, at least; with a capital it stands there a hundred
times more rarely. The German "Sie", which is "they" in lower case and "you" with a capital, does not."""


def opening_words(sources: EncodedSide, tokenizer: Tokenizer) -> list[str]:
    """Find the words whose capital tells that a sentence begins.

    Returns:
        Words with a capital that begin sources, the most frequent first, and are in lower case within them.
    """
    first, lower, upper = Counter[str](), Counter[str](), Counter[str]()
    for text in _sample(sources, tokenizer, _MOST_READ):
        opening, *others = WORD.findall(text) or [""]
        first[opening] += 1
        for word in others:
            (lower if word[0].islower() else upper)[word.lower()] += 1

    def begins(word: str) -> bool:
        key = word.lower()
        is_title = word == key[:1].upper() + key[1:] != key
        return is_title and lower[key] >= max(_FEWEST_WITHIN, 100 * upper[key])

    common = (word for word, number in first.most_common(10 * _MOST_OPENINGS) if number >= _FEWEST_FIRST)
    return list(filter(begins, common))[:_MOST_OPENINGS]


def final_marks(corpus: EncodedCorpus, tokenizers: tuple[Tokenizer, Tokenizer]) -> list[str]:
    """Find the marks that the texts of training pairs usually end in.

    Args:
        tokenizers: of source and target.

    Returns:
        The most frequent mark of the sources and that of the targets; each empty where many of them have none.
    """
    return [_final_mark(side, one) for side, one in zip((corpus.source, corpus.target), tokenizers, strict=True)]


def _final_mark(side: EncodedSide, tokenizer: Tokenizer) -> str:
    ends = Counter(text.rstrip()[-1:] for text in _sample(side, tokenizer))
    marks = Counter({mark: number for mark, number in ends.items() if mark in _FINAL_MARKS})
    is_usual = marks.total() >= _LEAST_ENDED * ends.total() > 0
    return marks.most_common(1)[0][0] if is_usual else ""


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


def _sample(sources: EncodedSide, tokenizer: Tokenizer, most: int = MOST_COUNTED) -> Iterator[str]:
    sample = range(0, len(sources), max(1, len(sources) // most))
    return (tokenizer.decode(sources[index][:-1].tolist()) for index in sample)
