"""Shares of the reference's tokens that are right where they stand, of all or of those before the first error."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, final

import numpy as np

from heedful.evaluation.interface import Matrix, References, reference_count


@final
@dataclass(frozen=True)
class TokensInPlace:
    """Share of the reference's tokens that the hypothesis has in their places, all or those before the first error.

    Tokens are separated by white space; of several references the best counts. "before an error" is the measure of Kim
    et al. 2017, arXiv:1702.00887, table 1, for which the end of the text is a token too.
    Statistics: share of the item; 1 for each item.

    Attributes:
        kind: "all" tokens, or those "before an error".
        lowercase: compare without regard to case.
    """

    kind: Literal["all", "before an error"]
    lowercase: bool = False

    unit = "%"
    higher_is_better = True

    @property
    def name(self) -> str:
        """Name as printed: ``tokens in place`` or ``tokens before an error``."""
        return "tokens in place" if self.kind == "all" else "tokens before an error"

    def statistics(self, hypotheses: Sequence[str], references: References) -> Matrix:
        """Compute the share of each item; see `Metric.statistics`."""
        shares = [
            max(self._share(self._tokens(hypothesis), self._tokens(text)) for text in texts)
            for hypothesis, texts in zip(hypotheses, references, strict=True)
        ]
        return np.stack([np.array(shares, dtype=np.float64), np.ones(len(shares))], axis=1)

    def scores(self, totals: Matrix) -> Matrix:
        """Return the mean share in per cent, 0 to 100; see `Metric.scores`."""
        return 100 * totals[..., 0] / totals[..., 1]

    def signature(self, references: References) -> str:
        """Return the definition in sacreBLEU's style; see `Metric.signature`."""
        case = "lc" if self.lowercase else "mixed"
        return f"nrefs:{reference_count(references)}|case:{case}|tokens:space|heedful:1"

    def _tokens(self, text: str) -> list[str]:
        words = (text.lower() if self.lowercase else text).split()
        return words if self.kind == "all" else [*words, ""]

    def _share(self, produced: list[str], wanted: list[str]) -> float:
        right = [mine == theirs for mine, theirs in zip(produced, wanted, strict=False)]
        if self.kind == "before an error":
            right = [*takewhile(bool, right)]
        return sum(right) / len(wanted) if wanted else float(not produced)
