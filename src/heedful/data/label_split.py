"""Split of labelled texts into training, validation and test texts, class by class, by a hash of the text."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import floor
from typing import Final

from heedful.data.corpus import Pair
from heedful.data.split_positions import Part, split_position

ENOUGH_TEXTS: Final = 8
"""Number of different texts of a class from which on at least one is held out for each purpose."""


def split_labelled(
    pairs: Sequence[Pair], dev_share: float, test_share: float, labels_of: Callable[[str], Sequence[str]]
) -> dict[Part, list[Pair]]:
    """Split labelled texts, so that each class has its share in each part.

    All rows of a text stay together. Of each class, the texts with the highest positions are for validation and those
    with the lowest for testing, so that few texts change their part when a corpus grows. A class keeps more texts
    for training than are held out, and classes with less than one text to hold out take turns.

    Args:
        pairs: texts, and as targets their labels.
        dev_share: in [0, 1], share of the texts held out for validation.
        test_share: in [0, 1], share of the texts held out for testing.
        labels_of: function from a target to its labels, of which the rarest is the class of the text.

    Returns:
        Rows of each part, in their order.
    """
    positions = [split_position(pair.group or pair.source) for pair in pairs]
    labels = [labels_of(pair.target.strip()) for pair in pairs]
    counts = Counter(label for own in labels for label in own)
    classes: dict[float, str] = {}
    for position, own in zip(positions, labels, strict=True):
        known = [classes[position]] if position in classes else []
        classes[position] = min([*own, *known], key=lambda label: (counts[label], label), default="")
    parts = _parts(classes, dev_share, test_share)
    rows: dict[Part, list[Pair]] = {"train": [], "dev": [], "test": []}
    for pair, position in zip(pairs, positions, strict=True):
        rows[parts.get(position, "train")].append(pair)
    return rows


def _parts(classes: Mapping[float, str], dev_share: float, test_share: float) -> dict[float, Part]:
    """Parts of the positions that are held out.

    Args:
        classes: class of each position.
    """
    by_class: dict[str, list[float]] = defaultdict(list)
    for position, label in classes.items():
        by_class[label].append(position)
    parts: dict[float, Part] = {}
    sizes = {label: len(own) for label, own in by_class.items()}
    for label, num_dev, num_test in _numbers(sizes, dev_share, test_share):
        own = sorted(by_class[label])
        parts |= dict.fromkeys(own[:num_test], "test")
        parts |= dict.fromkeys(own[len(own) - num_dev :], "dev")
    return parts


def num_held_out(sizes: Mapping[str, int], dev_share: float, test_share: float) -> int:
    """Count the texts that `split_labelled` holds out.

    Args:
        sizes: number of different texts of each class.
        dev_share: as for `split_labelled`.
        test_share: as for `split_labelled`.

    Example:
        >>> num_held_out({"good": 50, "bad": 50, "rare": 1}, 0.1, 0.1)
        20
    """
    return sum(num_dev + num_test for _, num_dev, num_test in _numbers(sizes, dev_share, test_share))


def _numbers(sizes: Mapping[str, int], dev_share: float, test_share: float) -> Iterator[tuple[str, int, int]]:
    """Each class, and how many of its texts are for validation and for testing."""
    # What is left of a text after rounding goes to the next class; the two begin apart, and take turns.
    dev_rest, test_rest = 0.5, 0.0
    for label, size in sorted(sizes.items()):
        most = (size - 1) // 2
        num_dev, dev_rest = _number(size, dev_share, dev_rest, most)
        num_test, test_rest = _number(size, test_share, test_rest, most - num_dev)
        yield label, num_dev, num_test


def _number(num_texts: int, share: float, rest: float, most: int) -> tuple[int, float]:
    """Number of texts of a class to hold out, and what is left for the next class.

    Args:
        rest: in [0, 1), left by the class before.
        most: number of texts that may be held out.
    """
    wanted = num_texts * share + rest
    number = floor(wanted)
    least = 1 if share and num_texts >= ENOUGH_TEXTS else 0
    return min(most, max(number, least)), wanted - number
