"""Positions of sources in the order by which pairs are split, a hash of each, and the parts of the split."""

import hashlib
import unicodedata
from typing import Literal

from heedful.errors import UsageError

Part = Literal["train", "dev", "test"]
"""Part of a split: training, validation or test."""


def split_of(source: str, dev_share: float, test_share: float) -> Part:
    """Return the split of a pair: training, validation or test.

    The split depends on the source alone: all targets of a source are in the same split, in every run. A larger share
    contains the sources of a smaller one.

    Args:
        source: the source text; its Unicode normal form does not matter.
        dev_share: in [0, 1], share of the sources held out for validation.
        test_share: in [0, 1], share of the sources held out for testing; the two sum to at most 1.

    Returns:
        "train", "dev" or "test".

    Raises:
        UsageError: the shares are out of range.

    Example:
        >>> split_of("Guten Tag", 0.0, 1.0), split_of("Guten Tag", 0.0, 0.0)
        ('test', 'train')
    """
    if not (dev_share >= 0.0 and test_share >= 0.0 and dev_share + test_share <= 1.0):
        raise UsageError(f"shares {dev_share} and {test_share}: expected two numbers from 0 whose sum is at most 1")
    return part_at(split_position(source), dev_share, test_share)


def split_position(source: str) -> float:
    """Return the position of a source in the order by which pairs are split.

    Args:
        source: the source text; its Unicode normal form does not matter.

    Returns:
        A number in [0, 1), pseudorandom but the same on every machine.
    """
    text = unicodedata.normalize("NFC", source).encode("utf-8", "surrogatepass")
    bits = int.from_bytes(hashlib.blake2b(text, digest_size=8, person=b"heedful split").digest(), "little")
    return (bits >> 11) / 2.0**53  # exact, so never 1


def part_at(position: float, dev_share: float, test_share: float) -> Part:
    """Return the part of a split at a position.

    Args:
        position: from `split_position`.
        dev_share: share of the sources held out for validation.
        test_share: share of the sources held out for testing.

    Returns:
        "train", "dev" or "test".
    """
    if position < test_share:
        return "test"
    return "dev" if position >= 1.0 - dev_share else "train"
