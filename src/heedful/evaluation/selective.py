"""Selective classification: how many texts get a label, and how many of these are right, by the least confidence."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

WANTED: Final = (90.0, 95.0, 99.0)
"""Shares of right labels for which the least confidence is chosen, in percent."""


class Selection(NamedTuple):
    """Texts that are labelled if a model must be confident."""

    min_confidence: float
    """Least probability of a label that is given."""
    coverage: float
    """Share of the texts that get a label, in percent."""
    accuracy: float
    """Share of these labels that are right, in percent."""


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
    order = np.argsort(-np.asarray(confidences), kind="stable")
    sorted_confidences = np.asarray(confidences)[order]
    shares = 100.0 * np.cumsum(np.asarray(right)[order]) / np.arange(1, len(order) + 1)
    # Texts of equal confidence are selected together.
    is_last = np.append(sorted_confidences[1:] < sorted_confidences[:-1], True)
    usable = np.flatnonzero((shares >= wanted) & is_last)
    if not len(usable):
        return None
    last = int(usable[-1])
    return Selection(float(sorted_confidences[last]), 100.0 * (last + 1) / len(order), float(shares[last]))


def selections(confidences: Sequence[float], right: Sequence[bool]) -> tuple[Selection, ...]:
    """Choose the least confidence for each of the usual shares of right labels.

    Args:
        confidences: probability of the label of each text.
        right: whether each is right.
    """
    chosen = (select_confident(confidences, right, wanted) for wanted in WANTED)
    return tuple(dict.fromkeys(each for each in chosen if each is not None))
