"""Pairs of texts from one tab-separated file, one JSONL file, or two aligned files; each may be gzipped.

Reading is lazy and in constant memory, and each iteration reads afresh. What is wrong with a file is one line that
names the place; what was put right on the way is a note. What to keep of the pairs is chosen here too.
"""

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, final

import numpy as np

from heedful.data.digests import DigestSet, digest_pair
from heedful.data.rows import Columns, JsonRows, RowFormat, TabRows, is_header
from heedful.errors import DataError, UsageError
from heedful.text.lines import Lines, read_lines
from heedful.text.text_files import check_file, fingerprint_file, stem, unequal

Split = Literal["train", "dev", "test"]

_JSON_SUFFIXES: Final = (".jsonl", ".ndjson", ".json")
_BLOCK_PAIRS: Final = 8192


class Pair(NamedTuple):
    """Source and target, and the line that they come from."""

    source: str
    target: str
    line: int
    """1-based line of the file, or of the first of two."""


@final
class PairFile:
    """Pairs in one file or in two aligned ones. Made by `find_pairs`."""

    def __init__(self, paths: Sequence[Path], columns: Columns, rows: RowFormat | None, header_line: int) -> None:
        """Remember what was found out about the files.

        Args:
            paths: one file or two.
            columns: 1-based columns of source and target; of two files, which is which.
            rows: how a line of one file is taken apart; None for two files.
            header_line: 1-based line of the headings to leave out; 0 where there are none.
        """
        self.paths: Final = tuple(paths)
        self.columns: Final = columns
        self.name: Final = stem(paths[0])
        """For naming a model after it."""
        self._rows: Final = rows
        self._header_line: Final = header_line
        self._notes: Final[dict[str, None]] = {}  # a dict keeps each once, in order, over several readings
        if header_line:
            self._note(f"{paths[0]}:{header_line}: headings left out")

    @property
    def notes(self) -> list[str]:
        """Repairs so far: headings and byte order marks left out, CR LF line ends."""
        return list(self._notes)

    def __iter__(self) -> Iterator[Pair]:
        """Read the pairs from the start.

        Yields:
            Every row but headings; a line without any character is a pair of empty texts.

        Raises:
            DataError: a line is malformed, or two files have different numbers of lines.
        """
        return self._read_two() if self._rows is None else self._read_one(self._rows)

    def fingerprint(self) -> dict[str, Any]:
        """Describe the content so that any change shows.

        Returns:
            "columns", and "files": the name, size, sha256 and number of lines of each. JSON can hold it.
        """
        return {"columns": list(self.columns), "files": [fingerprint_file(path) for path in self.paths]}

    def _read_one(self, rows: RowFormat) -> Iterator[Pair]:
        lines = read_lines(self.paths[0], nul="refuse")
        name = lines.name
        for number, line in enumerate(lines, start=1):
            if not line:
                yield Pair("", "", number)
            elif number != self._header_line:
                source, target = rows.cells(line, name, number)
                yield Pair(source, target, number)
        self._note_lines(lines)

    def _read_two(self) -> Iterator[Pair]:
        sides = [read_lines(path, nul="refuse") for path in self.paths]
        source, target = sides[self.columns[0] - 1], sides[self.columns[1] - 1]
        end = object()
        for number, text in enumerate(source, start=1):
            other = next(target, end)
            if not isinstance(other, str):
                raise unequal(*self.paths)
            if number != self._header_line:
                yield Pair(text, other, number)
        if next(target, end) is not end:
            raise unequal(*self.paths)
        for lines in sides:
            self._note_lines(lines)

    def _note_lines(self, lines: Lines) -> None:
        if lines.had_byte_order_mark:
            self._note(f"{lines.name}:1: byte order mark left out")
        if lines.num_carriage_returns:
            self._note(f"{lines.name}: {lines.num_carriage_returns} of {lines.num_lines} lines end in CR LF")

    def _note(self, note: str) -> None:
        self._notes[note] = None


