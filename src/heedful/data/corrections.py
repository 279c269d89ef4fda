"""Journal of corrections: sources with better translations than a model's, one durable line each.

The journal is a file in the model folder to which lines are only appended. A line is a JSON object with its format
version, the time and a checksum: a correction, or the withdrawal of an earlier one. `CorrectionJournal.add` returns
after the line is on disk. A line that a crash cut off, or that was damaged later, is left out; all others count.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast, final

from heedful.errors import ResourceError, UsageError
from heedful.files.atomic_write import NoLocks, append_whole, lock, sync
from heedful.files.bounded_read import MOST_BYTES, open_regular, parse_json, read_bytes
from heedful.files.formats import CORRECTIONS_FORMAT, KEY
from heedful.files.records import CHECKSUM, checksum
from heedful.text.quoting import shortened

NAME: Final = "corrections.jsonl"
"""Name of the journal in a model folder."""
MOST_CHARACTERS: Final = 100_000
"""Largest number of characters of a source or a correction."""
_LOCK_SECONDS: Final = 10.0
"""Longest wait for another process that writes the journal."""
_RETRY_SECONDS: Final = 0.002


@final
@dataclass(frozen=True)
class Correction:
    """Translation that a person prefers to the model's."""

    source: str
    correction: str
    time: str
    """When it was given, in ISO 8601, UTC."""


@final
@dataclass(frozen=True)
class JournalContent:
    """Content of a journal at one time."""

    corrections: tuple[Correction, ...] = ()
    """Corrections in force, oldest first, one for each source."""
    damaged: tuple[int, ...] = ()
    """Numbers of the lines that are damaged and were left out, from 1."""

    def error(self, path: Path) -> str:
        """Describe the damaged lines in one line.

        Returns:
            Such as "m/corrections.jsonl:3: damaged, left out"; empty if all lines are sound.
        """
        if not self.damaged:
            return ""
        others = len(self.damaged) - 1
        more = f", and {others} more {'lines' if others > 1 else 'line'}" if others else ""
        return f"{path}:{self.damaged[0]}: damaged{more}; left out, the other corrections stay in force"


