"""Exact match and F1 of answers that are spans of texts, apart from case, punctuation and articles."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from heedful.evaluation.answers import span_scores
from heedful.evaluation.interface import Matrix, References, reference_count


@final
@dataclass(frozen=True)
class SpanScore:
    """Share of right answers, or F1 of the words of answers, as Rajpurkar et al. 2016, arXiv:1606.05250, compute them.

    Answers are compared without case, punctuation and the articles a, an and the; of several references the best
    counts. Statistics: score of the item, in [0, 1]; 1 for each item.

    Attributes:
        kind: "match" = whether the words are those of the reference, in their order; "f1" = F1 of the words.
    """

    kind: Literal["match", "f1"]

    unit = "%"
    higher_is_better = True

    @property
    def name(self) -> str:
        """Name as printed: ``exact match`` or ``F1``."""
        return "exact match" if self.kind == "match" else "F1"

    def statistics(self, hypotheses: Sequence[str], references: References) -> Matrix:
        """Score each answer; see `Metric.statistics`."""
        column = 0 if self.kind == "match" else 1
        scores = [
            max(float(span_scores(hypothesis, text)[column]) for text in texts)
            for hypothesis, texts in zip(hypotheses, references, strict=True)
        ]
        return np.stack([np.array(scores, dtype=np.float64), np.ones(len(scores))], axis=1)

    def scores(self, totals: Matrix) -> Matrix:
        """Return the mean in per cent, 0 to 100; see `Metric.scores`."""
        return 100 * totals[..., 0] / totals[..., 1]

    def signature(self, references: References) -> str:
        """Return the definition in sacreBLEU's style; see `Metric.signature`."""
        return f"nrefs:{reference_count(references)}|case:lc|punct:no|articles:no|heedful:1"
