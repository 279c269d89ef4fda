"""Scores of sets of labels, and of numbers: F1 of labels and exact sets; mean error and share of variance explained."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self, final

import numpy as np

from heedful.data.label_kinds import LabelKind, parse_number, rank_of
from heedful.errors import DataError
from heedful.evaluation.bootstrap import Difference, paired_bootstrap
from heedful.evaluation.interface import Matrix, References, reference_count
from heedful.evaluation.labels import (
    LabelReport,
    LabelScore,
    UnseenLabels,
    compare_labels,
    named,
    score_labels,
    scores_by_label,
    summary_lines,
)
from heedful.evaluation.selective import Selection
from heedful.evaluation.shown import Shown
from heedful.text.counts import counted
from heedful.text.label_sets import split_labels


@final
@dataclass(frozen=True)
class SetReport(Shown):
    """Scores of predicted sets of labels.

    Example:
        >>> from heedful.text.label_sets import joined_labels
        >>> report = score_sets([joined_labels(["a", "b"]), "a"], [joined_labels(["a", "b"]), "b"])
        >>> report.accuracy, [score.label for score in report.by_label]
        (50.0, ['a', 'b'])
    """

    num_items: int
    """Number of texts."""
    by_label: tuple[LabelScore, ...]
    """One for each label that an item has or was predicted to have, in alphabetical order."""
    micro_f1: float
    """F1 of all pairs of a text and a label, in percent."""
    right: tuple[bool, ...] = ()
    """Whether exactly the labels of each item were predicted."""
    selected: tuple[Selection, ...] = ()
    """Some least confidences, how many texts then get labels, and how many exactly the right ones; the lowest first."""
    confidences: tuple[float, ...] = ()
    """Probability of what was predicted for each item; none where it is not known."""
    num_cut: int = 0
    """Number of texts of which the model read the beginning only."""
    unseen: UnseenLabels = field(default_factory=UnseenLabels)
    """Labels that the model does not know, so that it is never right about their texts."""

    @property
    def macro_f1(self) -> float:
        """Mean F1 of the labels, each counting the same, in percent."""
        return sum(score.f1 for score in self.by_label) / max(1, len(self.by_label))

    @property
    def accuracy(self) -> float:
        """Share of the items whose set of labels was predicted exactly, in percent."""
        return 100.0 * sum(self.right) / self.num_items

    def _scores(self) -> str:
        return f"micro-F1 {self.micro_f1:.2f} %, macro-F1 {self.macro_f1:.2f} %, all labels right {self.accuracy:.2f} %"

    def _label_lines(self) -> list[str]:
        """Lines about labels that are never right, because the model does not know or never rightly predicts them."""
        labels = [score.label for score in self.by_label if score.num_items and not score.precision]
        known = [label for label in labels if label not in self.unseen.labels]
        never = f"never predicted rightly: {named(known)}" if known else ""
        return [line for line in (self.unseen.to_text(), never) if line]

    def summary(self) -> str:
        """Summarise the scores in two lines."""
        return summary_lines(counted(self.num_items, "text"), self._scores(), *self._label_lines())

    def to_text(self) -> str:
        """Write all scores, one label a line.

        Returns:
            Lines that end in a newline.
        """
        width = max((len(score.label) for score in self.by_label), default=0)
        lines = [
            counted(self.num_items, "text"),
            self._scores(),
            *(
                f"{score.label:{width}}  precision {score.precision:6.2f}  recall {score.recall:6.2f}  "
                f"F1 {score.f1:6.2f}  {counted(score.num_items, 'text')}"
                for score in self.by_label
            ),
        ]
        lines += [each.to_text() for each in self.selected]
        return "".join(f"{line}\n" for line in (*lines, *self._label_lines()))

    def to_dict(self) -> dict[str, Any]:
        """List all scores.

        Returns:
            Values that JSON can hold.
        """
        return {
            "num_items": self.num_items,
            "micro_f1": self.micro_f1,
            "macro_f1": self.macro_f1,
            "accuracy": self.accuracy,
            "unseen": self.unseen._asdict(),
            "labels": [vars(score) | {"f1": score.f1} for score in self.by_label],
            "selected": [each._asdict() for each in self.selected],
        }

    def differences(self, baseline: Self, seed: int = 12345) -> tuple[Difference, ...]:
        """Compare the shares of exact sets; see `heedful.predictors.interface.Measured.differences`."""
        return (compare_labels(self.right, baseline.right, seed=seed),)


@final
@dataclass(frozen=True)
class NumberReport(Shown):
    """Scores of predicted numbers.

    Example:
        >>> report = score_numbers([3.0, 4.0], [3.0, 5.0])
        >>> report.mean_error, report.constant_error
        (0.5, 1.0)
    """

    num_items: int
    """Number of texts."""
    mean_error: float
    """Mean absolute error."""
    root_mean_square: float
    """Root of the mean squared error."""
    explained: float
    """Share of the variance that is explained (R squared), in percent; below 0 where the mean is better."""
    constant_error: float
    """Mean absolute error of the median of the right numbers, which nothing constant undercuts."""
    errors: tuple[float, ...] = ()
    """Absolute error of each item."""
    num_cut: int = 0
    """Number of texts of which the model read the beginning only."""

    def _scores(self) -> str:
        return (
            f"mean error {self.mean_error:.4g} (the median alone: {self.constant_error:.4g}), "
            f"root mean square {self.root_mean_square:.4g}, variance explained {self.explained:.1f} %"
        )

    def summary(self) -> str:
        """Summarise the scores in two lines."""
        return summary_lines(counted(self.num_items, "text"), self._scores())

    def to_text(self) -> str:
        """Write all scores.

        Returns:
            Lines that end in a newline.
        """
        return f"{counted(self.num_items, 'text')}\n{self._scores()}\n"

    def to_dict(self) -> dict[str, Any]:
        """List all scores.

        Returns:
            Values that JSON can hold.
        """
        return {key: value for key, value in vars(self).items() if key not in ("errors", "num_cut")}

    def differences(self, baseline: Self, seed: int = 12345) -> tuple[Difference, ...]:
        """Compare the mean errors; see `heedful.predictors.interface.Measured.differences`."""
        own, other = (np.stack([each.errors, np.ones(each.num_items)], axis=1) for each in (self, baseline))
        return (paired_bootstrap(MeanError(), own, other, seed=seed),)


@final
class MeanError:
    """Mean absolute error of numbers.

    Statistics: the absolute error; 1 for each item.
    """

    name = "mean error"
    unit = ""
    higher_is_better = False

    def statistics(self, hypotheses: Sequence[str], references: References) -> Matrix:
        """Compute the distance to the nearest right number; see `Metric.statistics`."""
        pairs = zip(map(parse_number, hypotheses), references, strict=True)
        errors = [min(abs(own - parse_number(text)) for text in texts) for own, texts in pairs]
        return np.stack([errors, np.ones(len(errors))], axis=1)

    def scores(self, totals: Matrix) -> Matrix:
        """Return the mean error, 0 or more; see `Metric.scores`."""
        return totals[..., 0] / totals[..., 1]

    def signature(self, references: References) -> str:
        """Return the definition in sacreBLEU's style; see `Metric.signature`."""
        return f"nrefs:{reference_count(references)}|heedful:1"


