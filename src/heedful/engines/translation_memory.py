"""Translation memory: the corrections of a model, in force from the moment they are written."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, final

from heedful.data.corrections import CorrectionJournal, JournalContent
from heedful.text.ngram_index import NgramIndex
from heedful.text.quoting import harmless

NEAR_SHARE: Final = 0.7
"""Smallest share of character n-grams in common with a near match."""


@final
@dataclass(frozen=True)
class MemoryMatch:
    """Correction of the same source or of a similar one."""

    source: str
    """Source that was corrected."""
    correction: str
    share: float
    """Share of the character n-grams that the two sources have in common; 1 for the same source."""
    is_exact: bool
    """Whether the sources are the same after normalization."""

    @property
    def pair(self) -> tuple[str, str]:
        """Source that was corrected, with its correction."""
        return self.source, self.correction

    def __str__(self) -> str:
        kind = "corrected" if self.is_exact else f"near match {self.share:.0%}"
        return f"{kind}: {harmless(self.source)} -> {harmless(self.correction)}"


@final
class MemoryState:
    """Corrections in force at one time."""

    def __init__(self, content: JournalContent, key: Callable[[str], str]) -> None:
        """Index the corrections by their sources."""
        self.content: Final = content
        self._key: Final = key
        self._exact: Final = {key(each.source): each for each in content.corrections}

    def has(self, text: str) -> bool:
        """Tell whether a source was corrected."""
        return bool(self._exact) and self._key(text) in self._exact

    def match(self, text: str) -> MemoryMatch | None:
        """Find the correction of a source, or else of the most similar one.

        Returns:
            The match; None if no corrected source has `NEAR_SHARE` of its n-grams in common.
        """
        return next(iter(self.matches(text, 1)), None)

    def matches(self, text: str, number: int) -> list[MemoryMatch]:
        """Find the correction of a source, or else those of the most similar ones.

        Args:
            number: number of matches at most.

        Returns:
            The matches, the most similar one first; an exact match is the only one.
        """
        key = self._key(text)
        if not self._exact or not key:
            return []
        if exact := self._exact.get(key):
            return [MemoryMatch(exact.source, exact.correction, 1.0, is_exact=True)]
        nearest = [(self.content.corrections[index], share) for index, share in self._near.nearest(key, number)]
        return [MemoryMatch(one.source, one.correction, share, False) for one, share in nearest if share >= NEAR_SHARE]

    @cached_property
    def _near(self) -> NgramIndex:
        return NgramIndex([*self._exact])


@final
class TranslationMemory:
    """Corrections in a journal, read again whenever its file has changed."""

    def __init__(self, path: Path, normalize: Callable[[str], str]) -> None:
        """Name the journal; nothing is read yet.

        Args:
            path: the journal, which need not exist.
            normalize: normal form of a source, as the tokenizer makes it.
        """
        self.journal: Final = CorrectionJournal(path, normalize)
        self._read: tuple[tuple[int, ...], MemoryState] = ((), MemoryState(JournalContent(), self.journal.key))

    def state(self) -> MemoryState:
        """Return the corrections that are in force now.

        Returns:
            The corrections, which do not change any more.

        Raises:
            NewerFormat: a newer heedful wrote a line.
            DamagedFile: the journal is a pipe, a folder or a device, or too large.
        """
        stamp = self.journal.stamp()
        if stamp != self._read[0]:
            content = self.journal.read() if stamp else JournalContent()
            self._read = stamp, MemoryState(content, self.journal.key)  # one assignment: other threads see both or none
        return self._read[1]
