"""Counts by kind, with the first lines of each kind, in constant memory."""

import re
from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar, final

import numpy as np

from heedful.text.counts import counted

Key = TypeVar("Key", bound=Hashable)

NUM_PLACES: Final = 5
_SINGULAR: Final = {
    **{"are": "is", "have": "has", "repeat": "repeats", "contain": "contains"},
    **{"hold": "holds", "lack": "lacks", "name": "names"},
}
"""Verbs of findings, and their forms for a single row."""


@final
class Tally(Generic[Key]):
    """Counts of keys, and the first lines of each."""

    def __init__(self) -> None:
        self.counts: Final[dict[Key, int]] = {}
        self._lines: Final[dict[Key, list[int]]] = {}

    def add(self, key: Key, line: int) -> None:
        """Count a key.

        Args:
            line: its line number; lines of a key must not decrease.
        """
        self.counts[key] = self.counts.get(key, 0) + 1
        lines = self._lines.setdefault(key, [])
        if len(lines) < NUM_PLACES:
            lines.append(line)

    def total(self, keys: Iterable[Key]) -> int:
        """Return the sum of several counts.

        Args:
            keys: distinct keys, counted or not.
        """
        return sum(self.counts.get(key, 0) for key in keys)

    def lines(self, keys: Iterable[Key]) -> tuple[int, ...]:
        """Return the first lines of several keys.

        Args:
            keys: distinct keys, counted or not.

        Returns:
            At most `NUM_PLACES` lines, in rising order.
        """
        return tuple(sorted(line for key in keys for line in self._lines.get(key, ()))[:NUM_PLACES])


def of_rows(count: int, num_rows: int, what: str) -> str:
    """Write a statement about some of the rows.

    Args:
        count: number of rows that it is true of.
        num_rows: number of all.
        what: the statement, which begins with its verb in the plural.

    Example:
        >>> of_rows(1, 300, "repeat an earlier row"), of_rows(2, 300, "repeat an earlier row")
        ('1 of 300 rows repeats an earlier row', '2 of 300 rows repeat an earlier row')
    """
    if count == 1:
        verb, space, rest = what.partition(" ")
        what = _SINGULAR.get(verb, verb) + space + re.sub(r"\btheir\b", "its", rest)
    return f"{count:,} of {counted(num_rows, 'row')} {what}"


def far_from_median(counts: dict[int, int], num_deviations: float, least: float) -> list[int]:
    """Find the outlying bins of a histogram.

    Args:
        num_deviations: standard deviations from the median that are still usual; estimated as 1.4826 times the median
            absolute deviation, which is robust to outliers.
        least: distance from the median, in bins, that is always usual.

    Returns:
        The outlying bins, in rising order.

    Example:
        >>> far_from_median({0: 50, 1: 100, 2: 50, 40: 3}, 4.0, 5.0)
        [40]
    """
    if not counts:
        return []
    middle = _median(counts)
    distances: dict[int, int] = {}
    for key, count in counts.items():
        distances[abs(key - middle)] = distances.get(abs(key - middle), 0) + count
    bound = max(least, num_deviations * 1.4826 * _median(distances))
    return sorted(key for key in counts if abs(key - middle) > bound)


def _median(counts: dict[int, int]) -> int:
    keys = sorted(counts)
    running = np.cumsum([counts[key] for key in keys])
    return keys[int(np.searchsorted(running, running[-1] / 2))]