def score_sets(predicted: Sequence[str], gold: Sequence[str]) -> SetReport:
    """Compare predicted sets of labels with the right ones.

    Args:
        predicted: sets, as from `heedful.text.label_sets.joined_labels`.
        gold: the right set of each item, at least one.

    Raises:
        DataError: there are no items, or the numbers of predictions and items differ.

    Example:
        >>> from heedful.text.label_sets import joined_labels
        >>> sets = [joined_labels(labels) for labels in (["a", "b"], ["b"])]
        >>> report = score_sets(sets, [sets[1], sets[1]])
        >>> round(report.micro_f1, 1), report.accuracy
        (80.0, 50.0)
    """
    _check(predicted, gold)
    pairs = [({*split_labels(one)}, {*split_labels(other)}) for one, other in zip(predicted, gold, strict=True)]
    right, said, wanted = (Counter[str]() for _ in range(3))
    for own, other in pairs:
        right.update(own & other)
        said.update(own)
        wanted.update(other)
    scores = scores_by_label(right, said, wanted)
    number = said.total() + wanted.total()
    micro = 200.0 * right.total() / number if number else 100.0
    return SetReport(len(gold), scores, micro, tuple(own == other for own, other in pairs))


def score_numbers(predicted: Sequence[float], gold: Sequence[float]) -> NumberReport:
    """Compare predicted numbers with the right ones.

    Args:
        gold: the right number of each item, at least one.

    Raises:
        DataError: there are no items, or the numbers of predictions and items differ.

    Example:
        >>> report = score_numbers([1.0, 3.0], [1.0, 2.0])
        >>> report.mean_error, report.constant_error
        (0.5, 0.5)
    """
    _check(predicted, gold)
    own, other = np.asarray(predicted, dtype=np.float64), np.asarray(gold, dtype=np.float64)
    errors, spread = own - other, float(np.var(other))
    square = float(np.mean(errors**2))
    explained = 100.0 * (1.0 - square / spread) if spread else 0.0
    constant = float(np.abs(other - np.median(other)).mean())
    absolute = np.abs(errors)
    mean, each = float(absolute.mean()), tuple(absolute.tolist())
    return NumberReport(len(gold), mean, square**0.5, explained, constant, each)


