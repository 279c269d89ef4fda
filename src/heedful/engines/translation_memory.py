"""Translation memory: the corrections of a model, in force from the moment they are written."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from heedful.data.corrections import Correction, CorrectionJournal, JournalContent
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

    def __init__(self, content: JournalContent, key: Callable[[str], str], near: "_NearSources") -> None:
        """Set the corrections, and the index in which their sources are."""
        self.content: Final = content
        self._key: Final = key
        self.near: Final = near

    def has(self, text: str) -> bool:
        """Tell whether a source was corrected."""
        return bool(self.content.in_force) and self._key(text) in self.content.in_force

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
        entries, in_force = self.content.entries, self.content.in_force
        if not in_force or not key:
            return []
        if key in in_force:
            exact = entries[in_force[key]]
            return [MemoryMatch(exact.source, exact.correction, 1.0, is_exact=True)]
        nearest = self.near.nearest(key, number, in_force)
        return [
            MemoryMatch(entries[index].source, entries[index].correction, share, False)
            for index, share in nearest
            if share >= NEAR_SHARE
        ]


@final
class _NearSources:
    """Index of the sources of all corrections ever given, which grows with them."""

    def __init__(self, entries: Sequence[Correction], key: Callable[[str], str]) -> None:
        self.entries: Final = entries
        self._key: Final = key
        self._keys: Final[list[str]] = []
        self._index: Final = NgramIndex()
        self._lock: Final = threading.Lock()

    def nearest(self, key: str, number: int, in_force: Mapping[str, int]) -> list[tuple[int, float]]:
        """Most similar sources among those in force; see `NgramIndex.nearest`."""
        with self._lock:
            while len(self._keys) < len(self.entries):
                self._keys.append(self._key(self.entries[len(self._keys)].source))
                self._index.add(self._keys[-1])
            return self._index.nearest(key, number, lambda index: in_force.get(self._keys[index]) == index)


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
        self._read: tuple[tuple[int, ...], MemoryState] = ((), self._state_of(JournalContent()))

    def state(self) -> MemoryState:
        """Return the corrections that are in force now.

        Returns:
            The corrections, which do not change any more.

        Raises:
            NewerFormat: a newer heedful wrote a line.
            DamagedFile: the journal is a pipe, a folder or a device, or too large.

        Cost: time in proportion to the lines that were appended since the last call.
        """
        stamp, (read, state) = self.journal.stamp(), self._read
        if stamp != read:
            content = self.journal.read() if stamp else JournalContent()
            is_longer = content.entries is state.content.entries
            state = MemoryState(content, self.journal.key, state.near) if is_longer else self._state_of(content)
            self._read = stamp, state  # one assignment: other threads see both or none
        return state

    def _state_of(self, content: JournalContent) -> MemoryState:
        return MemoryState(content, self.journal.key, _NearSources(content.entries, self.journal.key))