@final
class CorrectionJournal:
    """Journal of corrections in a file, which any number of processes may append to at a time."""

    def __init__(self, path: Path, normalize: Callable[[str], str]) -> None:
        """Name the file; it need not exist.

        Args:
            normalize: normal form of a source; sources that agree in it are the same.
        """
        self.path: Final = path
        self._normalize: Final = normalize

    def key(self, source: str) -> str:
        """Return the form of a source by which corrections are found.

        Returns:
            The normalized text without spaces around it.
        """
        return self._normalize(source).strip()

    def stamp(self) -> tuple[int, ...]:
        """Return values that change whenever the file changes.

        Returns:
            Device, inode, size and time of change; empty if there is no file.
        """
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return ()
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns

    def read(self) -> JournalContent:
        """Read the corrections in force.

        Returns:
            The corrections, and the numbers of damaged lines. The newest correction of a source counts.

        Raises:
            NewerFormat: a newer heedful wrote a line.
            DamagedFile: the file is a pipe, a folder or a device, or too large.
        """
        entries, damaged = self._entries()
        newest = {self.key(entry.source): entry for _, entry in entries}
        return JournalContent(tuple(entry for _, entry in entries if newest[self.key(entry.source)] is entry), damaged)

    def add(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Append corrections; they are on disk when the call returns.

        Raises:
            UsageError: a side is blank, longer than `MOST_CHARACTERS`, has a line feed or is not UTF-8, the journal is
                full, or another process keeps it locked. Nothing is appended.
            FileRefused: the journal is no file, or was written by a newer heedful.
            ResourceError: the disk is full or refuses; the journal is as it was.
        """
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        rows = [(_checked(source, "source"), _checked(correction, "correction")) for source, correction in pairs]
        self._append(lambda: [{"source": source, "correction": correction, "time": now} for source, correction in rows])

    def undo(self, source: str | None = None) -> Correction:
        """Withdraw the newest correction; an earlier one of the same source is in force again.

        Args:
            source: whose newest correction to withdraw; None = the newest of all.

        Raises:
            UsageError: there is no such correction.
            FileRefused: the journal is no file, or was written by a newer heedful.
            ResourceError: the disk is full or refuses.
        """
        withdrawn: list[Correction] = []

        def withdrawal() -> list[dict[str, Any]]:
            key = None if source is None else self.key(source)
            matching = [(name, each) for name, each in self._entries()[0] if key in (None, self.key(each.source))]
            if not matching:
                of_source = "" if source is None else f" of {shortened(source)}"
                raise UsageError(f"{self.path}: no correction{of_source} to undo; see: heedful correct MODEL --list")
            withdrawn.append(matching[-1][1])
            now = datetime.now(UTC).isoformat(timespec="microseconds")
            return [{"withdraws": matching[-1][0], "time": now}]

        self._append(withdrawal)
        return withdrawn[0]

    def _entries(self) -> tuple[list[tuple[str, Correction]], tuple[int, ...]]:
        """Corrections that were not withdrawn, with their checksums, and the numbers of damaged lines."""
        try:
            content = read_bytes(self.path)
        except FileNotFoundError:
            return [], ()
        entries: list[tuple[str, Correction]] = []
        damaged: list[int] = []
        for number, line in enumerate(content.split(b"\n"), 1):
            if not line:
                continue
            facts = _parsed(line)
            # A newer format may have other fields, or no checksum; a version that does not fit the checksum is damage.
            if isinstance(facts.get(KEY), int) and (CHECKSUM not in facts or _fits_checksum(facts)):
                CORRECTIONS_FORMAT.check(self.path, {KEY: max(1, facts[KEY])})
            if not _is_sound(facts):
                damaged.append(number)
            elif "withdraws" in facts:
                names = [name for name, _ in entries]
                if facts["withdraws"] in names:
                    del entries[len(names) - 1 - names[::-1].index(facts["withdraws"])]
            else:
                entries.append((facts[CHECKSUM], Correction(facts["source"], facts["correction"], facts["time"])))
        return entries, tuple(damaged)

    def _append(self, compose: Callable[[], Sequence[Mapping[str, Any]]]) -> None:
        """Append lines that are composed while the file is locked.

        Raises:
            UsageError: the journal is full, or another process keeps it locked.
            ResourceError: the disk is full or refuses; the journal is as it was.
        """
        if self.path.exists():
            open_regular(self.path).close()
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        except OSError as error:
            raise ResourceError(f"{self.path}: cannot be written: {error.strerror}") from None
        try:
            self._wait_for(descriptor)
            self._entries()  # a journal of a newer heedful is left as it is
            content = b"".join(_line(facts) for facts in compose())
            _write(descriptor, content, self.path)
        finally:
            os.close(descriptor)
        sync(self.path.parent)  # this or another process may just have created the file

    def _wait_for(self, descriptor: int) -> None:
        """Lock the file, after any other process that writes it.

        Raises:
            UsageError: another process keeps it locked.
        """
        stop = time.monotonic() + _LOCK_SECONDS
        with suppress(NoLocks):  # an append is then a single write all the same
            while not lock(descriptor):
                if time.monotonic() > stop:
                    raise UsageError(f"{self.path}: another process has been writing it for {_LOCK_SECONDS:.0f} s")
                time.sleep(_RETRY_SECONDS)


def _checked(text: str, name: str) -> str:
    """Text of a correction.

    Raises:
        UsageError: it is blank, too long, has a line feed or is not UTF-8.
    """
    if not text.strip():
        raise UsageError(f"correct: the {name} is blank; give one line of text")
    if "\n" in text:
        raise UsageError(f"correct: the {name} has a line feed; correct one line at a time")
    if len(text) > MOST_CHARACTERS:
        raise UsageError(f"correct: the {name} is longer than {MOST_CHARACTERS:,} characters; correct one sentence")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"correct: the {name} is not UTF-8") from None
    return text


def _line(facts: Mapping[str, Any]) -> bytes:
    stamped = CORRECTIONS_FORMAT.stamp(facts)
    return json.dumps({**stamped, CHECKSUM: checksum(stamped)}, ensure_ascii=False).encode("utf-8") + b"\n"


def _parsed(line: bytes) -> dict[str, Any]:
    """Content of a line; empty if it is no JSON object."""
    try:
        facts = parse_json(line)
    except ValueError:
        return {}
    return cast(dict[str, Any], facts) if isinstance(facts, dict) else {}


def _is_sound(facts: Mapping[str, Any]) -> bool:
    """Tell whether a line holds what was written, by its checksum and its fields."""
    names = ("withdraws", "time") if "withdraws" in facts else ("source", "correction", "time")
    return _fits_checksum(facts) and all(isinstance(facts.get(name), str) for name in names)


def _fits_checksum(facts: Mapping[str, Any]) -> bool:
    return facts.get(CHECKSUM) == checksum({key: value for key, value in facts.items() if key != CHECKSUM})


def _write(descriptor: int, content: bytes, path: Path) -> None:
    """Append to a locked file, and return when the content is on disk.

    Raises:
        UsageError: the file would become too large.
        ResourceError: the disk is full or refuses; the file is as it was.
    """
    size = os.fstat(descriptor).st_size
    if size + len(content) > MOST_BYTES:
        raise UsageError(
            f"{path}: full at {MOST_BYTES >> 20} MiB; export it, train with --from on it, and delete the file"
        )
    try:
        append_whole(descriptor, content)
    except OSError as error:
        raise ResourceError(f"{path}: not written: {error.strerror}; free some space and correct again") from None