def _check(predicted: Sequence[object], gold: Sequence[object]) -> None:
    if not gold or len(predicted) != len(gold):
        raise DataError(f"{len(predicted)} predictions for {len(gold)} items; give one each, for one item or more")


SELECTED: Final[Mapping[LabelKind, str]] = {
    "one": "accuracy",
    "several": "micro_f1",
    "ordered": "accuracy",
    "number": "mean_error",
}
"""Score by which the best model is chosen, by the kind of labels."""


def report_labels(
    kind: LabelKind, predicted: Sequence[str], gold: Sequence[str]
) -> LabelReport | SetReport | NumberReport:
    """Compare predictions with the right labels, sets or numbers.

    Args:
        kind: kind of the labels.
        gold: the right one of each item, at least one.

    Raises:
        DataError: there are no items, or a right number is none.
    """
    if kind == "several":
        return score_sets(predicted, gold)
    if kind == "number":
        return score_numbers([*map(parse_number, predicted)], [*map(parse_number, gold)])
    report = score_labels(predicted, gold)
    if kind == "one":
        return report
    errors = [abs(rank_of(own) - rank_of(other)) for own, other in zip(predicted, gold, strict=True)]
    order = sorted(range(len(report.by_label)), key=lambda index: rank_of(report.by_label[index].label))
    return replace(
        report,
        by_label=tuple(report.by_label[index] for index in order),
        confusion=tuple(tuple(report.confusion[row][column] for column in order) for row in order),
        mean_error=sum(errors) / len(errors),
    )


def label_scores(kind: LabelKind, predicted: Sequence[str], gold: Sequence[str]) -> dict[str, float]:
    """Compute the scores of a validation.

    Args:
        kind: kind of the labels.
        gold: the right label, set or number of each item, at least one.

    Returns:
        Scores by name, that of `SELECTED` among them.
    """
    report = report_labels(kind, predicted, gold)
    if isinstance(report, NumberReport):
        return {"mean_error": report.mean_error, "explained": report.explained}
    scores = {"accuracy": report.accuracy, "macro_f1": report.macro_f1}
    if isinstance(report, SetReport):
        return {"micro_f1": report.micro_f1, **scores}
    return scores if report.mean_error is None else {**scores, "mean_error": report.mean_error}
