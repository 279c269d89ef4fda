"""Scores of predicted labels: accuracy, macro-averaged F1, and precision and recall of each label."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, Final, NamedTuple, Self, final

import numpy as np
from rich.cells import cell_len, set_cell_size

from heedful.errors import DataError
from heedful.evaluation.bootstrap import Difference, paired_bootstrap
from heedful.evaluation.metrics.exact_match import ExactMatch
from heedful.evaluation.selective import Selection
from heedful.evaluation.shown import Shown
from heedful.text.counts import counted
from heedful.text.quoting import shortened

_SHOWN_LABELS: Final = 10
"""Number of labels that are listed in a line."""
_SHOWN_UNSEEN: Final = 5
"""Number of labels that a model does not know and that are named."""
_MATRIX_COLUMNS: Final = 120
"""Widest confusion matrix in text, in terminal columns; JSON has any."""
_HEAD_COLUMNS: Final = 10
"""Longest heading of a column of the confusion matrix, in terminal columns."""
_Z: Final = 1.959963984540054
"""97.5 % quantile of the normal distribution."""


def named(labels: Sequence[str], most: int = _SHOWN_LABELS) -> str:
    """List labels in a line.

    Args:
        most: largest number of labels that are named; the others are counted.

    Example:
        >>> named(["a", "b", "c"], most=2)
        "'a', 'b', and 1 more"
    """
    more = f", and {len(labels) - most:,} more" if len(labels) > most else ""
    return f"{', '.join(map(shortened, labels[:most]))}{more}"


def summary_lines(*lines: str) -> str:
    r"""Write the lines of a summary of a test, those below the first under it.

    Example:
        >>> summary_lines("9 texts", "accuracy 50.00 %")
        'test:  9 texts\n       accuracy 50.00 %\n'
    """
    heads = ("test:  ", *[" " * 7] * (len(lines) - 1))
    return "".join(f"{head}{line}\n" for head, line in zip(heads, lines, strict=True))


class UnseenLabels(NamedTuple):
    """Labels that a model does not know, because no training item has them."""

    labels: tuple[str, ...] = ()
    """The labels, in alphabetical order."""
    num_items: int = 0
    """Number of items that have one of them."""

    @classmethod
    def of(cls, items: Iterable[Sequence[str]], known: Collection[str]) -> Self:
        """Find the labels that a model does not know.

        Args:
            items: right labels of each item.
            known: labels of the model.

        Example:
            >>> UnseenLabels.of([["a"], ["b", "c"], ["c"]], {"a", "b"})
            UnseenLabels(labels=('c',), num_items=2)
        """
        unseen = [others for labels in items if (others := {*labels} - {*known})]
        return cls(tuple(sorted(set[str]().union(*unseen))), len(unseen))

    def to_text(self, noun: str = "text", label_noun: str = "label") -> str:
        """Write a line about the labels.

        Args:
            noun: noun for an item.
            label_noun: noun for a label.

        Returns:
            The line, without its end; empty where there are none.
        """
        if not self.labels:
            return ""
        number = f"{counted(self.num_items, noun)} with {counted(len(self.labels), label_noun)}"
        return f"{number} unseen in training: {named(self.labels, _SHOWN_UNSEEN)}"


def wilson_interval(num_right: int, number: int) -> tuple[float, float]:
    """Compute the 95 % interval of a share; Wilson 1927.

    Args:
        num_right: number of right items.
        number: number of items, 1 or more.

    Returns:
        Low and high end, in percent.

    Example:
        >>> [round(end, 1) for end in wilson_interval(8, 10)]
        [49.0, 94.3]
    """
    share = num_right / number
    centre = (share + _Z * _Z / (2 * number)) / (1 + _Z * _Z / number)
    half = _Z * sqrt(share * (1 - share) / number + _Z * _Z / (4 * number * number)) / (1 + _Z * _Z / number)
    return 100.0 * max(0.0, centre - half), 100.0 * min(1.0, centre + half)


@final
@dataclass(frozen=True)
class LabelScore:
    """Prediction scores of one label.

    Example:
        >>> LabelScore("good", 2, precision=50.0, recall=100.0).f1
        66.66666666666667
    """

    label: str
    num_items: int
    """Items that have the label."""
    precision: float
    """Share of the items predicted to have the label that have it, in percent; 0 where none was predicted."""
    recall: float
    """Share of the items with the label that were predicted to have it, in percent."""

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in percent."""
        total = self.precision + self.recall
        return 2.0 * self.precision * self.recall / total if total else 0.0


