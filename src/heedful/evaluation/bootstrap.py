"""Confidence intervals and significance by bootstrap resampling of items.

Resamples are drawn from NumPy's PCG64 as sacreBLEU draws them, so the same seed gives the same resamples.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from heedful.errors import DataError, UsageError
from heedful.evaluation.interface import Matrix, Metric, corpus_score

_BLOCK = 1 << 22  # counts in memory at a time: 32 MiB


class Interval(NamedTuple):
    """Confidence interval of 95 %, from the percentiles of resampled scores.

    Attributes:
        low: the 2.5th percentile.
        high: the 97.5th percentile.
    """

    low: float
    high: float


@final
@dataclass(frozen=True)
class Difference:
    """Difference of one system from a baseline on the same items.

    Attributes:
        metric: name of the metric.
        unit: unit of the scores and of the difference.
        higher_is_better: whether a positive difference is an improvement.
        score: score of the system.
        baseline_score: score of the baseline.
        difference: score - baseline_score.
        interval: 95 % interval of the difference.
        p_value: how often chance alone gives a difference at least as large, in either direction; in (0, 1].
        win_rate: share of resamples in which the system is better, ties counting half.
        num_items: number of items.
        num_resamples: number of resamples.
        seed: seed of the resampling.

    Example:
        >>> from heedful.evaluation.metrics.bleu import Bleu
        >>> bleu, references = Bleu(), [["a very quiet room"]] * 20
        >>> right = bleu.statistics(["a very quiet room"] * 20, references)
        >>> mixed = bleu.statistics(["a very quiet room", "a very loud room"] * 10, references)
        >>> paired_bootstrap(bleu, right, mixed).verdict()
        'better'
    """

    metric: str
    unit: str
    higher_is_better: bool
    score: float
    baseline_score: float
    difference: float
    interval: Interval
    p_value: float
    win_rate: float
    num_items: int
    num_resamples: int
    seed: int

    def verdict(self, level: float = 0.05) -> str:
        """Return whether the system is better than the baseline, in one word.

        Args:
            level: p-values below it count as evidence; in (0, 1).

        Returns:
            ``better``, ``worse`` or ``undecided``.
        """
        if self.p_value >= level:
            return "undecided"
        return "better" if (self.difference > 0) == self.higher_is_better else "worse"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and the verdict as plain values that JSON can hold."""
        plain = {key: value for key, value in vars(self).items() if key != "interval"}
        return {**plain, "low": self.interval.low, "high": self.interval.high, "verdict": self.verdict()}


def resampled_totals(statistics: Matrix, num_resamples: int = 1000, seed: int = 12345) -> Matrix:
    """Sum the statistics over bootstrap resamples: as many items as there are, drawn with replacement.

    Args:
        statistics: [item, statistic].
        num_resamples: number of resamples, 1 or more.
        seed: seed of the resampling; equal seeds give equal resamples.

    Returns:
        [resample, statistic].

    Raises:
        UsageError: num_resamples is below 1.

    Cost: num_resamples * item draws; memory 32 MiB whatever the number of items.
    """
    if num_resamples < 1:
        raise UsageError(f"num_resamples must be 1 or more, got {num_resamples}")
    generator = np.random.default_rng(seed)
    num_items = len(statistics)
    block = max(1, _BLOCK // num_items)
    totals = np.empty((num_resamples, statistics.shape[1]))
    for start in range(0, num_resamples, block):
        stop = min(start + block, num_resamples)
        drawn = generator.integers(0, num_items, size=(stop - start, num_items))
        # One bincount counts the draws of each item in every resample: resample i has the numbers from i * num_items.
        drawn += np.arange(stop - start)[:, None] * num_items
        counts = np.bincount(drawn.ravel(), minlength=(stop - start) * num_items).reshape(drawn.shape)
        totals[start:stop] = counts.astype(np.float64) @ statistics
    return totals


def score_interval(metric: Metric, statistics: Matrix, num_resamples: int = 1000, seed: int = 12345) -> Interval:
    """Compute the confidence interval of a score by bootstrap resampling. Koehn 2004, W04-3250, section 3.

    Args:
        statistics: [item, statistic].
        num_resamples: number of resamples, 1 or more.

    Returns:
        The 95 % interval of the score, in the metric's unit.

    Raises:
        UsageError: num_resamples is below 1.
    """
    return _percentiles(metric.scores(resampled_totals(statistics, num_resamples, seed)))


def paired_bootstrap(
    metric: Metric, statistics: Matrix, baseline_statistics: Matrix, num_resamples: int = 1000, seed: int = 12345
) -> Difference:
    """Compare two systems on the same items, over the same resamples.

    p = (1 + #{resamples: |d_b - mean(d)| >= |d|}) / (1 + resamples): the resampled differences, shifted to mean zero,
    model differences by chance. Koehn 2004, W04-3250, section 5; shifted as in Riezler and Maxwell 2005, W05-0908.
    Both directions count, so p is about twice the one sacreBLEU prints for its paired bootstrap, and a system
    against itself has p = 1.

    Args:
        statistics: [item, statistic] of the system.
        baseline_statistics: [item, statistic] of the baseline, the same items in the same order.
        num_resamples: number of resamples, 1 or more.

    Returns:
        The difference, its interval and its p-value.

    Raises:
        DataError: the numbers of items differ.
        UsageError: num_resamples is below 1.
    """
    if statistics.shape != baseline_statistics.shape:
        raise DataError(
            f"two systems are compared on the same items only, got {len(statistics)} and {len(baseline_statistics)}"
        )
    resampled = metric.scores(resampled_totals(statistics, num_resamples, seed))
    resampled = resampled - metric.scores(resampled_totals(baseline_statistics, num_resamples, seed))
    score, baseline_score = corpus_score(metric, statistics), corpus_score(metric, baseline_statistics)
    difference = score - baseline_score
    # The tolerance counts a difference that is smaller only by rounding as large.
    as_large = np.abs(resampled - resampled.mean()) >= abs(difference) - 1e-9
    wins = resampled > 0 if metric.higher_is_better else resampled < 0
    return Difference(
        metric=metric.name,
        unit=metric.unit,
        higher_is_better=metric.higher_is_better,
        score=score,
        baseline_score=baseline_score,
        difference=difference,
        interval=_percentiles(resampled),
        p_value=float((1 + as_large.sum()) / (1 + num_resamples)),
        win_rate=float(wins.mean() + (resampled == 0).mean() / 2),
        num_items=len(statistics),
        num_resamples=num_resamples,
        seed=seed,
    )


def _percentiles(scores: Matrix) -> Interval:
    low, high = np.quantile(scores, [0.025, 0.975]).tolist()
    return Interval(low, high)
