"""Sets of labels as one text: what a text with any number of labels has in place of its label."""

from collections.abc import Iterable
from typing import Final

JOINT: Final = "\u2063"
"""Separator of labels, and the whole text where there are none: an invisible character that no label contains."""
SHOWN: Final = " + "
"""Separator of labels in texts for people."""


def joined_labels(labels: Iterable[str]) -> str:
    """Write a set of labels as one text.

    Returns:
        The labels in alphabetical order, joined.

    Example:
        >>> split_labels(joined_labels(["b", "a", "b"])), split_labels(joined_labels([]))
        (('a', 'b'), ())
    """
    distinct = sorted({label.replace(JOINT, "") for label in labels} - {""})
    return JOINT.join(distinct) if distinct else JOINT


def split_labels(text: str) -> tuple[str, ...]:
    """List the labels of a set.

    Args:
        text: from `joined_labels`.
    """
    return tuple(label for label in text.split(JOINT) if label)


def shown_labels(text: str) -> str:
    """Write a label, or a set of labels, for people.

    Args:
        text: a label, or a text of `joined_labels`.

    Example:
        >>> shown_labels(joined_labels(["b", "a"])), shown_labels(joined_labels([])), shown_labels("c")
        ('a + b', '(none)', 'c')
    """
    return SHOWN.join(split_labels(text)) or ("(none)" if text else "")
