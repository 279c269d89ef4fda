"""BLEU, computed by sacreBLEU."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from heedful.evaluation.interface import Matrix, References
from heedful.evaluation.metrics.sacre import load_sacrebleu, sacre_scores, sacre_signature, sacre_statistics


@final
@dataclass(frozen=True)
class Bleu:
    """Share of word 1- to 4-grams found in the references, with a penalty for brevity.

    BLEU = BP exp(1/4 sum_{n=1}^4 log p_n), BP = min(1, exp(1 - r/c)); c hypothesis words, r those of the reference
    closest in length. Papineni et al. 2002, ACL P02-1040; Post 2018, arXiv:1804.08771.
    Statistics: c, r, four counts of matches, four counts of n-grams.

    Attributes:
        tokenizer: sacreBLEU's name of a tokenizer.
        lowercase: compare without regard to case.

    Example:
        >>> counts = Bleu().statistics(["a cat sat on a mat"], [["a cat sat on the mat"]])
        >>> Bleu().scores(counts).round(1).tolist()
        [53.7]
    """

    tokenizer: str = "13a"
    lowercase: bool = False

    name = "BLEU"
    unit = "points"
    higher_is_better = True

    def statistics(self, hypotheses: Sequence[str], references: References) -> Matrix:
        """Count n-grams and lengths; see `Metric.statistics`."""
        return sacre_statistics(self._scorer(), hypotheses, references)

    def scores(self, totals: Matrix) -> Matrix:
        """Return BLEU in [0, 100] of summed statistics; see `Metric.scores`."""
        return sacre_scores(self._scorer(), totals)

    def signature(self, references: References) -> str:
        """Return sacreBLEU's signature; see `Metric.signature`."""
        return sacre_signature(self._scorer(), references)

    def _scorer(self) -> Any:
        # force=True: no warning from sacreBLEU that a text looks tokenised; the report has its own note.
        return load_sacrebleu("BLEU").BLEU(tokenize=self.tokenizer, lowercase=self.lowercase, force=True)
