"""Interface of metrics: statistics of each item that can be summed, and a formula from their sums to the score.

Because the statistics of a set of items are the sum of those of its members, the score of a corpus, of the items of
one length and of a bootstrap resample all come from one matrix, computed once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
References = Sequence[Sequence[str]]


@final
@dataclass(frozen=True)
class Setting:
    """Settings of all metrics.

    Attributes:
        tokenizer: sacreBLEU's name of the tokenizer that fits the target language.
        lowercase: compare without regard to case.
    """

    tokenizer: str = "13a"
    lowercase: bool = False


class Metric(Protocol):
    """A score of hypotheses against references; stateless, so one object serves any number of corpora."""

    @property
    def name(self) -> str:
        """Name as printed, such as ``BLEU``."""
        ...

    @property
    def unit(self) -> str:
        """Unit: ``points`` (0 to 100) or ``%``."""
        ...

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger score is a better one."""
        ...

    def statistics(self, hypotheses: Sequence[str], references: References) -> Matrix:
        """Compute the statistics of each item.

        Args:
            hypotheses: one text per item.
            references: at least one text per item; items may have different numbers of them.

        Returns:
            [item, statistic] numbers that can be summed over items.
        """
        ...

    def scores(self, totals: Matrix) -> Matrix:
        """Compute scores from summed statistics.

        Args:
            totals: [*batch, statistic] sums over any items.

        Returns:
            [*batch] scores in `unit`; finite.
        """
        ...

    def signature(self, references: References) -> str:
        """Return the definition of the score: equal signatures mean comparable scores.

        Args:
            references: references of the items; only their number per item matters.

        Returns:
            ``key:value`` pairs joined by ``|``.
        """
        ...


def corpus_score(metric: Metric, statistics: Matrix) -> float:
    """Score all items together.

    Args:
        statistics: [item, statistic].

    Returns:
        The corpus score in the metric's unit, which is not the mean of the items' scores.
    """
    return float(metric.scores(statistics.sum(axis=0)))


def reference_count(references: References) -> str:
    """Return the number of references of the items, in sacreBLEU's notation.

    Args:
        references: references of each item.

    Returns:
        A number, or ``var`` where items differ.

    Example:
        >>> reference_count([["a"], ["b"]]), reference_count([["a"], ["b", "c"]])
        ('1', 'var')
    """
    counts = {len(texts) for texts in references}
    return str(counts.pop()) if len(counts) == 1 else "var"
