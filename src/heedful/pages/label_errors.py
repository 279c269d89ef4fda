"""Page of the errors of a classifier: confused labels, accuracy by length, and the most confident wrong texts."""

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


class WrongText(NamedTuple):
    """Text with a wrong label."""

    text: str
    label: str
    predicted: str
    probability: float
    """Probability of the predicted label."""
    right_probability: float
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

    def to_html(self) -> str:
        """Write the page, one HTML file that needs no network."""
        share = 100.0 * self.num_right / self.num_texts
        num_wrong = self.num_texts - self.num_right
        parts = [f"<p>{self.num_right:,} of {self.num_texts:,} texts are labelled right: {share:.2f} %.</p>"]
        if num_wrong:
            parts += ["<h2>Confused labels</h2>", *self._confusion()]
        parts += ["<h2>By length</h2>", length_table(self.by_length, "words", "texts")]
        if self.wrong:
            parts.append("<h2>Most confident errors</h2>")
            parts.append(f'<p class="faint">{escape(TextView.explanation)}.</p>')
            parts += map(_wrong, self.wrong)
        return document(f"Errors of {self.model}", parts)

    def _confusion(self) -> list[str]:
        """Matrix of the labels with most errors, and the pairs that are confused most."""
        errors = Counter({pair: number for pair, number in self.pairs.items() if pair[0] != pair[1]})
        by_label: Counter[str] = Counter()
        for (label, predicted), number in errors.items():
            by_label[label] += number
            by_label[predicted] += number
        listed = sorted(label for label, _ in by_label.most_common(MOST_LABELS))
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


def length_table(scores: Sequence[LengthScore], unit: str, items: str) -> str:
    """Make a table of accuracy by length.

    Args:
        unit: what lengths count, such as words.
        items: what is right or wrong, such as texts.
    """
    rows = [(unit, items, "right", "95 % interval")]
    rows += [
        (
            f"{each.shortest:,}" if each.shortest == each.longest else f"{each.shortest:,}–{each.longest:,}",
            f"{each.num_texts:,}",
            f"{100.0 * each.num_right / each.num_texts:.1f} %",
            f"{each.interval[0]:.1f}–{each.interval[1]:.1f} %",
        )
        for each in scores
    ]
    return table(rows)


def _wrong(one: WrongText) -> str:
    labels = [
        ("predicted", f"{one.predicted} ({one.probability:.3f})"),
        ("right", f"{one.label} ({one.right_probability:.3f})"),
    ]
    drawn = TextView("", one.sentences).draw() or f'<p dir="auto">{escape(one.text)}</p>'
    return texts(labels, marked="right") + "\n" + drawn
