"""Lead of a source: its first words as a summary, the baseline that summaries are compared with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from heedful.evaluation.interface import Metric, References, corpus_score
from heedful.evaluation.language import text_lengths

SHORTER: Final = 2.0
"""Ratio of the mean lengths of sources and references from which on these are taken for summaries."""
RECURRING: Final = 0.5
"""Share of the words of references that recur in their sources, from which on these are taken for summaries."""


@final
@dataclass(frozen=True)
class Lead:
    """Scores of the first words of each source."""

    length: int
    """Number of words, or of characters where scripts have no spaces: the mean of the references."""
    unit: str
    """``words`` or ``characters``."""
    scores: Mapping[str, float]
    """Score by the name of the metric."""

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain values that JSON can hold."""
        return {"length": self.length, "unit": self.unit, "scores": dict(self.scores)}

    def __str__(self) -> str:
        scores = ", ".join(f"{name} {score:.2f}" for name, score in self.scores.items())
        return f"the first {self.length} {self.unit} of each source alone have {scores}"


def are_summaries(sources: Sequence[str], references: References) -> bool:
    """Tell whether references are much shorter than their sources, and most of their words recur there.

    Example:
        >>> are_summaries(["the old mill burned down last night , police say"], [["old mill burned down"]])
        True
    """
    firsts = [texts[0].casefold() for texts in references]
    unit, lengths = text_lengths(firsts)
    if sum(_length(source, unit) for source in sources) < SHORTER * sum(lengths):
        return False
    parts = [
        (_words(source.casefold(), unit), _words(text, unit)) for source, text in zip(sources, firsts, strict=True)
    ]
    recurring = sum(word in source for own, words in parts for source in [{*own}] for word in words)
    return recurring >= RECURRING * sum(len(words) for _, words in parts)


def score_lead(sources: Sequence[str], references: References, metrics: Sequence[Metric]) -> Lead:
    """Score the first words of each source, as many as references have on average.

    Args:
        metrics: metrics of the report.
    """
    unit, lengths = text_lengths([text for texts in references for text in texts])
    length = max(1, round(sum(lengths) / len(lengths)))
    leads = [_first(source, length, unit) for source in sources]
    scores = {metric.name: corpus_score(metric, metric.statistics(leads, references)) for metric in metrics}
    return Lead(length, unit, scores)


def _words(text: str, unit: str) -> Sequence[str]:
    return text.split() if unit == "words" else "".join(text.split())


def _length(text: str, unit: str) -> int:
    return len(_words(text, unit))


def _first(text: str, length: int, unit: str) -> str:
    return " ".join(text.split()[:length]) if unit == "words" else text.strip()[:length]
