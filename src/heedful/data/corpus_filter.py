"""Corpus filter: keeps the pairs that are usable for training, once or as often as they occur, and counts the rest."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import isqrt
from typing import Final, final

import numpy as np

from heedful.data.corpus import Pair
from heedful.data.digests import DigestSet, digest_pair

_BLOCK_PAIRS: Final = 8192
FULL_REPEATS: Final = 300
"""Number of times up to which a pair counts as often as it occurs."""


@dataclass(frozen=True)
class CorpusReport:
    """Counts of pairs read and kept. A rejected pair counts once, under the first reason that applies."""

    num_read: int
    num_kept: int
    num_empty: int
    """Pairs left out because one side is blank."""
    num_too_long: int
    """Pairs left out because one side has too many characters."""
    num_duplicates: int
    """Pairs that repeat an earlier pair."""
    num_identical: int
    """Pairs kept although source and target are identical."""
    notes: tuple[str, ...] = ()
    num_repeats: int = 0
    """Repeating pairs that are kept, so that a pair counts as often as it occurs."""

    @property
    def num_different(self) -> int:
        """Pairs kept, each counted once."""
        return self.num_kept - self.num_repeats

    def summary(self) -> str:
        """Return the counts on one line.

        Returns:
            Such as "9 of 10 pairs kept (1 empty left out)".
        """
        repeated = self.num_duplicates - self.num_repeats
        reasons = ((self.num_empty, "empty"), (self.num_too_long, "too long"), (repeated, "repeated"))
        left_out = ", ".join(f"{count:,} {reason}" for count, reason in reasons if count)
        identical = f"; in {self.num_identical:,} both sides are the same" if self.num_identical else ""
        pairs_text = f"{self.num_kept:,} of {self.num_read:,} pairs kept"
        repeats = f"; repeated ones count as often as they occur: {self.num_repeats:,}" if self.num_repeats else ""
        return f"{pairs_text}{f' ({left_out} left out)' if left_out else ''}{repeats}{identical}"


@final
class CorpusFilter:
    """Filter of unusable pairs, with counts; uses 8 bytes of memory per pair kept."""

    def __init__(self, max_characters: int, keeps_repeats: bool = False) -> None:
        """Start with all counts at zero.

        Args:
            max_characters: largest number of characters on either side.
            keeps_repeats: whether a pair that occurs several times is kept as often, up to `FULL_REPEATS` times, and
                beyond them as often as the square root of its number grows: of 4 times as many, twice as many are kept,
                so that no boilerplate outweighs the rest.
        """
        self._repeats: Final[Counter[int] | None] = Counter() if keeps_repeats else None
        self._max_characters: Final = max_characters
        self._seen: Final = DigestSet()
        self._num_read = self._num_empty = self._num_too_long = self._num_identical = 0
        self._num_fit = self._num_repeats = 0

    def apply(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the usable pairs, block by block; may be called for several files in turn.

        Yields:
            Pairs with text on both sides, not too long, and not seen before in any call, or to be kept again.
        """
        fitting = (pair for pair in pairs if self._fits(pair))
        while block := list(islice(fitting, _BLOCK_PAIRS)):
            digests = np.fromiter((digest_pair(pair.source, pair.target) for pair in block), dtype=np.uint64)
            for pair, is_new, digest in zip(block, self._seen.add(digests), digests.tolist(), strict=True):
                if is_new or self._is_kept_again(digest):
                    self._num_repeats += not is_new
                    self._num_identical += pair.source == pair.target
                    yield pair

    def _is_kept_again(self, digest: int) -> bool:
        """Count a pair that was seen before, and tell whether it is kept once more."""
        if self._repeats is None:
            return False
        self._repeats[digest] += 1
        number = self._repeats[digest]  # of earlier occurrences
        return _num_kept(number + 1) > _num_kept(number)

    def _fits(self, pair: Pair) -> bool:
        self._num_read += 1
        if not pair.source.strip() or not pair.target.strip():
            self._num_empty += 1
            return False
        if max(len(pair.source), len(pair.target)) > self._max_characters:
            self._num_too_long += 1
            return False
        self._num_fit += 1
        return True

    def report(self, notes: Iterable[str] = ()) -> CorpusReport:
        """Return the counts of all calls of `apply` so far.

        Args:
            notes: repairs of the files, stored with the counts.
        """
        return CorpusReport(
            num_read=self._num_read,
            num_kept=len(self._seen) + self._num_repeats,
            num_empty=self._num_empty,
            num_too_long=self._num_too_long,
            num_duplicates=self._num_fit - len(self._seen),
            num_identical=self._num_identical,
            num_repeats=self._num_repeats,
            notes=tuple(notes),
        )


def _num_kept(number: int) -> int:
    """Number of times that a pair is kept if it occurs `number` times."""
    return number if number <= FULL_REPEATS else isqrt(FULL_REPEATS * number)