@final
@dataclass(frozen=True)
class LabelReport(Shown):
    """Scores of predicted labels on one set of items.

    Example:
        >>> LabelReport(4, 3, (LabelScore("bad", 2, 100.0, 50.0), LabelScore("good", 2, 200 / 3, 100.0)))
        <LabelReport of 4 texts: accuracy 75.00, macro-F1 73.33>
    """

    num_items: int
    num_correct: int
    by_label: tuple[LabelScore, ...]
    """One for each label that an item has or was predicted to have, in the order of the labels."""
    right: tuple[bool, ...] = ()
    """Whether the predicted label of each item is its label."""
    confusion: tuple[tuple[int, ...], ...] = ()
    """[label, predicted label] numbers of items, in the order of `by_label`."""
    noun: str = "text"
    """Noun for an item, in texts."""
    selected: tuple[Selection, ...] = ()
    """Some least confidences, how many texts then get a label, and how many of these are right; the lowest first."""
    mean_error: float | None = None
    """Mean distance of the number in a predicted label from that in the right one; None where labels have no order."""
    confidences: tuple[float, ...] = ()
    """Probability of what was predicted for each item; none where it is not known."""
    num_cut: int = 0
    """Number of items of which the model read the beginning only."""
    label_noun: str = "label"
    """Noun for a label, in texts."""
    unseen: UnseenLabels = field(default_factory=UnseenLabels)
    """Labels that the model does not know, so that it is never right about their items."""

    def __repr__(self) -> str:
        scores = f"accuracy {self.accuracy:.2f}, macro-F1 {self.macro_f1:.2f}"
        return f"<LabelReport of {self.num_items:,} {self.noun}s: {scores}>"

    @property
    def accuracy(self) -> float:
        """Share of the items whose label was predicted, in percent."""
        return 100.0 * self.num_correct / self.num_items

    @property
    def macro_f1(self) -> float:
        """Mean F1 of the labels, each counting the same, in percent."""
        return sum(score.f1 for score in self.by_label) / len(self.by_label)

    @property
    def majority(self) -> float:
        """Share of these items that have their own most frequent label, which is right so often alone, in percent."""
        return 100.0 * max(score.num_items for score in self.by_label) / self.num_items

    @property
    def never_predicted(self) -> tuple[str, ...]:
        """Labels of items that were predicted for none, although the model knows them."""
        predicted = [sum(column) for column in zip(*self.confusion, strict=True)]
        return tuple(
            score.label
            for score, number in zip(self.by_label, predicted, strict=False)
            if score.num_items and not number and score.label not in self.unseen.labels
        )

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the accuracy in percent; Wilson 1927."""
        return wilson_interval(self.num_correct, self.num_items)

    def summary(self) -> str:
        """Summarise the scores in two lines."""
        low, high = self.interval
        accuracy = f"accuracy {self.accuracy:.2f} % [{low:.2f}, {high:.2f}], macro-F1 {self.macro_f1:.2f} %"
        scores = f"{accuracy}{self._error()}; {self._baseline()}"
        return summary_lines(f"{counted(self.num_items, self.noun)}; 95 % interval", scores, *self._label_lines())

    def _baseline(self) -> str:
        return f"the most frequent {self.label_noun} of these {self.noun}s alone has {self.majority:.2f} %"

    def _error(self) -> str:
        return "" if self.mean_error is None else f", mean error {self.mean_error:.3f}"

    def _label_lines(self) -> list[str]:
        """Lines about labels that are never right, because the model does not know or never predicts them."""
        never = f"never predicted: {named(self.never_predicted)}" if self.never_predicted else ""
        return [line for line in (self.unseen.to_text(self.noun, self.label_noun), never) if line]

    def to_text(self) -> str:
        """Write all scores, one label a line.

        Returns:
            Lines that end in a newline.
        """
        low, high = self.interval
        width = max(len(score.label) for score in self.by_label)
        lines = [
            counted(self.num_items, self.noun),
            f"accuracy {self.accuracy:.2f} % [{low:.2f}, {high:.2f}]; {self._baseline()}",
            f"macro-F1 {self.macro_f1:.2f} %{self._error()}",
            *(
                f"{score.label:{width}}  precision {score.precision:6.2f}  recall {score.recall:6.2f}  "
                f"F1 {score.f1:6.2f}  {counted(score.num_items, self.noun)}"
                for score in self.by_label
            ),
        ]
        lines += [each.to_text(self.noun) for each in self.selected]
        return "".join(line + "\n" for line in (*lines, *self._confusion_lines(), *self._label_lines()))

    def _confusion_lines(self) -> list[str]:
        """Confusion matrix, a row for each label; none where a row would be too wide for a terminal."""
        names = [score.label for score in self.by_label]
        counts = [[f"{count:,}" for count in row] for row in self.confusion]
        margin, digits = max(map(cell_len, names)), max((len(count) for row in counts for count in row), default=0)
        widths = [max(digits, min(_HEAD_COLUMNS, cell_len(name))) for name in names]
        if not counts or margin + sum(widths) + 2 * len(widths) > _MATRIX_COLUMNS:
            return []
        heads = [set_cell_size(name, min(cell_len(name), width)) for name, width in zip(names, widths, strict=True)]
        table = [
            "".join(
                [set_cell_size(title, margin), *(_right(cell, size) for cell, size in zip(row, widths, strict=True))]
            )
            for title, row in zip(("", *names), (heads, *counts), strict=True)
        ]
        return ["", f"{self.noun}s by label (rows) and predicted label (columns)", *table]

    def to_dict(self) -> dict[str, Any]:
        """List all scores.

        Returns:
            Values that JSON can hold.
        """
        low, high = self.interval
        return {
            "num_items": self.num_items,
            "accuracy": self.accuracy,
            "low": low,
            "high": high,
            "majority": self.majority,
            "macro_f1": self.macro_f1,
            "unseen": self.unseen._asdict(),
            "labels": [vars(score) | {"f1": score.f1} for score in self.by_label],
            "confusion": [list(row) for row in self.confusion],
            "selected": [each._asdict() for each in self.selected],
            **({} if self.mean_error is None else {"mean_error": self.mean_error}),
        }

    def differences(self, baseline: Self, seed: int = 12345) -> tuple[Difference, ...]:
        """Compare the shares of right labels; see `heedful.predictors.interface.Measured.differences`."""
        return (compare_labels(self.right, baseline.right, seed=seed),)


def _right(cell: str, width: int) -> str:
    """Cell of a table, set to the right after two spaces."""
    return "  " + " " * (width - cell_len(cell)) + cell


def scores_by_label(right: Counter[str], predicted: Counter[str], gold: Counter[str]) -> tuple[LabelScore, ...]:
    """Compute the scores of each label from counts of items.

    Args:
        right: items that have a label and are predicted to have it.
        predicted: items that are predicted to have it.
        gold: items that have it.

    Returns:
        The scores, in code-point order of the labels.
    """
    return tuple(
        LabelScore(
            label,
            gold[label],
            100.0 * right[label] / predicted[label] if predicted[label] else 0.0,
            100.0 * right[label] / gold[label] if gold[label] else 0.0,
        )
        for label in sorted(predicted.keys() | gold.keys())
    )


def score_labels(
    predicted: Sequence[str], gold: Sequence[str], noun: str = "text", label_noun: str = "label"
) -> LabelReport:
    """Compare predicted labels with the right ones.

    Args:
        gold: the right label of each item, at least one.

    Raises:
        DataError: there are no items, or the numbers of predictions and items differ.

    Example:
        >>> report = score_labels(["a", "a", "b"], ["a", "b", "b"])
        >>> round(report.accuracy, 2), round(report.macro_f1, 2)
        (66.67, 66.67)
    """
    if not gold or len(predicted) != len(gold):
        raise DataError(f"{len(predicted)} predicted labels for {len(gold)} items; give one each, for one item or more")
    is_right = tuple(one == other for one, other in zip(predicted, gold, strict=True))
    right = Counter(label for label, is_so in zip(gold, is_right, strict=True) if is_so)
    said, wanted = Counter(predicted), Counter(gold)
    scores = scores_by_label(right, said, wanted)
    pairs, names = Counter(zip(gold, predicted, strict=True)), [score.label for score in scores]
    confusion = tuple(tuple(pairs[label, other] for other in names) for label in names)
    return LabelReport(len(gold), sum(right.values()), scores, is_right, confusion, noun, label_noun=label_noun)


def compare_labels(right: Sequence[bool], baseline: Sequence[bool], seed: int = 12345) -> Difference:
    """Compare the accuracy of two systems on the same items by paired bootstrap resampling.

    Args:
        right: whether the system is right on each item.
        baseline: whether the baseline is.

    Returns:
        The difference of the accuracies, its interval and its p-value.

    Raises:
        DataError: the numbers of items differ.

    Example:
        >>> difference = compare_labels([True] * 90 + [False] * 10, [True] * 50 + [False] * 50)
        >>> round(difference.difference, 1), difference.verdict()
        (40.0, 'better')
    """
    system, other = (np.stack([flags, np.ones(len(flags))], axis=1) for flags in (right, baseline))
    return paired_bootstrap(ExactMatch(name="accuracy"), system, other, seed=seed)
