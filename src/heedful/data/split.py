"""Split of a corpus into training, validation and test pairs by a hash of the source."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from heedful.data.split_positions import part_at, split_of, split_position
from heedful.errors import DataError

if TYPE_CHECKING:
    from heedful.data.corpus import Pair

MIN_PAIRS: Final = 10
"""Number of different pairs below which nothing can be trained."""
HELD_OUT_PAIRS: Final = 1000
"""Number of pairs held out for validation and for testing, each; at most a tenth of all pairs."""
MOST_SHARE: Final = 0.1
LEAST_TO_SPLIT: Final = 10 * MIN_PAIRS
"""Number of pairs below which none are held out: validation uses the training pairs, and the report says so."""
_ON_TRAINING: Final = re.compile(r"validation is on (the training \w+) and says nothing about new ones")
_ENOUGH: Final = 1.0 - 1e-6
"""Position from which on a source is held out for validation whatever the size of a corpus."""


@final
class Split:
    """Split of the training file; the shares depend on the number of pairs."""

    def __init__(self, num_pairs: int, has_dev: bool, has_test: bool) -> None:
        """Choose the shares that are held out.

        Args:
            num_pairs: usable pairs of the training file.
            has_dev: whether there is a file for validation.
            has_test: whether there is a file for testing.
        """
        share = min(MOST_SHARE, HELD_OUT_PAIRS / max(1, num_pairs))
        self.dev_share = 0.0 if has_dev or num_pairs < LEAST_TO_SPLIT else share
        # A user who gives validation data decides about test data too: none are held out.
        self.test_share = 0.0 if has_test or has_dev or num_pairs < LEAST_TO_SPLIT else share

    def __call__(self, pair: "Pair") -> str:
        """Choose the part that a pair belongs to.

        Returns:
            "train", "dev" or "test", a function of the source.
        """
        return split_of(pair.group or pair.source, self.dev_share, self.test_share)


@final
class SourceSpread:
    """Spread of a corpus's sources over the positions by which it is split once its size is known."""

    def __init__(self) -> None:
        self._outer: Final[set[float]] = set()
        self._has_inner = False
        self._last = 0.0

    def watch(self, pairs: "Iterable[Pair]") -> "Iterator[Pair]":
        """Add pairs while iterating over them.

        Args:
            pairs: usable pairs of the training file.

        Yields:
            The same pairs.
        """
        for pair in pairs:
            self.add(pair)
            yield pair

    def add(self, pair: "Pair") -> None:
        """Add a pair.

        Args:
            pair: usable pair of the training file.
        """
        if self._has_inner and self._last >= _ENOUGH:
            return
        position = split_position(pair.group or pair.source)
        self._last = max(self._last, position)
        # A source between the shares that may be held out is trained on, and then no other one matters.
        self._has_inner = self._has_inner or MOST_SHARE <= position < 1.0 - MOST_SHARE
        if not self._has_inner:
            self._outer.add(position)

    def check(self, split: Split, path: Path) -> None:
        """Refuse pairs that a split divides so that there is nothing to train or to validate on.

        Raises:
            DataError: no pair is left for training, or none can be held out for validation.
        """
        trains = self._has_inner or any(
            part_at(position, split.dev_share, split.test_share) == "train" for position in self._outer
        )
        if trains and (not split.dev_share or self._last >= 1.0 - split.dev_share):
            return
        lacking = "held out for validation" if trains else "left for training"
        raise DataError(
            f"{path}: too few different sources: no pair is {lacking}, because all pairs of a source stay together; "
            "give validation pairs: --dev FILE"
        )


def on_training(noun: str) -> str:
    """Write the line of a report that says that nothing is held out.

    Args:
        noun: the items, such as "pairs".
    """
    return f"validation is on the training {noun} and says nothing about new ones"


def validated_on(report: Iterable[str]) -> str:
    """Name the items that scores of validation are on.

    Args:
        report: lines about the data of a training.

    Returns:
        "validation", or such as "the training pairs" where the report has the line of `on_training`.

    Example:
        >>> validated_on(["90 pairs for training"]), validated_on([on_training("pairs")])
        ('validation', 'the training pairs')
    """
    return next((match[1] for line in report if (match := _ON_TRAINING.search(line))), "validation")
