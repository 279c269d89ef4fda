"""Generated translation of unsegmented text: characters without spaces, and the words that they stand for.

    sipuntalosi        w17 w03 w17

After the translation of Japanese characters in Kim et al. 2017, arXiv:1702.00887, section 4.2, with a lexicon of our
own. No word of the lexicon begins another one, so every text has one segmentation, but no character says where a word
ends. A modifier stands before its word in the source and after it in the target. All texts are a function of the seed,
on every machine and in every version of Python.
"""

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from heedful.errors import UsageError

LETTERS: Final = "aeilnopstu"
NUM_WORDS: Final = 60
NUM_MODIFIERS: Final = 20
"""Words of the lexicon, the first ones, that stand after the next word in the target."""
MOST_WORDS: Final = 100
"""Largest number of words of a text."""


@final
@dataclass(frozen=True)
class UnsegmentedText:
    """Text without spaces and its translation."""

    source: str
    """Characters of all words, without spaces."""
    target: str
    """Target words, separated by spaces."""
    spans: tuple[tuple[int, int], ...]
    """For each target word the first of its characters in `source`, and the end of them."""


def lexicon() -> dict[str, str]:
    """List the words of the source language.

    Returns:
        Characters of a word -> target word; no word begins another one.

    Example:
        >>> len(lexicon()), sorted(lexicon().values())[:2]
        (60, ['w00', 'w01'])
    """
    source = _random("lexicon")
    words: list[str] = []
    while len(words) < NUM_WORDS:
        word = "".join(source.choice(LETTERS) for _ in range(source.choice((2, 3, 3, 4, 4, 5))))
        if not any(word.startswith(other) or other.startswith(word) for other in words):
            words.append(word)
    return {word: f"w{index:02d}" for index, word in enumerate(words)}


def generate(num_texts: int, num_words: tuple[int, ...], seed: int) -> Iterator[UnsegmentedText]:
    """Generate texts, with equal other arguments the first ones of more texts.

    Args:
        num_texts: number of texts, 0 or more.
        num_words: numbers of words that are drawn from uniformly, each 1 to `MOST_WORDS`.
        seed: any whole number.

    Returns:
        The texts; repeated ones are possible.

    Raises:
        UsageError: `num_texts` is below 0, or a number of words is out of range.

    Example:
        >>> text = next(generate(1, (3,), seed=1))
        >>> [text.source[start:stop] for start, stop in text.spans] == [
        ...     word for target in text.target.split() for word, named in lexicon().items() if named == target
        ... ]
        True
    """
    if num_texts < 0:
        raise UsageError(f"num_texts is {num_texts}: give 0 or more")
    if not num_words or not all(1 <= number <= MOST_WORDS for number in num_words):
        raise UsageError(f"num_words are {num_words}: give some from 1 to {MOST_WORDS}")
    words = [*lexicon().items()]
    source = _random(f"{num_words}/{seed}")
    return (_text(source, words, source.choice(num_words)) for _ in range(num_texts))


def _random(name: str) -> random.Random:
    return random.Random(int.from_bytes(hashlib.blake2b(f"segments/{name}".encode(), digest_size=16).digest(), "big"))


def _text(source: random.Random, words: list[tuple[str, str]], number: int) -> UnsegmentedText:
    drawn = [source.randrange(len(words)) for _ in range(number)]
    ends = [0]
    for index in drawn:
        ends.append(ends[-1] + len(words[index][0]))
    order: list[int] = []
    modifiers: list[int] = []
    for position, index in enumerate(drawn):
        if index < NUM_MODIFIERS and position < number - 1:
            modifiers.append(position)
        else:
            order += [position, *modifiers]
            modifiers = []
    return UnsegmentedText(
        "".join(words[index][0] for index in drawn),
        " ".join(words[drawn[position]][1] for position in order),
        tuple((ends[position], ends[position + 1]) for position in order),
    )
