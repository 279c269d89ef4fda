"""Scores of answers: those of labels, and the share of supporting facts that were attended."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from heedful.evaluation.labels import LabelReport, score_labels
from heedful.text.counts import counted


@final
@dataclass(frozen=True)
class AnswerReport:
    """Scores of the answers to a set of questions."""

    answers: LabelReport
    num_supporting: int
    """Number of supporting facts of all stories that name theirs."""
    num_attended: int
    """Number of supporting facts that have the largest weight at one step or more."""

    def __repr__(self) -> str:
        return f"<AnswerReport of {self.answers.num_items:,} questions: accuracy {self.answers.accuracy:.2f}>"

    @property
    def right(self) -> tuple[bool, ...]:
        """Whether each answer is right."""
        return self.answers.right

    @property
    def attended(self) -> float | None:
        """Share of the supporting facts that have the largest weight at some step, in percent; None = none known."""
        return 100.0 * self.num_attended / self.num_supporting if self.num_supporting else None

    def summary(self) -> str:
        """Summarise the scores in a few lines.

        Returns:
            Lines that end in a newline.
        """
        return f"{self.answers.summary()}{self._supporting('       ')}"

    def to_text(self) -> str:
        """Write all scores as tables.

        Returns:
            Lines that end in a newline.
        """
        return f"{self._supporting('')}{self.answers.to_text()}"

    def _supporting(self, margin: str) -> str:
        if self.attended is None:
            return ""
        facts = counted(self.num_supporting, "supporting fact")
        return f"{margin}{self.attended:.2f} % of {facts} have the largest weight at some step\n"

    def to_dict(self) -> dict[str, Any]:
        """List all scores.

        Returns:
            Values that JSON can hold.
        """
        facts = {"num_supporting": self.num_supporting, "attended": self.attended}
        return self.answers.to_dict() | facts


def score_answers(
    predicted: Sequence[str],
    gold: Sequence[str],
    supporting: Sequence[Sequence[int]],
    weights: Sequence[NDArray[np.float32] | None],
) -> AnswerReport:
    """Compare answers with the right ones, and attention with the supporting facts.

    Args:
        predicted: an answer for each question.
        gold: the right answers.
        supporting: indices of the supporting facts of each; none = unknown.
        weights: [step, fact] attention weights of each; None = no attention.

    Returns:
        The scores.

    Raises:
        DataError: there are no questions.

    Example:
        >>> report = score_answers(["a"], ["a"], [[0, 2]], [np.array([[0.5, 0.1, 0.4], [0.9, 0.0, 0.1]])])
        >>> report.attended
        50.0
    """
    num_attended = sum(
        len({*facts} & {*own.argmax(axis=1).tolist()})
        for facts, own in zip(supporting, weights, strict=True)
        if own is not None and own.size
    )
    return AnswerReport(score_labels(predicted, gold, "question"), sum(map(len, supporting)), num_attended)
