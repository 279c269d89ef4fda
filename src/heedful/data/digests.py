"""Sets of text hashes with 8 bytes a text, for finding duplicates in corpora larger than memory."""

import hashlib
import unicodedata
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

Digests = NDArray[np.uint64]
Flags = NDArray[np.bool_]


def digest(text: str) -> int:
    """Hash text to 64 bits, the same on every machine and in every process.

    Args:
        text: any text.

    Returns:
        A number in [0, 2**64). Among ten million texts, two differing ones share it with probability 3e-6.
    """
    # Lone surrogates cannot come from files, but a caller's own strings may hold them.
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def digest_pair(source: str, target: str) -> int:
    """Hash two texts together; moving characters from one to the other changes the hash.

    Args:
        source: any text.
        target: any text.

    Returns:
        A number in [0, 2**64).
    """
    return digest(f"{len(source)} {source}{target}")


def fold(text: str) -> str:
    """Normalise a text so that trivial differences vanish: normal form C, case folded, single spaces.

    Args:
        text: any text.

    Returns:
        The folded text.

    Example:
        >>> fold("  Guten\u00a0 TAG ")
        'guten tag'
    """
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


@final
class DigestSet:
    """Growing set of 64-bit numbers in sorted arrays whose sizes at least double, merged as they fill up."""

    def __init__(self) -> None:
        self._runs: Final[list[Digests]] = []

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    def contains(self, digests: Digests) -> Flags:
        """Tell which numbers are in the set.

        Args:
            digests: [text] numbers.

        Returns:
            [text] whether each is in the set.

        Cost: per number, one binary search in each of log2(size) arrays.
        """
        is_member = np.zeros(len(digests), dtype=np.bool_)
        for run in self._runs:
            positions = np.searchsorted(run, digests)
            is_member |= run[np.minimum(positions, len(run) - 1)] == digests
        return is_member

    def add(self, digests: Digests) -> Flags:
        """Add numbers to the set.

        Args:
            digests: [text] numbers, in any order, possibly repeated.

        Returns:
            [text] whether each was new: neither in the set nor earlier in `digests`.
        """
        is_new = np.zeros(len(digests), dtype=np.bool_)
        is_new[np.unique(digests, return_index=True)[1]] = True
        is_new &= ~self.contains(digests)
        run = np.sort(digests[is_new])
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        if len(run):
            self._runs.append(run)
        return is_new
