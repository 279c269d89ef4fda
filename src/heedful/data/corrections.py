"""Journal of corrections: sources with better translations than a model's, one durable line each.

The journal is a file in the model folder to which lines are only appended. A line is a JSON object with its format
version, the time and a checksum: a correction, or the withdrawal of an earlier one. `CorrectionJournal.add` returns
after the line is on disk. A line that a crash cut off, or that was damaged later, is left out; all others count.
"""

import json
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, cast, final

from heedful.errors import DamagedFile, UsageError
from heedful.files.append import append_whole, locked_for_append
from heedful.files.bounded_read import MOST_BYTES, open_regular, parse_json
from heedful.files.formats import CORRECTIONS_FORMAT, KEY
from heedful.files.records import CHECKSUM, checksum
from heedful.text.quoting import shortened

NAME: Final = "corrections.jsonl"
"""Name of the journal in a model folder."""
MOST_CHARACTERS: Final = 100_000
"""Largest number of characters of a source or a correction."""
MOST_LINE_BYTES: Final = 2 << 20
"""Bytes of the end of a journal among which its last line is; more than any line has."""
_END_BYTES: Final = 4096
"""Bytes before the place up to which a journal was read, by which it is recognised as the same."""


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

    entries: Sequence[Correction] = ()
    """Corrections that were ever given, oldest first. Later ones are appended to it."""
    in_force: Mapping[str, int] = field(default_factory=dict[str, int])
    """Index of the correction in force, by the key of its source."""
    damaged: tuple[int, ...] = ()
    """Numbers of the lines that are damaged and were left out, from 1."""

    @cached_property
    def corrections(self) -> tuple[Correction, ...]:
        """Corrections in force, oldest first, one for each source."""
        return tuple(self.entries[index] for index in sorted(self.in_force.values()))

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
class _Entries:
    """Lines of a journal, read one after the other, in constant time each."""

    def __init__(self) -> None:
        self.corrections: Final[list[Correction]] = []
        self.in_force: Final[dict[str, int]] = {}
        self.damaged: Final[list[int]] = []
        self.num_lines = 0
        self._names: Final[list[str]] = []
        self._is_withdrawn: Final[list[bool]] = []
        self._by_name: Final[defaultdict[str, list[int]]] = defaultdict(list)
        self._by_key: Final[defaultdict[str | None, list[int]]] = defaultdict(list)

    def add(self, line: bytes, path: Path, key: Callable[[str], str]) -> None:
        """Read the next line.

        Raises:
            NewerFormat: a newer heedful wrote it.
        """
        self.num_lines += 1
        facts, is_sound = _facts(line, path)
        if not line:
            return
        if not is_sound:
            self.damaged.append(self.num_lines)
        elif "withdraws" in facts:
            if indices := self._by_name.get(facts["withdraws"]):
                index = indices.pop()
                self._is_withdrawn[index] = True
                own = key(self.corrections[index].source)
                newest = self._newest(own)
                if newest is None:
                    self.in_force.pop(own, None)
                else:
                    self.in_force[own] = newest
        else:
            index, own = len(self.corrections), key(facts["source"])
            self.corrections.append(Correction(facts["source"], facts["correction"], facts["time"]))
            self._names.append(facts[CHECKSUM])
            self._is_withdrawn.append(False)
            self._by_name[facts[CHECKSUM]].append(index)
            self._by_key[own].append(index)
            self._by_key[None].append(index)
            self.in_force[own] = index

    def newest(self, key: str | None) -> tuple[str, Correction] | None:
        """Newest correction of a source, or of all, with its checksum; None if there is none."""
        index = self._newest(key)
        return None if index is None else (self._names[index], self.corrections[index])

    def _newest(self, key: str | None) -> int | None:
        indices = self._by_key.get(key, [])
        while indices and self._is_withdrawn[indices[-1]]:
            indices.pop()
        return indices[-1] if indices else None


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
        self._reading: Final = threading.Lock()
        self._entries = _Entries()
        self._stamp: tuple[int, ...] = ()
        self._size = 0
        self._end = b""

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
            return _stamp_of(self.path.stat())
        except FileNotFoundError:
            return ()

    def read(self) -> JournalContent:
        """Read the corrections in force; of a file that has grown since the last call, only what was appended.

        Returns:
            The corrections, and the numbers of damaged lines. The newest correction of a source counts.

        Raises:
            NewerFormat: a newer heedful wrote a line.
            DamagedFile: the file is a pipe, a folder or a device, or too large.
        """
        with self._reading:
            entries = self._read()
            return JournalContent(entries.corrections, dict(entries.in_force), tuple(entries.damaged))

    def add(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Append corrections; they are on disk when the call returns.

        Raises:
            UsageError: a side is blank, longer than `MOST_CHARACTERS`, has a line feed or is not UTF-8, or the journal
                is full. Nothing is appended.
            FileRefused: the journal is no file, or was written by a newer heedful.
            ResourceError: the disk is full or refuses, or another process keeps the journal locked; it is as it was.
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
            with self._reading:
                newest = self._read().newest(None if source is None else self.key(source))
            if newest is None:
                of_source = "" if source is None else f" of {shortened(source)}"
                raise UsageError(f"{self.path}: no correction{of_source} to undo; see: heedful correct MODEL --list")
            withdrawn.append(newest[1])
            return [{"withdraws": newest[0], "time": datetime.now(UTC).isoformat(timespec="microseconds")}]

        self._append(withdrawal)
        return withdrawn[0]

    def _read(self) -> _Entries:
        """Lines of the file; those that were read before are not read again, unless the file was not just appended to.

        Raises:
            NewerFormat: a newer heedful wrote a line.
            DamagedFile: the file is a pipe, a folder or a device, or too large.
        """
        try:
            file = open_regular(self.path)
        except FileNotFoundError:
            self._entries, self._stamp, self._size, self._end = _Entries(), (), 0, b""
            return self._entries
        with file:
            status = os.fstat(file.fileno())
            if status.st_size > MOST_BYTES:
                raise DamagedFile(
                    f"{self.path}: larger than the {MOST_BYTES >> 20} MiB that a journal may have; copy it again"
                )
            if self._stamp == _stamp_of(status):
                return self._entries
            file.seek(max(0, self._size - len(self._end)))
            has_grown = self._stamp[:2] == (status.st_dev, status.st_ino) and status.st_size > self._stamp[2]
            if not has_grown or file.read(len(self._end)) != self._end:
                self._entries, self._size, self._end = _Entries(), 0, b""
                file.seek(0)
            entries, content = self._entries, file.read(MOST_BYTES)
        self._stamp = ()  # until all is read
        *lines, rest = content.split(b"\n")
        for line in lines:
            entries.add(line, self.path, self.key)
        self._size += len(content) - len(rest)
        self._end = (self._end + content[: len(content) - len(rest)])[-_END_BYTES:]
        if rest:  # a line without an end is read again, because more of it may follow
            entries.add(rest, self.path, self.key)
            return entries
        self._stamp = _stamp_of(status)
        return entries

    def _append(self, compose: Callable[[], Sequence[Mapping[str, Any]]]) -> None:
        """Append lines that are composed while the file is locked.

        Raises:
            UsageError: the journal is full.
            FileRefused: the journal is no file, or was written by a newer heedful.
            ResourceError: the disk is full or refuses, or another process keeps it locked; the journal is as it was.
        """
        with locked_for_append(self.path) as descriptor:
            self._check_end(descriptor)
            content = b"".join(_line(facts) for facts in compose())
            if os.fstat(descriptor).st_size + len(content) > MOST_BYTES:
                way_out = "export it, train with --from on it, and delete the file"
                raise UsageError(f"{self.path}: full at {MOST_BYTES >> 20} MiB; {way_out}")
            append_whole(self.path, descriptor, content)

    def _check_end(self, descriptor: int) -> None:
        """Leave a journal as it is to which a newer heedful has appended; this one would not append after its lines.

        Raises:
            NewerFormat: a newer heedful wrote one of the last lines.
        """
        size = os.fstat(descriptor).st_size
        os.lseek(descriptor, max(0, size - MOST_LINE_BYTES), os.SEEK_SET)
        for line in reversed(os.read(descriptor, MOST_LINE_BYTES).split(b"\n")):
            if _facts(line, self.path)[1]:
                return


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


def journal_of(corrections: Iterable[Correction]) -> bytes:
    """Write a journal that holds corrections as they were given, and nothing that was withdrawn.

    Args:
        corrections: the corrections, oldest first.
    """
    return b"".join(
        _line({"source": one.source, "correction": one.correction, "time": one.time}) for one in corrections
    )


def _line(facts: Mapping[str, Any]) -> bytes:
    stamped = CORRECTIONS_FORMAT.stamp(facts)
    return json.dumps({**stamped, CHECKSUM: checksum(stamped)}, ensure_ascii=False).encode("utf-8") + b"\n"


def _stamp_of(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _facts(line: bytes, path: Path) -> tuple[dict[str, Any], bool]:
    """Read a line.

    Returns:
        Its content, empty if it is damaged beyond reading, and True where it holds what was written, by its checksum
        and its fields.

    Raises:
        NewerFormat: a newer heedful wrote it.
    """
    facts = _parsed(line)
    fits = _fits_checksum(facts)
    # A newer format may have other fields, or no checksum; a version that does not fit the checksum is damage.
    if isinstance(facts.get(KEY), int) and (CHECKSUM not in facts or fits):
        CORRECTIONS_FORMAT.check(path, {KEY: max(1, facts[KEY])})
    names = ("withdraws", "time") if "withdraws" in facts else ("source", "correction", "time")
    return facts, fits and all(isinstance(facts.get(name), str) for name in names)


def _parsed(line: bytes) -> dict[str, Any]:
    """Content of a line; empty if it is no JSON object."""
    try:
        facts = parse_json(line)
    except ValueError:
        return {}
    return cast(dict[str, Any], facts) if isinstance(facts, dict) else {}


def _fits_checksum(facts: Mapping[str, Any]) -> bool:
    own = facts.get(CHECKSUM)
    return own is not None and own == checksum({key: value for key, value in facts.items() if key != CHECKSUM})
