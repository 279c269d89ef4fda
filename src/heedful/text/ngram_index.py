"""Index of texts by their character n-grams, which finds the text most similar to another."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, final

import numpy as np

SIZE: Final = 3
"""Number of characters of an n-gram."""

_Gram = tuple[str, int]
"""N-gram, and how often it occurred before in the same text, so that a text has each of them once."""


@final
class NgramIndex:
    """Inverted index of texts.

    Two texts share 2c / (a + b) of their n-grams: a and b are the numbers of n-grams of the texts, c that of the
    n-grams that they have in common (Dice's coefficient, with repetitions). Case does not matter, and a space before
    and after each text makes its ends count.
    """

    def __init__(self, texts: Sequence[str] = ()) -> None:
        """Index texts.

        Cost: time and memory in proportion to the characters.
        """
        self._rows: Final[defaultdict[_Gram, array[int]]] = defaultdict(lambda: array("i"))
        self._sizes: Final = array("q")
        for text in texts:
            self.add(text)

    def __len__(self) -> int:
        return len(self._sizes)

    def add(self, text: str) -> None:
        """Index one more text."""
        grams = list(ngrams(text))
        for gram in grams:
            self._rows[gram].append(len(self._sizes))
        self._sizes.append(len(grams))

    def nearest(
        self, text: str, number: int = 1, counts: Callable[[int], bool] = lambda index: True
    ) -> list[tuple[int, float]]:
        """Find the most similar texts.

        Args:
            number: number of texts at most.
            counts: tells of an index whether its text counts.

        Returns:
            Index of each text and its share of n-grams in common, in (0, 1]; the most similar one first, and of equally
            similar ones the last. Empty if no text has an n-gram in common.

        Cost: time in proportion to the texts that have each n-gram.
        """
        grams = list(ngrams(text))
        rows = [np.frombuffer(self._rows[gram], dtype=np.int32) for gram in grams if gram in self._rows]
        if not rows:
            return []
        common = np.bincount(np.concatenate(rows), minlength=len(self._sizes))
        shares = 2.0 * common / (np.frombuffer(self._sizes, dtype=np.int64) + len(grams))
        order = len(shares) - 1 - np.argsort(-shares[::-1], kind="stable")
        similar = (int(index) for index in order[: np.count_nonzero(shares)])
        return [(index, float(shares[index])) for index in islice(filter(counts, similar), number)]


def ngrams(text: str) -> Iterator[_Gram]:
    """Split a text into its character n-grams.

    Yields:
        Each n-gram, with the number of times it occurred before.

    Example:
        >>> list(ngrams("aaa"))
        [(' aa', 0), ('aaa', 0), ('aa ', 0)]
    """
    padded = f" {text.casefold()} "
    counts: Counter[str] = Counter()
    for start in range(max(1, len(padded) - SIZE + 1)):
        gram = padded[start : start + SIZE]
        yield gram, counts[gram]
        counts[gram] += 1
