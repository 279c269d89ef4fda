"""Metrics chrF and chrF++, computed by sacreBLEU."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from heedful.evaluation.interface import Matrix, References
from heedful.evaluation.metrics.sacre import load_sacrebleu, sacre_scores, sacre_signature, sacre_statistics


@final
@dataclass(frozen=True)
class Chrf:
    """F-score (recall counts twice) of character 1- to 6-grams, spaces left out; chrF++ adds word 1- and 2-grams.

    chrF = (1 + 2^2) P R / (2^2 P + R), P and R averaged over n. Popovic 2015, W15-3049, and 2017, W17-4770.
    Statistics: for each n, the number of n-grams of the hypothesis, of its best reference, and in both.

    Attributes:
        word_order: longest word n-gram; 0 is chrF, 2 is chrF++.
        lowercase: compare without regard to case.
    """

    word_order: int = 0
    lowercase: bool = False

    unit = "points"
    higher_is_better = True

    @property
    def name(self) -> str:
        """Name as printed: ``chrF2``, with a plus for each order of words."""
        return "chrF2" + "+" * self.word_order

    def statistics(self, hypotheses: Sequence[str], references: References) -> Matrix:
        """Count n-grams; see `Metric.statistics`."""
        return sacre_statistics(self._scorer(), hypotheses, references)

    def scores(self, totals: Matrix) -> Matrix:
        """Return chrF in [0, 100] of summed statistics; see `Metric.scores`."""
        return sacre_scores(self._scorer(), totals)

    def signature(self, references: References) -> str:
        """Return sacreBLEU's signature; see `Metric.signature`."""
        return sacre_signature(self._scorer(), references)

    def _scorer(self) -> Any:
        return load_sacrebleu("chrF").CHRF(word_order=self.word_order, lowercase=self.lowercase)
