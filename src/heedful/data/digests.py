"""Sets of text hashes, 8 bytes per text, to find duplicates in corpora larger than memory."""

import hashlib
import unicodedata
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

Digests = NDArray[np.uint64]
Flags = NDArray[np.bool_]


def digest(text: str) -> int:
    """Hash a text to 64 bits; the same on every machine and in every process.

    Returns:
        A number in [0, 2**64). Among ten million texts, the probability of any collision is 3e-6.
    """
    # Text from files has no lone surrogates, but strings of a caller may.
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def digest_pair(source: str, target: str) -> int:
    """Hash two texts together; moving characters from one to the other changes the hash.

    Returns:
        A number in [0, 2**64).
    """
    return digest(f"{len(source)} {source}{target}")


def fold(text: str) -> str:
    """Normalise a text to normal form C, folded case and single spaces.

    Example:
        >>> fold("  Guten\u00a0 TAG ")
        'guten tag'
    """
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


@final
class DigestSet:
    """Growing set of 64-bit numbers: sorted arrays, merged so that each is at least twice as large as the next."""

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
