"""Worst outputs of an evaluation, by a metric of single items."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from heedful.data.prepare import EvaluationSet
from heedful.evaluation.interface import corpus_score
from heedful.evaluation.report import Result

MOST_WORST: Final = 50
"""Number of outputs that a record stores."""
_SUITED: Final = "chrf"
"""Metric that also grades single sentences; BLEU is 0 for nearly every poor one."""


@final
@dataclass(frozen=True)
class ScoredOutput:
    """Output for one source, with its references and its own score."""

    source: str
    references: tuple[str, ...]
    output: str
    score: float
    """Score of this output alone, in the metric's unit."""

    def to_dict(self) -> dict[str, Any]:
        """List the fields for JSON.

        Returns:
            Values that JSON can hold.
        """
        return {**vars(self), "references": list(self.references)}


def worst_outputs(
    items: EvaluationSet, outputs: Sequence[str], results: Sequence[Result], number: int = MOST_WORST
) -> tuple[str, tuple[ScoredOutput, ...]]:
    """Choose the outputs with the worst scores.

    Args:
        outputs: one output for each source.
        results: results of metrics on these outputs; chrF is used if it is among them, else the first.
        number: largest number of outputs.

    Returns:
        The key of the metric, and the outputs, worst first; both empty without results.
    """
    if not results:
        return "", ()
    result = next((one for one in results if one.key == _SUITED), results[0])
    scores = [corpus_score(result.metric, row[None]) for row in result.statistics]
    sign = 1.0 if result.metric.higher_is_better else -1.0
    chosen = sorted(range(len(scores)), key=lambda index: sign * scores[index])[:number]
    return result.key, tuple(
        ScoredOutput(items.sources[index], tuple(items.references[index]), outputs[index], scores[index])
        for index in chosen
    )
