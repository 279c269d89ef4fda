"""Learned corrections: those of the model that a training goes on from, as they were before its first step."""

import hashlib
from pathlib import Path
from typing import Any, Final, final

from heedful.data.corrections import NAME, CorrectionJournal
from heedful.data.same_data import has_begun
from heedful.files.atomic_write import sync
from heedful.files.bounded_read import read_bytes

LEARNED: Final = "run/corrections.jsonl"
"""Copy of the journal in a training's model folder, which later corrections do not change."""


@final
class LearnedCorrections:
    """Journal of corrections that are training pairs, too; a `heedful.data.same_data.WatchedFile`."""

    def __init__(self, folder: Path, origin: Path | None) -> None:
        """Read the copy of a training that has begun, or else the journal of the model that it goes on from.

        Args:
            folder: the training's model folder.
            origin: folder of that model; None = there is none.

        Raises:
            FileRefused: the journal is no file, or was written by a newer heedful.
        """
        self._folder: Final = folder
        self._has_begun: Final = has_begun(folder)
        path = folder / LEARNED if self._has_begun or origin is None else origin / NAME
        is_read = (self._has_begun or origin is not None) and bool(CorrectionJournal(path, str).read().corrections)
        self.content: Final = read_bytes(path) if is_read else b""
        """Bytes of the journal; empty without corrections in force."""

    def identity(self) -> tuple[Any, ...]:
        """Return a value that never changes, because the content has been read.

        Returns:
            An empty tuple.
        """
        return ()

    def fingerprint(self) -> dict[str, Any]:
        """Describe the content.

        Returns:
            "sha256" of the bytes. JSON can hold it.
        """
        return {"sha256": hashlib.sha256(self.content).hexdigest()}

    def store(self) -> None:
        """Copy the corrections into a training that has not begun: to be learned, and in force in its model.

        Copies of an interrupted or refused attempt are removed.
        """
        if self._has_begun:
            return
        for path in (self._folder / LEARNED, self._folder / NAME):
            path.unlink(missing_ok=True)
            if self.content:
                path.write_bytes(self.content)
                sync(path)
