"""ROUGE-1, ROUGE-2 and ROUGE-L, computed by the package rouge-score."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, final

import numpy as np

from heedful.errors import MissingExtra
from heedful.evaluation.interface import Matrix, References, reference_count

_TOKEN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[^\W_]+")
"""A Chinese or Japanese character, or a run of other letters and digits."""


@final
@dataclass(frozen=True)
class Rouge:
    """F-score of the words that a summary has in common with its reference: n-grams, or the longest common subsequence.

    F = 2 P R / (P + R), averaged over the items; of several references the best counts. Lin 2004, W04-1013. Words are
    compared in lower case and without stemming; a Chinese character is a word.
    Statistics: F of the item; 1 for each item.

    Attributes:
        kind: "1" and "2" for n-grams, "L" for the longest common subsequence.
    """

    kind: Literal["1", "2", "L"]

    unit = "points"
    higher_is_better = True

    @property
    def name(self) -> str:
        """Name as printed: ``ROUGE-1``, ``ROUGE-2`` or ``ROUGE-L``."""
        return f"ROUGE-{self.kind}"

    def statistics(self, hypotheses: Sequence[str], references: References) -> Matrix:
        """Compute the F-score of each item; see `Metric.statistics`."""
        scorer, key = self._scorer(), f"rouge{self.kind}"
        scores = [
            scorer.score_multi(list(texts), hypothesis)[key].fmeasure
            for hypothesis, texts in zip(hypotheses, references, strict=True)
        ]
        return np.stack([np.array(scores, dtype=np.float64), np.ones(len(scores))], axis=1)

    def scores(self, totals: Matrix) -> Matrix:
        """Return the mean F-score in [0, 100]; see `Metric.scores`."""
        return 100 * totals[..., 0] / totals[..., 1]

    def signature(self, references: References) -> str:
        """Return the definition in sacreBLEU's style; see `Metric.signature`."""
        return f"nrefs:{reference_count(references)}|case:lc|stem:no|tok:unicode|rouge_score:{_version()}"

    def _scorer(self) -> Any:
        try:
            from rouge_score.rouge_scorer import RougeScorer
        except ModuleNotFoundError as error:
            raise MissingExtra(str(error.name), "summaries", self.name) from None
        return RougeScorer([f"rouge{self.kind}"], tokenizer=_Tokenizer())


@final
class _Tokenizer:
    def tokenize(self, text: str) -> list[str]:
        return _TOKEN.findall(text.lower())


def _version() -> str:
    from importlib.metadata import version

    return version("rouge-score")
