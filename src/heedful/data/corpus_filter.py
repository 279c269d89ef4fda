"""Corpus filter: keeps the pairs that are usable for training, without duplicates, and counts the rest."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, final

import numpy as np

from heedful.data.corpus import Pair
from heedful.data.digests import DigestSet, digest_pair

_BLOCK_PAIRS: Final = 8192


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
    """Pairs left out as duplicates of an earlier pair."""
    num_identical: int
    """Pairs kept although source and target are identical."""
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        """Return the counts on one line.

        Returns:
            Such as "9 of 10 pairs kept (1 empty left out)".
        """
        reasons = ((self.num_empty, "empty"), (self.num_too_long, "too long"), (self.num_duplicates, "repeated"))
        left_out = ", ".join(f"{count:,} {reason}" for count, reason in reasons if count)
        identical = f"; in {self.num_identical:,} both sides are the same" if self.num_identical else ""
        pairs_text = f"{self.num_kept:,} of {self.num_read:,} pairs kept"
        return f"{pairs_text}{f' ({left_out} left out)' if left_out else ''}{identical}"


@final
class CorpusFilter:
    """Filter of unusable pairs, with counts; uses 8 bytes of memory per pair kept."""

    def __init__(self, max_characters: int) -> None:
        """Start with all counts at zero.

        Args:
            max_characters: largest number of characters on either side.
        """
        self._max_characters: Final = max_characters
        self._seen: Final = DigestSet()
        self._num_read = self._num_empty = self._num_too_long = self._num_identical = 0
        self._num_fit = 0

    def apply(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the usable pairs, block by block; may be called for several files in turn.

        Args:
            pairs: any pairs.

        Yields:
            Pairs with text on both sides, not too long, and not seen before in any call.
        """
        fitting = (pair for pair in pairs if self._fits(pair))
        while block := list(islice(fitting, _BLOCK_PAIRS)):
            digests = np.fromiter((digest_pair(pair.source, pair.target) for pair in block), dtype=np.uint64)
            for pair, is_new in zip(block, self._seen.add(digests), strict=True):
                if is_new:
                    self._num_identical += pair.source == pair.target
                    yield pair

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

        Returns:
            The report.
        """
        return CorpusReport(
            num_read=self._num_read,
            num_kept=len(self._seen),
            num_empty=self._num_empty,
            num_too_long=self._num_too_long,
            num_duplicates=self._num_fit - len(self._seen),
            num_identical=self._num_identical,
            notes=tuple(notes),
        )
