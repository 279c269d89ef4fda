"""Scores of answers: those of labels or of spans, and the share of supporting facts that were attended."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.evaluation.bootstrap import Difference
from heedful.evaluation.labels import LabelReport, compare_labels, score_labels, wilson_interval
from heedful.evaluation.shown import Shown
from heedful.text.counts import counted

_WORD: Final = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff]|[^\W\u2e80-\u9fff\uf900-\ufaff]+")
_ARTICLES: Final = frozenset(("a", "an", "the"))


@final
@dataclass(frozen=True)
class AnswerReport(Shown):
    """Scores of the answers to a set of questions.

    Example:
        >>> score_answers(["attic", "hall"], ["attic", "cellar"], [[], []], [None, None])
        <AnswerReport of 2 questions: accuracy 50.00>
    """

    answers: LabelReport
    """Scores of the answers as labels."""
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
        """Summarise the scores in a few lines."""
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

    def differences(self, baseline: Self, seed: int = 12345) -> tuple[Difference, ...]:
        """Compare the shares of right answers; see `heedful.predictors.interface.Measured.differences`."""
        return (compare_labels(self.right, baseline.right, seed=seed),)


def score_answers(
    predicted: Sequence[str],
    gold: Sequence[str],
    supporting: Sequence[Sequence[int]],
    weights: Sequence[NDArray[np.float32] | None],
) -> AnswerReport:
    """Compare answers with the right ones, and attention with the supporting facts.

    Args:
        predicted: an answer for each question.
        supporting: indices of the supporting facts of each; none = unknown.
        weights: [step, fact] attention weights of each; None = no attention.

    Raises:
        DataError: there are no questions.

    Example:
        >>> report = score_answers(["a"], ["a"], [[0, 2]], [np.array([[0.5, 0.1, 0.4], [0.9, 0.0, 0.1]])])
        >>> report.attended
        50.0
    """
    num_attended = _num_attended(supporting, weights)
    return AnswerReport(score_labels(predicted, gold, "question", "answer"), sum(map(len, supporting)), num_attended)


def _num_attended(supporting: Sequence[Sequence[int]], weights: Sequence[NDArray[np.float32] | None]) -> int:
    return sum(
        len({*facts} & {*own.argmax(axis=1).tolist()})
        for facts, own in zip(supporting, weights, strict=True)
        if own is not None and own.size
    )


@final
@dataclass(frozen=True)
class SpanReport(Shown):
    """Scores of answers that are spans of texts, as Rajpurkar et al. 2016, arXiv:1606.05250, compute them.

    Example:
        >>> report = SpanReport(right=(True, False), shares=(1.0, 0.5))
        >>> report.exact_match, report.f1
        (50.0, 75.0)
    """

    right: tuple[bool, ...]
    """Whether each answer is right, apart from case, punctuation and the articles a, an and the."""
    shares: tuple[float, ...]
    """F1 of the words of each answer and of the right one, in [0, 1]."""
    num_supporting: int = 0
    """Number of supporting facts of all stories that name theirs."""
    num_attended: int = 0
    """Number of supporting facts that have the largest weight as start or end."""
    are_impossible: tuple[bool, ...] = ()
    """Whether the right answer of each is that there is none; empty = of no question."""
    majority: float = 0.0
    """Share of these questions that have their own most frequent right answer, right so often alone, in percent."""

    def __repr__(self) -> str:
        return f"<SpanReport of {len(self.right):,} questions: exact match {self.exact_match:.2f}, F1 {self.f1:.2f}>"

    @property
    def exact_match(self) -> float:
        """Share of right answers, in percent."""
        return 100.0 * sum(self.right) / len(self.right)

    @property
    def f1(self) -> float:
        """Mean F1 of the words, in percent."""
        return 100.0 * sum(self.shares) / len(self.shares)

    @property
    def num_impossible(self) -> int:
        """Number of questions that their facts do not answer."""
        return sum(self.are_impossible)

    @property
    def by_answer(self) -> dict[str, float]:
        """Exact match and F1 of the questions with an answer, and the share of the others that get none, in percent.

        Empty unless there are questions of both kinds, as in SQuAD 2.0; Rajpurkar et al. 2018, arXiv:1806.03822.
        """
        number, num_all = self.num_impossible, len(self.right)
        if not 0 < number < num_all:
            return {}
        none = sum(right for right, is_none in zip(self.right, self.are_impossible, strict=True) if is_none)
        num_answered = num_all - number
        return {
            "answered_exact_match": 100.0 * (sum(self.right) - none) / num_answered,
            "answered_f1": 100.0 * (sum(self.shares) - none) / num_answered,
            "impossible_recognised": 100.0 * none / number,
        }

    @property
    def attended(self) -> float | None:
        """Share of the supporting facts in which the answer starts or ends, in percent; None = none known."""
        return 100.0 * self.num_attended / self.num_supporting if self.num_supporting else None

    def summary(self) -> str:
        """Summarise the scores in a few lines."""
        low, high = wilson_interval(sum(self.right), len(self.right))
        lines = [
            f"test:  {counted(len(self.right), 'question')}; 95 % interval",
            f"       exact match {self.exact_match:.2f} % [{low:.2f}, {high:.2f}], F1 {self.f1:.2f} %; "
            f"the most frequent answer of these questions alone has {self.majority:.2f} %",
        ]
        if by_answer := self.by_answer:
            answered, f1, recognised = by_answer.values()
            number = counted(len(self.right) - self.num_impossible, "question")
            lines.append(f"       {number} with an answer: exact match {answered:.2f} %, F1 {f1:.2f} %")
            lines.append(f"       {self.num_impossible:,} without: {recognised:.2f} % recognised")
        if self.attended is not None:
            lines.append(f"       {self.attended:.2f} % of {counted(self.num_supporting, 'supporting fact')} attended")
        return "".join(f"{line}\n" for line in lines)

    def to_text(self) -> str:
        """Write all scores as a table.

        Returns:
            Lines that end in a newline.
        """
        return "".join(f"{line.removeprefix('test:').strip()}\n" for line in self.summary().split("\n")[:-1])

    def to_dict(self) -> dict[str, Any]:
        """List all scores.

        Returns:
            Values that JSON can hold.
        """
        low, high = wilson_interval(sum(self.right), len(self.right))
        return {
            "num_items": len(self.right),
            "exact_match": self.exact_match,
            "low": low,
            "high": high,
            "f1": self.f1,
            "majority": self.majority,
            "num_impossible": self.num_impossible,
            **self.by_answer,
            "num_supporting": self.num_supporting,
            "attended": self.attended,
        }

    def differences(self, baseline: Self, seed: int = 12345) -> tuple[Difference, ...]:
        """Compare the shares of right answers; see `heedful.predictors.interface.Measured.differences`."""
        return (compare_labels(self.right, baseline.right, seed=seed),)


def score_spans(
    predicted: Sequence[str],
    gold: Sequence[str],
    supporting: Sequence[Sequence[int]] = (),
    weights: Sequence[NDArray[np.float32] | None] = (),
) -> SpanReport:
    """Compare answers that are spans with the right ones.

    Args:
        predicted: an answer for each question; empty = none.
        gold: right answer of each; empty = the facts have none.
        supporting: indices of the supporting facts of each; none = unknown.
        weights: [end, fact] weights of each.

    Raises:
        DataError: there are no questions.

    Example:
        >>> report = score_spans(["the cellar.", "in the old mill"], ["Cellar", "the mill"])
        >>> report.right, round(report.f1, 1)
        ((True, False), 75.0)
    """
    if not predicted:
        raise DataError("no questions to score")
    right, shares = zip(*map(span_scores, predicted, gold), strict=True)
    num_attended = _num_attended(supporting, weights)
    are_impossible = tuple(not answer for answer in gold)
    ((_, most),) = Counter(" ".join(_words(answer)) for answer in gold).most_common(1)
    majority = 100.0 * most / len(gold)
    return SpanReport(right, shares, sum(map(len, supporting)), num_attended, are_impossible, majority)


def span_scores(said: str, wanted: str) -> tuple[bool, float]:
    """Compare an answer with the right one, apart from case, punctuation and the articles a, an and the.

    Returns:
        Whether the words are the same, and their F1 in [0, 1].

    Example:
        >>> span_scores("in the old mill", "The mill.")
        (False, 0.5)
    """
    own, right = _words(said), _words(wanted)
    return own == right, _f1(Counter(own), Counter(right))


def _words(text: str) -> list[str]:
    """Words without case, punctuation and articles; every Han character is a word."""
    return [word for word in _WORD.findall(text.lower()) if word not in _ARTICLES]


def _f1(said: Counter[str], wanted: Counter[str]) -> float:
    common, total = (said & wanted).total(), said.total() + wanted.total()
    return 2.0 * common / total if total else 1.0
