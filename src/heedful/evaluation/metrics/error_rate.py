"""Token error rate (of words or phonemes) and character error rate, by edit distance."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from heedful.evaluation.interface import Matrix, References, reference_count
from heedful.evaluation.metrics.edit_distance import edit_distance


@final
@dataclass(frozen=True)
class TokenErrorRate:
    """Edits per reference token, with tokens separated by white space.

    This is the word error rate of speech recognition and the phoneme error rate of pronunciation; the word error rate
    of pronunciation is `WrongOutputs`. Rate = 100 sum_i d(h_i, r_i) / sum_i |r_i|, r_i the reference with the fewest
    edits, the shortest among equals. Statistics: edits, reference length.

    Attributes:
        lowercase: compare without regard to case.
    """

    lowercase: bool = False

    name = "token error rate"
    unit = "%"
    higher_is_better = False

    def statistics(self, hypotheses: Sequence[str], references: References) -> Matrix:
        """Count edits and tokens; see `Metric.statistics`."""
        return _edits(hypotheses, references, self.lowercase, str.split)

    def scores(self, totals: Matrix) -> Matrix:
        """Return the rate in per cent, 0 or more; see `Metric.scores`."""
        return _rate(totals)

    def signature(self, references: References) -> str:
        """Return the definition in sacreBLEU's style; see `Metric.signature`."""
        return _signature(references, self.lowercase, "space")


@final
@dataclass(frozen=True)
class CharacterErrorRate:
    """Edits per reference character (code point), after trimming texts and collapsing white space to single spaces.

    Rate = 100 sum_i d(h_i, r_i) / sum_i |r_i|, r_i the reference with the fewest edits, the shortest among equals.
    Statistics: edits, reference length.

    Attributes:
        lowercase: compare without regard to case.
    """

    lowercase: bool = False

    name = "character error rate"
    unit = "%"
    higher_is_better = False

    def statistics(self, hypotheses: Sequence[str], references: References) -> Matrix:
        """Count edits and characters; see `Metric.statistics`."""
        return _edits(hypotheses, references, self.lowercase, lambda text: " ".join(text.split()))

    def scores(self, totals: Matrix) -> Matrix:
        """Return the rate in per cent, 0 or more; see `Metric.scores`."""
        return _rate(totals)

    def signature(self, references: References) -> str:
        """Return the definition in sacreBLEU's style; see `Metric.signature`."""
        return _signature(references, self.lowercase, "char")


def _edits(
    hypotheses: Sequence[str], references: References, lowercase: bool, split: Callable[[str], Sequence[str]]
) -> Matrix:
    def tokens(text: str) -> Sequence[str]:
        return split(text.lower() if lowercase else text)

    rows: list[tuple[int, int]] = []
    for hypothesis, texts in zip(hypotheses, references, strict=True):
        hypothesis_tokens = tokens(hypothesis)
        reference_tokens = [tokens(text) for text in texts]
        rows.append(
            min((edit_distance(hypothesis_tokens, reference), len(reference)) for reference in reference_tokens)
        )
    return np.array(rows, dtype=np.float64)


def _rate(totals: Matrix) -> Matrix:
    edits, length = totals[..., 0], totals[..., 1]
    # Without any reference token, the rate is 0 or 100, as in sacreBLEU's TER.
    return 100 * np.where(length > 0, edits / np.maximum(length, 1), np.minimum(edits, 1))


def _signature(references: References, lowercase: bool, tokens: str) -> str:
    count, case = reference_count(references), "lc" if lowercase else "mixed"
    return f"nrefs:{count}|case:{case}|tok:{tokens}|ref:closest|heedful:1"
