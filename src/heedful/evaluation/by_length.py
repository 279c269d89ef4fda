"""Scores by source length. Bahdanau et al. 2015, figure 2; Luong et al. 2015, figure 6."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np

from heedful.errors import DataError, UsageError
from heedful.evaluation.bootstrap import Interval, score_interval
from heedful.evaluation.interface import Matrix, Metric, corpus_score

_SMALLEST = 10  # fewest items that make a bucket's interval meaningful


@final
@dataclass(frozen=True)
class Bucket:
    """Items whose source length lies in one range.

    Attributes:
        shortest: least length of the range.
        longest: greatest length of the range, included.
        num_items: number of items in the range, 1 or more.
        score: of these items together.
        interval: 95 % interval of the score.
    """

    shortest: int
    longest: int
    num_items: int
    score: float
    interval: Interval

    @property
    def label(self) -> str:
        """Range as printed."""
        return str(self.shortest) if self.shortest == self.longest else f"{self.shortest}-{self.longest}"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values that JSON can hold."""
        plain = {key: value for key, value in vars(self).items() if key != "interval"}
        return {**plain, "low": self.interval.low, "high": self.interval.high}


def even_edges(lengths: Sequence[int], num_buckets: int = 5) -> tuple[int, ...]:
    """Choose ranges of lengths with about equally many items.

    Args:
        lengths: source lengths, at least one.
        num_buckets: number of ranges, 1 or more; the result has fewer where items or different lengths are few.

    Returns:
        Increasing lengths, each the first of a new range.

    Raises:
        UsageError: num_buckets is below 1.

    Example:
        >>> even_edges([1] * 20 + [2] * 20 + [3] * 20, 3)
        (2, 3)
    """
    if num_buckets < 1:
        raise UsageError(f"num_buckets must be 1 or more, got {num_buckets}")
    num_buckets = min(num_buckets, max(1, len(lengths) // _SMALLEST))
    ordered = np.sort(np.asarray(lengths, dtype=np.int64))
    # The length of the first item of each part begins a range, unless no item is shorter.
    first = ordered[[len(ordered) * part // num_buckets for part in range(1, num_buckets)]]
    return tuple(sorted({int(length) for length in first if length > ordered[0]}))


def require_increasing(edges: Sequence[int]) -> None:
    """Refuse edges of ranges that do not increase.

    Args:
        edges: source lengths at which a new range begins.

    Raises:
        UsageError: an edge is not above the one before it.
    """
    if any(later <= earlier for earlier, later in pairwise(edges)):
        raise UsageError(f"edges of lengths must increase, got {list(edges)}")


def by_length(
    metric: Metric,
    statistics: Matrix,
    lengths: Sequence[int],
    edges: Sequence[int],
    num_resamples: int = 1000,
    seed: int = 12345,
) -> tuple[Bucket, ...]:
    """Score the items of each range of lengths.

    Args:
        statistics: [item, statistic].
        lengths: source lengths, one per item.
        edges: increasing lengths, each the first of a new range; lengths below the first edge form the first range.
        num_resamples: number of resamples behind each interval, 1 or more.

    Returns:
        The ranges that hold items, shortest first.

    Raises:
        DataError: the numbers of lengths and items differ.
        UsageError: the edges do not increase, or num_resamples is below 1.

    Example:
        >>> from heedful.evaluation.metrics.exact_match import ExactMatch
        >>> statistics = ExactMatch().statistics(["a", "b", "x"], [["a"], ["b"], ["c"]])
        >>> [(b.label, b.score) for b in by_length(ExactMatch(), statistics, [3, 9, 25], [10, 20])]
        [('3-9', 100.0), ('20-25', 0.0)]
    """
    if len(lengths) != len(statistics):
        raise DataError(f"{len(lengths)} lengths for {len(statistics)} items: there must be one for each")
    require_increasing(edges)
    ranges = np.searchsorted(np.asarray(edges, dtype=np.int64), lengths, side="right")
    buckets: list[Bucket] = []
    for index in np.unique(ranges).tolist():
        rows = statistics[ranges == index]
        buckets.append(
            Bucket(
                shortest=edges[index - 1] if index else min(lengths),
                longest=edges[index] - 1 if index < len(edges) else max(lengths),
                num_items=len(rows),
                score=corpus_score(metric, rows),
                interval=score_interval(metric, rows, num_resamples, seed),
            )
        )
    return tuple(buckets)
