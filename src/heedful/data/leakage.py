"""Leakage: evaluation data that is also in the training data, found by hashes, exactly or up to case and spaces."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from heedful.data.corpus import Pair
from heedful.data.digests import DigestSet, Flags, digest, digest_pair, fold
from heedful.data.tally import of_rows

_BLOCK_PAIRS: Final = 8192


class Overlap(NamedTuple):
    """Earlier occurrences of pairs, by four criteria."""

    pair: Flags
    """[pair] whether the same pair occurred."""
    source: Flags
    """[pair] whether the source occurred, with any target."""
    folded_pair: Flags
    """[pair] whether the pair occurred up to case and spaces."""
    folded_source: Flags
    """[pair] whether the source occurred up to case and spaces."""


@final
class TrainingIndex:
    """Hashes of training pairs, 32 bytes each, to find rows of evaluation data among them."""

    def __init__(self) -> None:
        self._sets: Final = tuple(DigestSet() for _ in Overlap._fields)

    def __len__(self) -> int:
        """Count the different pairs."""
        return len(self._sets[0])

    def watch(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Add pairs while iterating over them, block by block.

        Yields:
            The same pairs.
        """
        remaining = iter(pairs)
        while block := list(islice(remaining, _BLOCK_PAIRS)):
            self.add(block)
            yield from block

    def add(self, pairs: Sequence[Pair]) -> Overlap:
        """Add pairs.

        Returns:
            The criteria by which each pair occurred before: in an earlier block, or earlier in this one.
        """
        digests = _overlap_digests(pairs)
        return Overlap(*(~seen.add(column) for seen, column in zip(self._sets, digests, strict=True)))

    def find(self, pairs: Sequence[Pair]) -> Overlap:
        """Look pairs up.

        Returns:
            The criteria by which each pair occurs in the training data.
        """
        digests = _overlap_digests(pairs)
        return Overlap(*(seen.contains(column) for seen, column in zip(self._sets, digests, strict=True)))


def _overlap_digests(pairs: Sequence[Pair]) -> NDArray[np.uint64]:
    """[4, pair] digests in the order of `Overlap`."""
    columns = np.zeros((len(Overlap._fields), len(pairs)), dtype=np.uint64)
    for row, pair in enumerate(pairs):
        source, target = fold(pair.source), fold(pair.target)
        columns[:, row] = (
            digest_pair(pair.source, pair.target),
            digest(pair.source),
            digest_pair(source, target),
            digest(source),
        )
    return columns


@dataclass(frozen=True)
class Leakage:
    """Counts of evaluation rows that occur in the training data. Folded: up to case and spaces."""

    num_rows: int
    num_pairs: int
    num_sources: int
    num_folded_pairs: int
    num_folded_sources: int

    def summary(self) -> str:
        """Return the counts on one line.

        Returns:
            Such as "3 of 100 rows are in the training data (5 by source alone)".
        """
        exact = of_rows(self.num_pairs, self.num_rows, "are in the training data")
        folded = f"but for case and spaces {self.num_folded_pairs:,} ({self.num_folded_sources:,} by source alone)"
        return f"{exact} ({self.num_sources:,} by source alone); {folded}"


def leakage(seen: TrainingIndex, evaluation: Iterable[Pair]) -> Leakage:
    """Count the evaluation rows that occur in the training data."""
    num_rows = 0
    counts = np.zeros(len(Overlap._fields), dtype=np.int64)
    remaining = iter(evaluation)
    while block := list(islice(remaining, _BLOCK_PAIRS)):
        num_rows += len(block)
        counts += np.array([np.count_nonzero(flags) for flags in seen.find(block)])
    return Leakage(num_rows, *(int(count) for count in counts))


def describe_leaks(training: TrainingIndex, evaluation: Mapping[str, Iterable[Pair]]) -> Iterator[str]:
    """Describe evaluation rows that occur in the training data.

    Args:
        training: index of the training pairs.
        evaluation: evaluation pairs by name.

    Yields:
        A line for each evaluation set that has such rows.
    """
    for name, pairs in evaluation.items():
        overlap = leakage(training, pairs)
        if overlap.num_pairs or overlap.num_sources:
            yield f"{name}: {overlap.summary()}"