def find_pairs(paths: Sequence[Path], columns: Columns = (1, 2)) -> PairFile:
    """Inspect data files and determine how to read them.

    Args:
        paths: a TSV or JSONL file, or two files whose lines n belong together.
        columns: 1-based columns of source and target; of a JSONL file, the keys by their place; of two files,
            (2, 1) makes the second the source.

    Returns:
        The pairs, to be read lazily.

    Raises:
        DataError: a file is missing, empty, no text, or has not the columns asked for.
    """
    check_columns(paths, columns)
    for path in paths:
        check_file(path)
    if len(paths) == 2:
        return _find_two(paths, columns)
    number, line = _first_line(paths[0])
    rows = row_format(paths[0], line, number, columns)
    cells = rows.cells(line, str(paths[0]), number)
    has_header = isinstance(rows, TabRows) and is_header(*cells)
    return _not_only_header(PairFile(paths, columns, rows, number if has_header else 0), has_header)


def check_columns(paths: Sequence[Path], columns: Columns) -> None:
    """Refuse columns that no data file could have.

    Args:
        paths: one file or two.
        columns: 1-based columns of source and target.

    Raises:
        UsageError: not one or two files, or columns that cannot be.
    """
    if len(paths) not in (1, 2):
        raise UsageError(f"expected one file of pairs, or two aligned files, got {len(paths)}")
    if len(set(columns)) != 2 or min(columns) < 1 or (len(paths) == 2 and max(columns) > 2):
        allowed = "1,2 or 2,1 for two files" if len(paths) == 2 else "two different numbers from 1"
        raise UsageError(f"columns {columns[0]},{columns[1]}: expected {allowed}")


def row_format(path: Path, line: str, number: int, columns: Columns) -> RowFormat:
    """Tell JSONL from TSV by the name or the first line, and take the keys or the number of columns from that line.

    Args:
        path: a file with both sides in it.
        line: its first line that is not empty.
        number: that line's 1-based number.
        columns: 1-based columns of source and target.

    Returns:
        How to take its lines apart.

    Raises:
        DataError: the columns asked for are not there.
    """
    form = JsonRows if _is_json(path, line) else TabRows
    return form.of(line, columns, str(path), number)


def _find_two(paths: Sequence[Path], columns: Columns) -> PairFile:
    for path, other in zip(paths, reversed(paths), strict=True):
        check_one_side(path, other, _first_line(path)[1])
    source, target = (next(read_lines(paths[column - 1])) for column in columns)
    has_header = is_header(source, target)
    return _not_only_header(PairFile(paths, columns, None, int(has_header)), has_header)


def check_one_side(path: Path, other: Path, line: str) -> None:
    """Refuse one of two aligned files whose name says that it contains both sides.

    Args:
        path: the file.
        other: the file it was given with.
        line: its first line that is not empty.

    Raises:
        DataError: it is JSONL, or TSV with more than one column.
    """
    # The content alone says little: either side of a corpus may be program code or JSON.
    suffix = _suffix(path)
    if suffix in _JSON_SUFFIXES or (suffix == ".tsv" and "\t" in line):
        raise DataError(f"{path}: holds both sides of its pairs; give it alone, not with {other}")


def _not_only_header(pairs: PairFile, has_header: bool) -> PairFile:
    if has_header and next(iter(pairs), None) is None:
        raise DataError(f"{pairs.paths[0]}: nothing but headings")
    return pairs


def _first_line(path: Path) -> tuple[int, str]:
    for number, line in enumerate(read_lines(path, nul="refuse"), start=1):
        if line:
            return number, line
    raise DataError(f"{path}: nothing but empty lines")


def _is_json(path: Path, first: str) -> bool:
    # A tab inside a JSON string is always escaped, so a line with tabs that starts with a brace is a row of a TSV.
    looks_so = first.startswith("{") and first.rstrip().endswith("}") and "\t" not in first
    return looks_so or _suffix(path) in _JSON_SUFFIXES


