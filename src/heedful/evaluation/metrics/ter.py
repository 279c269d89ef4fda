"""TER (translation edit rate), computed by sacreBLEU."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from heedful.evaluation.interface import Matrix, References
from heedful.evaluation.metrics.sacre import load_sacrebleu, sacre_scores, sacre_signature, sacre_statistics


@final
@dataclass(frozen=True)
class Ter:
    """Translation edit rate: insertions, deletions and substitutions of words and moves of blocks, per reference word.

    TER = 100 edits / mean length of the references, without regard to case (sacreBLEU's default).
    Snover et al. 2006, AMTA. Statistics: edits to the closest reference, mean reference length.

    Attributes:
        characters: split Chinese and Japanese into characters, and split punctuation from words.
    """

    characters: bool = False

    name = "TER"
    unit = "%"
    higher_is_better = False

    def statistics(self, hypotheses: Sequence[str], references: References) -> Matrix:
        """Count edits and lengths; see `Metric.statistics`."""
        return sacre_statistics(self._scorer(), hypotheses, references)

    def scores(self, totals: Matrix) -> Matrix:
        """Return TER in per cent, 0 or more, of summed statistics; see `Metric.scores`."""
        return sacre_scores(self._scorer(), totals)

    def signature(self, references: References) -> str:
        """Return sacreBLEU's signature; see `Metric.signature`."""
        return sacre_signature(self._scorer(), references)

    def _scorer(self) -> Any:
        # sacreBLEU splits characters only with normalisation on.
        return load_sacrebleu("TER").TER(normalized=self.characters, asian_support=self.characters)
