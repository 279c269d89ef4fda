"""Kinds of labels: one of a text, several, ordered ones, and numbers, which are learned as positions between labels.

A number is learned as a distribution over values that lie among those of the training texts (Imani and White 2018,
arXiv:1806.04613): its target is shared by its two neighbours so that their mean is the number, and its prediction is
the mean of the predicted distribution.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.text.counts import counted
from heedful.text.label_sets import joined_labels, split_labels

LabelKind = Literal["one", "several", "ordered", "number"]
Floats = NDArray[np.float32]

MOST_LABELS: Final = 1000
"""Largest number of labels; each needs two texts on average besides."""
MOST_CHARACTERS: Final = 10_000_000
MOST_TOKENS: Final = 20_000
"""Largest length of a text that is attended to; n-grams are those of the whole text."""
MOST_VALUES: Final = 32
"""Largest number of values among which numbers lie."""
PARTS: Final = 1_000_000
"""Parts of the distance between two values, to one of which a stored number is rounded."""
_LARGEST: Final = 1e300
NEIGHBOUR: Final = 0.15
"""Share of the target of an ordered label that its neighbours get together, at most."""
THRESHOLD: Final = 0.5
"""Probability from which on a text has one of several labels."""
_NUMBER: Final = re.compile(r"[-+]?\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?")
_CURRENCY: Final = re.compile(r"([-+]?) ?[$€£¥₹₩₽元] ?([-+]?\d.*)|(.*\d) ?[$€£¥₹₩₽元]")
_THOUSANDS: Final = re.compile(r"[-+]?\d{1,4}(?:(?:,\d{2,4})+\.\d+|(?:,\d{3}){2,}|(?:\.\d{3})+,\d+|(?:\.\d{3}){2,})")
"""Number with groups of thousands, lakhs or ten thousands that cannot be decimals."""
_GROUP: Final = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")


def list_labels(kind: LabelKind, values: Iterable[str]) -> list[str]:
    """List the labels of training texts in the order of their ids.

    Args:
        values: labels of the texts; sets of them, or numbers.

    Returns:
        Labels in alphabetical order, or in that of their numbers; for numbers, values spread evenly over the texts.

    Raises:
        DataError: an ordered label contains no number, or a number is none.
    """
    if kind == "several":
        return sorted({label for value in values for label in split_labels(value)})
    if kind == "number":
        numbers = np.array(sorted(map(parse_number, values)))
        distinct = np.unique(numbers)
        most = max(2, min(MOST_VALUES, len(numbers) // 2))  # two texts for each, as for other labels
        if len(distinct) > most:
            distinct = np.unique(np.quantile(numbers, np.linspace(0.0, 1.0, most)))
        return [repr(float(value)) for value in distinct]
    labels = sorted({*values})
    return sorted(labels, key=rank_of) if kind == "ordered" else labels


def label_count_fault(num_labels: int, num_rows: int, column: int | str) -> str:
    """Refuse labels that are too few or too many to be learned.

    Args:
        num_labels: number of different labels.
        num_rows: number of rows for training.
        column: name or number of their column, for the message.

    Returns:
        What is wrong, and what to do; empty = nothing.
    """
    if 2 <= num_labels <= min(MOST_LABELS, num_rows // 2):
        return ""
    return (
        f"column {column} has {counted(num_labels, 'different label')} in {counted(num_rows, 'row')}; a label needs "
        f"two rows on average, and there may be {MOST_LABELS:,} of them; name the columns of text and label with "
        "--columns TEXT,LABEL; for numbers --set text.labels=number"
    )


def parse_number(text: str) -> float:
    """Read a number, which may have a sign, decimals, groups of thousands and a currency.

    Raises:
        DataError: the text is none, is not finite, or so large that distances between numbers may not be finite.

    Example:
        >>> parse_number("1,5"), parse_number("$1,240"), parse_number("-$1,240.50"), parse_number("1.240,50 €")
        (1.5, 1240.0, -1240.5, 1240.5)
    """
    try:
        number = float(_plain(text))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{text[:40]!r} is no number; text.labels=number needs one in every row")
    if abs(number) > _LARGEST:
        raise DataError(f"{text[:40]!r} is too large a number; divide all by the same one")
    return number


def _plain(text: str) -> str:
    """A number without currency and groups of thousands, and with a point before its decimals."""
    currency = _CURRENCY.fullmatch(text.strip())
    if currency:
        text = currency[3] or currency[1] + currency[2]
    has_group = currency and _GROUP.fullmatch(text.strip())  # prices have no three decimals
    if has_group or _THOUSANDS.fullmatch(text.strip()):
        group = next(sign for sign in text if sign in ",.")
        text = text.replace(group, "")
    return text.replace(",", ".") if text.count(",") == 1 and "." not in text else text


def is_number(text: str) -> bool:
    """Tell whether `parse_number` reads a text."""
    try:
        parse_number(text)
    except DataError:
        return False
    return True


def rank_of(label: str) -> float:
    """Read the place of an ordered label, which is the first number in it.

    Raises:
        DataError: there is none.

    Example:
        >>> rank_of("4 stars"), rank_of("1.5")
        (4.0, 1.5)
    """
    number = _NUMBER.search(label)
    if number is None:
        raise DataError(f"label {label[:40]!r} has no number; text.labels=ordered orders labels by the number in each")
    return parse_number(number[0])


def encode_label(kind: LabelKind, value: str, numbers: Mapping[str, int]) -> list[int]:
    """Encode the label of a text.

    Args:
        value: the label; a set of labels, or a number.
        numbers: id of each label, in ascending order.

    Returns:
        Target ids: that of the label, none if it is unknown; for several, 0 or 1 for each; for a number, the id of the
        value below it, and parts of the distance to the next.

    Raises:
        DataError: a number is none.
    """
    if kind == "several":
        own = {*split_labels(value)}
        return [int(label in own) for label in numbers]
    if kind == "number":
        values = np.array([float(label) for label in numbers])
        number = min(max(parse_number(value), values[0]), values[-1])
        index = min(int(np.searchsorted(values, number, side="right")) - 1, len(values) - 2)
        return [index, round(PARTS * (number - values[index]) / (values[index + 1] - values[index]))]
    return [numbers[value]] if value in numbers else []


def target_rows(kind: LabelKind, ids: NDArray[np.int64], num_labels: int) -> Floats:
    """Spread encoded labels over all labels.

    Args:
        ids: [text] ids, or [text, n] of `encode_label`.
        num_labels: number of labels.

    Returns:
        [text, label] target distribution; for several labels, 1 for each that a text has.
    """
    if kind == "several":
        return ids.astype(np.float32)
    rows = np.zeros((len(ids), num_labels), dtype=np.float32)
    index = np.arange(len(ids))
    if kind == "number":
        upper = ids[:, 1] / PARTS
        rows[index, ids[:, 0]] = 1.0 - upper
        rows[index, np.minimum(ids[:, 0] + 1, num_labels - 1)] += upper
        return rows
    if kind == "ordered":
        rows[index, ids] = 1.0 - NEIGHBOUR
        for step in (-1, 1):
            rows[index, np.clip(ids + step, 0, num_labels - 1)] += 0.5 * NEIGHBOUR
        return rows
    rows[index, ids] = 1.0
    return rows


def decide(kind: LabelKind, log_probs: Floats, labels: Sequence[str], threshold: float = THRESHOLD) -> list[str]:
    """Choose labels.

    Args:
        log_probs: [text, label] log probabilities in nats.
        threshold: probability from which on a text has one of several labels.

    Returns:
        The most probable label of each text; the middle one of an ordered distribution; the set of several labels; or
        the mean of numbers.
    """
    probabilities = np.exp(log_probs.astype(np.float64))
    if kind == "several":
        return [
            joined_labels(labels[index] for index in np.flatnonzero(row >= threshold).tolist()) for row in probabilities
        ]
    if kind == "number":
        means = probabilities @ np.array([float(label) for label in labels])
        return [f"{mean:.6g}" for mean in means / probabilities.sum(axis=1)]
    if kind == "ordered":
        middle = (probabilities.cumsum(axis=1) < 0.5 * probabilities.sum(axis=1, keepdims=True)).sum(axis=1)
        return [labels[int(index)] for index in np.minimum(middle, len(labels) - 1)]
    return [labels[int(index)] for index in log_probs.argmax(axis=1)]


def log_likelihoods(kind: LabelKind, log_probs: Floats, targets: Floats) -> NDArray[np.float64]:
    """Compute the log likelihood of the labels of each text.

    Args:
        log_probs: [text, label] in nats.
        targets: [text, label] of `target_rows`.

    Returns:
        [text] in nats; of a target that is a distribution, the mean over it.
    """
    own = log_probs.astype(np.float64)
    if kind != "several":
        return (targets * own).sum(axis=1)
    return (targets * own + (1.0 - targets) * log_complement(own)).sum(axis=1)


def log_complement(log_probs: NDArray[np.floating]) -> NDArray[np.float64]:
    """Compute log(1 - p) from log p, both at least -30 nats."""
    return np.log(np.maximum(-np.expm1(np.minimum(log_probs.astype(np.float64), 0.0)), math.exp(-30.0)))


def mixture(kind: LabelKind, log_probs: Floats, linear: Floats, share: float) -> Floats:
    """Mix the probabilities of two models, as a geometric mean that is normalised.

    Args:
        log_probs: [text, label] of the one, in nats.
        linear: [text, label] of the other.
        share: exponent of the first; that of the second is 1 - share.

    Returns:
        [text, label] log probabilities.
    """
    if kind != "several":
        return normalised(kind, (share * log_probs + (1.0 - share) * linear).astype(np.float32))
    logits = [own.astype(np.float64) - log_complement(own) for own in (log_probs, linear)]
    return normalised(kind, share * logits[0] + (1.0 - share) * logits[1])


def normalised(kind: LabelKind, scores: NDArray[np.floating]) -> Floats:
    """Normalise scores.

    Args:
        scores: [text, label] unnormalised log probabilities, or for several labels, logits of each.

    Returns:
        [text, label] log probabilities in nats.
    """
    if kind == "several":
        return -np.logaddexp(0.0, -scores.astype(np.float64)).astype(np.float32)
    shifted = scores - scores.max(axis=1, keepdims=True)
    return (shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))).astype(np.float32)