def _suffix(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def split_of(source: str, dev_share: float, test_share: float) -> Split:
    """Return the split of a pair: training, validation or test.

    It depends on the source alone: all its targets fall together, now and ever. Larger shares keep what smaller ones
    held out.

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
    text = unicodedata.normalize("NFC", source).encode("utf-8", "surrogatepass")
    bits = int.from_bytes(hashlib.blake2b(text, digest_size=8, person=b"heedful split").digest(), "little")
    fraction = (bits >> 11) / 2.0**53  # exact, so never 1
    if fraction < test_share:
        return "test"
    return "dev" if fraction >= 1.0 - dev_share else "train"


@dataclass(frozen=True)
class CorpusReport:
    """Counts of pairs read and kept. A pair left out counts once, under the first reason that applies."""

    num_read: int
    num_kept: int
    num_empty: int
    """Pairs left out because one side is blank."""
    num_too_long: int
    """Pairs left out because one side has too many characters."""
    num_duplicates: int
    """Pairs left out because the same pair came before."""
    num_identical: int
    """Pairs kept whose source and target are the same."""
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        """Return the counts on one line.

        Returns:
            Such as "9 of 10 pairs kept (1 empty left out)".
        """
        reasons = ((self.num_empty, "empty"), (self.num_too_long, "too long"), (self.num_duplicates, "repeated"))
        left_out = ", ".join(f"{count:,} {reason}" for count, reason in reasons if count)
        identical = f"; in {self.num_identical:,} both sides are the same" if self.num_identical else ""
        kept = f"{self.num_kept:,} of {self.num_read:,} pairs kept"
        return f"{kept}{f' ({left_out} left out)' if left_out else ''}{identical}"


@final
class CorpusFilter:
    """Filter of pairs that cannot be learned from, with counts; 8 bytes of memory a pair kept."""

    def __init__(self, max_characters: int) -> None:
        """Start with all counts at zero.

        Args:
            max_characters: most characters of either side.
        """
        self._max_characters: Final = max_characters
        self._seen: Final = DigestSet()
        self._num_read = self._num_empty = self._num_too_long = self._num_identical = 0
        self._num_fit = 0

    def apply(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the pairs to keep, a block at a time; may be called for several files in turn.

        Args:
            pairs: any pairs.

        Yields:
            Those with text on both sides, not too long, and not met before in any call.
        """
        fitting = (pair for pair in pairs if self._fits(pair))
        while block := list(islice(fitting, _BLOCK_PAIRS)):
            digests = np.fromiter((digest_pair(pair.source, pair.target) for pair in block), dtype=np.uint64)
            for pair, is_new in zip(block, self._seen.add(digests), strict=True):
                if is_new:
                    self._num_identical += pair.source == pair.target
                    yield pair

    def _fits(self, pair: Pair) -> bool:
        self._num_read += 1
        if not pair.source.strip() or not pair.target.strip():
            self._num_empty += 1
            return False
        if max(len(pair.source), len(pair.target)) > self._max_characters:
            self._num_too_long += 1
            return False
        self._num_fit += 1
        return True

    def report(self, notes: Iterable[str] = ()) -> CorpusReport:
        """Return the counts of all calls of `apply` so far.

        Args:
            notes: of the files, to keep with the numbers.

        Returns:
            The report.
        """
        return CorpusReport(
            num_read=self._num_read,
            num_kept=len(self._seen),
            num_empty=self._num_empty,
            num_too_long=self._num_too_long,
            num_duplicates=self._num_fit - len(self._seen),
            num_identical=self._num_identical,
            notes=tuple(notes),
        )


def group_references(pairs: Iterable[Pair]) -> list[tuple[str, list[str]]]:
    """Group pairs by source: evaluation items with their references.

    Args:
        pairs: rows of an evaluation file.

    Returns:
        Each source with its different targets, both in the order first seen.

    Example:
        >>> group_references([Pair("a", "x", 1), Pair("b", "y", 2), Pair("a", "z", 3), Pair("a", "x", 4)])
        [('a', ['x', 'z']), ('b', ['y'])]
    """
    groups: dict[str, dict[str, None]] = {}
    for pair in pairs:
        groups.setdefault(pair.source, {})[pair.target] = None
    return [(source, list(targets)) for source, targets in groups.items()]
