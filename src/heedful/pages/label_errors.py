"""Pages of the errors of a classifier: confused or missed labels, by length, and the most confident wrong texts.

Where texts have numbers, the largest errors take the place of the most confident ones.
"""

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple, final

from heedful.pages.attention_text import TextView
from heedful.pages.document import document, table, texts

MOST_LABELS: Final = 25
"""Largest number of labels of the matrix: those with most errors."""
MOST_PAIRS: Final = 20


class LengthScore(NamedTuple):
    """Accuracy of the texts of a range of lengths."""

    shortest: int
    longest: int
    """Words; characters where texts have no spaces."""
    num_texts: int
    num_right: int
    interval: tuple[float, float]
    """95 % interval in percent."""


class LengthError(NamedTuple):
    """Mean error of the numbers of the texts of a range of lengths."""

    shortest: int
    longest: int
    """Words; characters where texts have no spaces."""
    num_texts: int
    mean_error: float


class SetLabelErrors(NamedTuple):
    """Errors of one of several labels that a text may have."""

    label: str
    num_texts: int
    """Texts that have the label."""
    num_missed: int
    """Texts that have it, but were not predicted to."""
    num_added: int
    """Texts that were predicted to have it, but have not."""


class WrongText(NamedTuple):
    """Text with a wrong label."""

    text: str
    label: str
    predicted: str
    probability: float | None
    """Probability of the predicted label; None for a number, which has none."""
    right_probability: float | None
    """Probability of the right one."""
    sentences: Sequence[Sequence[tuple[str, float]]]
    """Words of each sentence with their attention weights."""


@final
class ErrorPage(NamedTuple):
    """Errors of a model on a test set."""

    model: str
    num_texts: int
    num_right: int
    pairs: Counter[tuple[str, str]]
    """Number of texts by label and predicted label."""
    by_length: Sequence[LengthScore]
    wrong: Sequence[WrongText]
    """Wrong texts, the most confident first."""
    order: Sequence[str] = ()
    """Labels in their order; empty = alphabetical."""

    def to_html(self) -> str:
        """Write the page, one HTML file that needs no network."""
        share = 100.0 * self.num_right / self.num_texts
        num_wrong = self.num_texts - self.num_right
        parts = [f"<p>{self.num_right:,} of {self.num_texts:,} texts are labelled right: {share:.2f} %.</p>"]
        if num_wrong:
            parts += ["<h2>Confused labels</h2>", *self._confusion()]
        parts += ["<h2>By length</h2>", length_table(self.by_length, "words", "texts")]
        return document(f"Errors of {self.model}", [*parts, *_shown("Most confident errors", self.wrong)])

    def _confusion(self) -> list[str]:
        """Matrix of the labels with most errors, and the pairs that are confused most."""
        errors = Counter({pair: number for pair, number in self.pairs.items() if pair[0] != pair[1]})
        by_label: Counter[str] = Counter()
        for (label, predicted), number in errors.items():
            by_label[label] += number
            by_label[predicted] += number
        ranks = {label: rank for rank, label in enumerate(self.order)}
        most_wrong = [label for label, _ in by_label.most_common(MOST_LABELS)]
        listed = sorted(most_wrong, key=lambda label: (ranks.get(label, len(ranks)), label))
        rows = [("label ↓ predicted →", *listed)]
        rows += [
            (label, *(f"{self.pairs[label, other]:,}" if self.pairs[label, other] else "·" for other in listed))
            for label in listed
        ]
        most = [("label → predicted", "texts", "of the label")]
        totals: Counter[str] = Counter()
        for (label, _), number in self.pairs.items():
            totals[label] += number
        most += [
            (f"{label} → {predicted}", f"{number:,}", f"{100.0 * number / totals[label]:.1f} %")
            for (label, predicted), number in errors.most_common(MOST_PAIRS)
        ]
        note = f'<p class="faint">The {MOST_LABELS} labels with most errors.</p>' if len(by_label) > MOST_LABELS else ""
        return [note + table(rows), table(most)]


@final
class SetErrorPage(NamedTuple):
    """Errors of a model that gives texts several labels, on a test set."""

    model: str
    num_texts: int
    num_right: int
    """Texts whose labels are exactly the right ones."""
    by_label: Sequence[SetLabelErrors]
    by_length: Sequence[LengthScore]
    wrong: Sequence[WrongText]
    """Wrong texts, the most confident first."""

    def to_html(self) -> str:
        """Write the page, one HTML file that needs no network."""
        share = 100.0 * self.num_right / self.num_texts
        parts = [f"<p>{self.num_right:,} of {self.num_texts:,} texts have exactly the right labels: {share:.2f} %.</p>"]
        most = sorted(self.by_label, key=lambda each: (-each.num_missed - each.num_added, each.label))[:MOST_LABELS]
        rows = [("label", "texts", "not predicted", "predicted wrongly")]
        rows += [
            (each.label, f"{each.num_texts:,}", f"{each.num_missed:,}", f"{each.num_added:,}")
            for each in most
            if each.num_missed or each.num_added
        ]
        if len(rows) > 1:
            parts += ["<h2>Labels with most errors</h2>", table(rows)]
        parts += ["<h2>By length</h2>", length_table(self.by_length, "words", "texts")]
        return document(f"Errors of {self.model}", [*parts, *_shown("Most confident errors", self.wrong)])


@final
class NumberErrorPage(NamedTuple):
    """Errors of a model that gives texts numbers, on a test set."""

    model: str
    num_texts: int
    mean_error: float
    by_length: Sequence[LengthError]
    wrong: Sequence[WrongText]
    """Texts with the largest errors, the largest first."""

    def to_html(self) -> str:
        """Write the page, one HTML file that needs no network."""
        rows = [("words", "texts", "mean error")]
        rows += [
            (_range(each.shortest, each.longest), f"{each.num_texts:,}", f"{each.mean_error:.4g}")
            for each in self.by_length
        ]
        parts = [f"<p>The mean error of {self.num_texts:,} texts is {self.mean_error:.4g}.</p>"]
        parts += ["<h2>By length</h2>", table(rows), *_shown("Largest errors", self.wrong)]
        return document(f"Errors of {self.model}", parts)


def length_table(scores: Sequence[LengthScore], unit: str, items: str) -> str:
    """Make a table of accuracy by length.

    Args:
        unit: what lengths count, such as words.
        items: what is right or wrong, such as texts.
    """
    rows = [(unit, items, "right", "95 % interval")]
    rows += [
        (
            _range(each.shortest, each.longest),
            f"{each.num_texts:,}",
            f"{100.0 * each.num_right / each.num_texts:.1f} %",
            f"{each.interval[0]:.1f}–{each.interval[1]:.1f} %",
        )
        for each in scores
    ]
    return table(rows)


def _range(shortest: int, longest: int) -> str:
    return f"{shortest:,}" if shortest == longest else f"{shortest:,}–{longest:,}"


def _shown(title: str, wrong: Sequence[WrongText]) -> list[str]:
    """Section of wrong texts; none where all are right."""
    explanation = f'<p class="faint">{escape(TextView.explanation)}.</p>'
    return [f"<h2>{title}</h2>", explanation, *map(_wrong, wrong)] if wrong else []


def _wrong(one: WrongText) -> str:
    labels = [
        (name, label if share is None else f"{label} ({share:.3f})")
        for name, label, share in (
            ("predicted", one.predicted, one.probability),
            ("right", one.label, one.right_probability),
        )
    ]
    drawn = TextView("", one.sentences).draw() or f'<p dir="auto">{escape(one.text)}</p>'
    return texts(labels, marked="right") + "\n" + drawn
