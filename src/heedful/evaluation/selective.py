"""Selective classification: how many texts get a label, and how many of these are right, by the least confidence."""

from collections.abc import Sequence
from math import floor
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

WANTED: Final = (90.0, 95.0, 99.0)
"""Shares of right labels for which the least confidence is chosen, in percent."""
MOST_POINTS: Final = 6
"""Largest number of selections that show how coverage and accuracy change with the least confidence."""
_LEAST_COVERAGE: Final = 5.0
"""Least share of the texts of a selection that is shown, in percent: the accuracy of fewer is chance."""
_FEWEST_APART: Final = 3.0
"""Least difference of coverage between two selections, in percent; closer ones say the same."""
_DIGITS: Final = (3, 4, 5, 6, 7, 8, 9)
"""Numbers of decimal places to which a least confidence is shortened, the first that changes no selection."""


class Selection(NamedTuple):
    """Texts that are labelled if a model must be confident."""

    min_confidence: float
    """Least probability of a label that is given, with as few decimal places as select the same texts."""
    coverage: float
    """Share of the texts that get a label, in percent."""
    accuracy: float
    """Share of these labels that are right, in percent."""

    def to_text(self, noun: str = "text") -> str:
        """Write the selection as a line without its end.

        Args:
            noun: noun for an item.

        Example:
            >>> Selection(0.606, 81.25, 95.0).to_text()
            'confidence 0.606 and more: 81.2 % of the texts, of which 95.0 % are right'
        """
        return (
            f"confidence {shown_confidence(self.min_confidence)} and more: {self.coverage:.1f} % of the {noun}s, "
            f"of which {self.accuracy:.1f} % are right"
        )


def shown_confidence(confidence: float) -> str:
    """Write a least confidence with three decimal places, or more where it has more.

    Example:
        >>> shown_confidence(0.9), shown_confidence(0.99995)
        ('0.900', '0.99995')
    """
    short = f"{confidence:.{_DIGITS[0]}f}"
    return short if float(short) == confidence else repr(confidence)


class _Curve(NamedTuple):
    """Selections of all sizes, those of the most confident texts first."""

    confidences: NDArray[np.float64]
    """Confidence of each text, in descending order."""
    shares: NDArray[np.float64]
    """Share of right labels among the texts up to each, in percent."""
    lasts: NDArray[np.int64]
    """Indices of the last texts of selections: texts of equal confidence are selected together."""

    @classmethod
    def of(cls, confidences: Sequence[float], right: Sequence[bool]) -> "_Curve":
        order = np.argsort(-np.asarray(confidences), kind="stable")
        ordered = np.asarray(confidences, dtype=np.float64)[order]
        shares = 100.0 * np.cumsum(np.asarray(right)[order]) / np.arange(1, len(order) + 1)
        lasts = np.flatnonzero(np.append(ordered[1:] < ordered[:-1], True)[: len(ordered)])
        return cls(ordered, shares, lasts)

    def coverage(self, last: int) -> float:
        """Share of the texts up to one, in percent."""
        return 100.0 * (last + 1) / len(self.confidences)

    def selection(self, last: int) -> Selection:
        """Selection of the texts up to one."""
        least = float(self.confidences[last])
        lower = float(self.confidences[last + 1]) if last + 1 < len(self.confidences) else -1.0
        short = (floor(least * 10**digits) / 10**digits for digits in _DIGITS)
        usable = (each for each in short if lower < each <= least)
        return Selection(next(usable, least), self.coverage(last), float(self.shares[last]))

    def select(self, wanted: float) -> int | None:
        """Index of the last text of the largest selection of which a share is right; None = there is none."""
        usable = self.lasts[self.shares[self.lasts] >= wanted]
        return int(usable[-1]) if len(usable) else None


def select_confident(confidences: Sequence[float], right: Sequence[bool], wanted: float) -> Selection | None:
    """Choose the least confidence from which on a wanted share of labels is right.

    Args:
        confidences: probability of the label of each text.
        right: whether each is right.
        wanted: share of right labels, in percent.

    Returns:
        The largest selection of the most confident texts of which so many are right; None = there is none.

    Example:
        >>> select_confident([0.9, 0.8, 0.7, 0.6], [True, True, False, False], 90.0)
        Selection(min_confidence=0.8, coverage=50.0, accuracy=100.0)
    """
    curve = _Curve.of(confidences, right)
    last = curve.select(wanted)
    return None if last is None else curve.selection(last)


def select_most_precise(confidences: Sequence[float], right: Sequence[bool]) -> Selection | None:
    """Choose the least confidence from which on the largest share of labels is right.

    Args:
        confidences: probability of the label of each text.
        right: whether each is right.

    Returns:
        The largest selection of the most confident texts with this share; None = no label is right.

    Example:
        >>> select_most_precise([0.9, 0.8, 0.7, 0.6], [False, True, True, False])
        Selection(min_confidence=0.7, coverage=75.0, accuracy=66.66666666666667)
    """
    if not any(right):
        return None
    curve = _Curve.of(confidences, right)
    return select_confident(confidences, right, float(curve.shares[curve.lasts].max()))


def selections(confidences: Sequence[float], right: Sequence[bool]) -> tuple[Selection, ...]:
    """Choose points of the curve of coverage and accuracy by the least confidence.

    Args:
        confidences: probability of the label of each text.
        right: whether each is right.

    Returns:
        At most `MOST_POINTS`, the largest selection first: that of all texts, the largest ones with each share of
        `WANTED`, and others as far as possible from these in coverage, of which none is smaller than one whose labels
        are all right; none where no label is right.
    """
    curve = _Curve.of(confidences, right)
    if not any(right):
        return ()
    chosen = dict.fromkeys([int(curve.lasts[-1])])
    for last in map(curve.select, WANTED):
        if last is not None and curve.coverage(last) >= _LEAST_COVERAGE:
            chosen[last] = None
    coverages = 100.0 * (curve.lasts + 1) / len(curve.confidences)
    perfect = curve.select(100.0)
    others = coverages >= (_LEAST_COVERAGE if perfect is None else max(_LEAST_COVERAGE, curve.coverage(perfect)))
    while len(chosen) < MOST_POINTS:
        nearest = np.min([np.abs(coverages - curve.coverage(last)) for last in chosen], axis=0)
        best = int(np.argmax(np.where(others, nearest, -1.0)))
        if not others[best] or nearest[best] < _FEWEST_APART:
            break
        chosen[int(curve.lasts[best])] = None
    return tuple(map(curve.selection, sorted(chosen, reverse=True)))
