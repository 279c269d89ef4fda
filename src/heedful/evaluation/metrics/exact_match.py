"""Exact match, and its complement: the shares of right and wrong outputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from heedful.evaluation.interface import Matrix, References, reference_count


@final
@dataclass(frozen=True)
class ExactMatch:
    """Share of items whose hypothesis equals one of its references.

    Texts are trimmed and runs of white space collapsed to single spaces, since no reader sees the difference.
    Statistics: 1 for a right output and 0 for a wrong one; 1 for each item.

    Attributes:
        lowercase: compare without regard to case.
        name: name as printed; for labels it is "accuracy".
    """

    lowercase: bool = False
    name: str = "exact match"

    unit = "%"
    higher_is_better = True

    def statistics(self, hypotheses: Sequence[str], references: References) -> Matrix:
        """Mark right outputs; see `Metric.statistics`."""
        right = _right(hypotheses, references, self.lowercase)
        return np.stack([right, np.ones_like(right)], axis=1)

    def scores(self, totals: Matrix) -> Matrix:
        """Return the share in per cent, 0 to 100; see `Metric.scores`."""
        return 100 * totals[..., 0] / totals[..., 1]

    def signature(self, references: References) -> str:
        """Return the definition in sacreBLEU's style; see `Metric.signature`."""
        return _signature(references, self.lowercase)


@final
@dataclass(frozen=True)
class WrongOutputs:
    """Share of items whose hypothesis equals none of its references: 100 % - exact match.

    This is the word error rate of papers on pronunciation and transliteration, where an item is one word.
    Statistics: 1 for a wrong output and 0 for a right one; 1 for each item.

    Attributes:
        lowercase: compare without regard to case.
    """

    lowercase: bool = False

    name = "wrong outputs"
    unit = "%"
    higher_is_better = False

    def statistics(self, hypotheses: Sequence[str], references: References) -> Matrix:
        """Mark wrong outputs; see `Metric.statistics`."""
        right = _right(hypotheses, references, self.lowercase)
        return np.stack([1 - right, np.ones_like(right)], axis=1)

    def scores(self, totals: Matrix) -> Matrix:
        """Return the share in per cent, 0 to 100; see `Metric.scores`."""
        return 100 * totals[..., 0] / totals[..., 1]

    def signature(self, references: References) -> str:
        """Return the definition in sacreBLEU's style; see `Metric.signature`."""
        return _signature(references, self.lowercase)


def _right(hypotheses: Sequence[str], references: References, lowercase: bool) -> Matrix:
    def words(text: str) -> list[str]:
        return (text.lower() if lowercase else text).split()

    right = [
        any(words(hypothesis) == words(text) for text in texts)
        for hypothesis, texts in zip(hypotheses, references, strict=True)
    ]
    return np.array(right, dtype=np.float64)


def _signature(references: References, lowercase: bool) -> str:
    return f"nrefs:{reference_count(references)}|case:{'lc' if lowercase else 'mixed'}|space:collapsed|heedful:1"
