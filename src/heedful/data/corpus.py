"""Pairs of texts from one file of columns (TSV, CSV, Parquet, Arrow) or JSONL, or from two aligned files of text.

Files of text may be gzipped.

Reading is lazy, uses constant memory, and starts afresh for each iteration. An error is one line that names the file
and line; a repair on the way is a note.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from heedful.data.cells import (
    Record,
    cell_style,
    suffix_of,
    whole_records,
)
from heedful.data.lexicon import LexiconRows
from heedful.data.row_faults import RowFaults
from heedful.data.rows import ColumnRows, Columns, JsonRows, RowFormat
from heedful.data.tables import check_data_file, data_lines, fingerprint_table, first_lines, is_table, table_identity
from heedful.data.text_columns import is_header
from heedful.errors import DataError, UsageError
from heedful.text.columns import ColumnKind, column_kinds, split_columns
from heedful.text.label_sets import JOINT, shown_labels
from heedful.text.lines import Lines
from heedful.text.text_files import stem, unequal

_JSON_SUFFIXES: Final = (".jsonl", ".ndjson", ".json")
_SAMPLE_LINES: Final = 1000
"""Number of lines inspected to find the separator and quoting of cells."""
_SAMPLED_KINDS: Final = 10_000
"""Number of first rows by which the kinds of columns are told."""
_SHOWN_CHARACTERS: Final = 40

SHORT_ITEMS: Final = 20.0
"""Mean number of characters up to which the texts of a corpus count as words, names, dates or numbers."""


class Pair(NamedTuple):
    """Source and target, and their line in the file."""

    source: str
    target: str
    line: int
    """1-based line of the file, or of the first of two."""
    group: str = ""
    """Part of the source that stays on one side of a split, such as the word of several forms; empty = all of it."""


@final
class PairFile:
    """Pairs in one file or in two aligned files; construct with `find_pairs`."""

    def __init__(
        self,
        paths: Sequence[Path],
        columns: Columns,
        rows: RowFormat | None,
        header_line: int,
        leaves_out_faults: bool = False,
    ) -> None:
        """Store the result of inspecting the files.

        Args:
            paths: one file, or two aligned files.
            columns: columns of source and target; with two files, (2, 1) makes the second the source.
            rows: format of a line of one file; None for two files.
            header_line: 1-based line of the column headings, which is skipped; 0 = none.
            leaves_out_faults: whether a small share of rows that cannot be read are left out, and noted.
        """
        self.paths: Final = tuple(paths)
        self.columns: Final = columns
        self.name: Final = stem(paths[0])
        """Name from which the model folder's default name is derived."""
        self._rows: Final = rows
        self._header_line: Final = header_line
        self._leaves_out_faults: Final = leaves_out_faults
        self._notes: Final[dict[str, None]] = {}  # a dict keeps each once, in order, over several readings
        if header_line:
            self._note(f"{paths[0]}:{header_line}: headings left out")

    @property
    def headings(self) -> tuple[str, str]:
        """Names of the columns of source and target; empty where there are none."""
        return ("", "") if self._rows is None else self._rows.names

    @property
    def separator(self) -> str:
        """Separator of several labels in a cell; empty where there is none."""
        return "" if self._rows is None else self._rows.separator

    @property
    def source_names(self) -> tuple[str, ...]:
        """Names of the columns that are joined to a source, or their numbers; empty where a source is one column."""
        return () if self._rows is None else self._rows.source_names

    @cached_property
    def source_kinds(self) -> tuple[ColumnKind, ...]:
        """Kinds of the columns that are joined to a source, by the first rows; empty where a source is one column.

        Raises:
            DataError: a row is malformed.
        """
        if self._rows is None or len(self.source_names) < 2:
            return ()
        pairs = self._joined_rows(self._rows)
        rows = [split_columns(pair.source) for pair in islice(pairs, _SAMPLED_KINDS) if pair.source]
        return column_kinds(rows)

    @property
    def _group_column(self) -> int | None:
        """Index of the column by which pairs are split; None = by the whole source."""
        kinds = self.source_kinds
        return kinds.index("text") if "text" in kinds and "features" in kinds else None

    @property
    def has_ranks(self) -> bool:
        """True where the first target of a source is its main one, as in a lexicon."""
        return self._rows is not None and self._rows.has_ranks

    @property
    def divides_targets(self) -> bool:
        """True where commas stand between the pronunciations of a word."""
        return self._rows is not None and self._rows.divides_targets

    def divide_targets(self) -> None:
        """Divide targets at commas where rows are separated columns, as other files of the same model are read."""
        if isinstance(self._rows, ColumnRows):
            self._rows.divide_targets()

    @property
    def has_label_sets(self) -> bool:
        """Whether targets are sets of labels, joined as by `heedful.text.label_sets.joined_labels`."""
        return self._rows is not None and self._rows.has_label_sets

    @property
    def notes(self) -> list[str]:
        """Repairs so far: headings, byte order marks and unreadable rows left out, CR LF line ends."""
        return list(self._notes)

    def __iter__(self) -> Iterator[Pair]:
        """Read the pairs from the start.

        Yields:
            Every row except headings; an empty line is a pair of empty texts.

        Raises:
            DataError: a row is malformed, or more rows than may be left out; or two files have different numbers of
                lines.
        """
        return self._read_two() if self._rows is None else self._read_one(self._rows)

    def describe(self) -> str:
        """Describe the file format in one line, and show the first pair.

        Returns:
            Such as "pairs.csv: separated by ',', columns 1 and 2; first pair: 'Hallo' -> 'Hello'".
        """
        form = "aligned lines" if self._rows is None else self._rows.describe()
        names = " and ".join(str(self.paths[index - 1]) for index in self._order)
        first = next((pair for pair in self if pair.source or pair.target), None)
        shown = f"; first pair: {_shown(first.source)} -> {_shown(first.target)}" if first else ""
        return f"{names}: {form}{shown}"

    @property
    def _order(self) -> tuple[int, ...]:
        """1-based numbers of the files, that of the source first."""
        return tuple(column for column in self.columns if isinstance(column, int)) if len(self.paths) == 2 else (1,)

    def identity(self) -> tuple[Any, ...]:
        """Return values that change whenever the content changes.

        Returns:
            The identity of each file.
        """
        return tuple(table_identity(path) for path in self.paths)

    def fingerprint(self) -> dict[str, Any]:
        """Describe the content so that any change is detected.

        Returns:
            "columns", and "files": the name, size, sha256 and number of lines of each. JSON can hold it.
        """
        return {"columns": list(self.columns), "files": [fingerprint_table(path) for path in self.paths]}

    def _read_one(self, rows: RowFormat) -> Iterator[Pair]:
        column = self._group_column
        for pair in self._joined_rows(rows):
            yield pair if column is None or not pair.source else pair._replace(group=split_columns(pair.source)[column])

    def _joined_rows(self, rows: RowFormat) -> Iterator[Pair]:
        lines, faults, num_inner = self._opened(self.paths[0]), RowFaults(str(self.paths[0])), 0
        for record in rows.records(faults.watched(lines)):
            num_inner += record.end - record.line
            if record.line == self._header_line:
                continue
            faults.num_rows += 1
            try:
                faults.check(record)
                source, target = rows.cells(record.text, lines.name, record.line) if record.text else ("", "")
            except DataError as error:
                if not self._leaves_out_faults:
                    raise
                faults.add(record.line, error)
            else:
                yield Pair(source, target, record.line)
        self._note_faults(faults)
        self._note_lines(lines, num_inner)

    def _read_two(self) -> Iterator[Pair]:
        sides, faults = [self._opened(path) for path in self.paths], RowFaults(str(self.paths[0]))
        both = [RowFaults(lines.name) for lines in sides]
        texts = [each.watched(lines) for each, lines in zip(both, sides, strict=True)]
        source, target = (texts[number - 1] for number in self._order)
        end = object()
        for number, text in enumerate(source, start=1):
            other = next(target, end)
            if not isinstance(other, str):
                raise unequal(*self.paths)
            if number == self._header_line:
                continue
            faults.num_rows += 1
            try:
                for each in both:
                    each.check(Record(number, number, text))
            except DataError as error:
                faults.add(number, error)
            else:
                yield Pair(text, other, number)
        if next(target, end) is not end:
            raise unequal(*self.paths)
        self._note_faults(faults)
        for lines in sides:
            self._note_lines(lines)

    def _opened(self, path: Path) -> Lines:
        """Lines of a file, whose faults are refused at once unless they are left out."""
        if self._leaves_out_faults:
            return data_lines(path, bad_bytes="replace")
        return data_lines(path, nul="refuse")

    def _note_faults(self, faults: RowFaults) -> None:
        faults.check_share()
        if note := faults.note():
            self._note(note)

    def _note_lines(self, lines: Lines, num_inner: int = 0) -> None:
        """Note repairs of lines, of which some may end inside a quoted cell."""
        if lines.had_byte_order_mark:
            self._note(f"{lines.name}:1: byte order mark left out")
        # All rows of CSV end in CR LF, as RFC 4180 has it.
        is_csv = suffix_of(Path(lines.name)) == ".csv" and lines.num_carriage_returns == lines.num_lines - num_inner
        if lines.num_carriage_returns and not is_csv:
            self._note(f"{lines.name}: {lines.num_carriage_returns} of {lines.num_lines} lines end in CR LF")

    def _note(self, note: str) -> None:
        self._notes[note] = None


def find_pairs(paths: Sequence[Path], columns: Columns = (1, 2), leaves_out_faults: bool = False) -> PairFile:
    """Inspect data files and determine how to read them.

    Args:
        paths: a file of TSV, CSV, JSONL, Parquet or Arrow, or two files of text whose lines n belong together.
        columns: columns of source and target: 1-based numbers, or names of headings or keys; with two files, (2, 1)
            makes the second the source.
        leaves_out_faults: whether rows that cannot be read, such as those of a wrong width, are left out and noted, if
            they are at most `heedful.data.row_faults.MOST_SHARE` of all; else the first raises an error.

    Raises:
        DataError: a file is missing, empty, neither text nor a table, or lacks the requested columns.
        MissingExtra: a file is Parquet or Arrow, and pyarrow is not installed.
    """
    check_columns(paths, columns)
    for path in paths:
        check_data_file(path)
    if len(paths) == 2:
        return _find_two(paths, columns, leaves_out_faults)
    number, line = first_line(paths[0])
    return found_pairs(paths[0], row_format(paths[0], line, number, columns), number, leaves_out_faults)


def found_pairs(path: Path, rows: RowFormat, number: int, leaves_out_faults: bool = False) -> PairFile:
    """Open a file whose format is known.

    Args:
        path: the file.
        rows: format of its rows.
        number: 1-based number of its first line that is not empty.
        leaves_out_faults: as for `find_pairs`.

    Raises:
        DataError: its first row does not have this format, or there are no rows but headings.
    """
    first = next(record for record in rows.records(data_lines(path, nul="refuse")) if record.text)
    rows.cells(first.text, str(path), number)
    header_line = number if rows.has_header else 0
    return _not_only_header(PairFile([path], rows.columns, rows, header_line, leaves_out_faults), rows.has_header)


def check_columns(paths: Sequence[Path], columns: Columns) -> None:
    """Refuse columns that no data file could have.

    Args:
        paths: one file, or two aligned files.
        columns: 1-based columns of source and target.

    Raises:
        UsageError: there are not one or two files, or the columns are invalid.
    """
    if len(paths) not in (1, 2):
        raise UsageError(
            f"expected one file of pairs, or two aligned files, got {len(paths)}; "
            "an option such as --dev takes one file: give it twice for two"
        )
    allowed = "1,2 or 2,1 for two files" if len(paths) == 2 else "two different numbers from 1, or two names"
    are_known = len(paths) == 1 or set(columns) == {1, 2}
    if (
        len(set(columns)) != 2
        or any(column in ("", 0) or str(column).startswith("-") for column in columns)
        or not are_known
    ):
        raise UsageError(f"columns {columns[0]},{columns[1]}: expected {allowed}")


def row_format(path: Path, line: str, number: int, columns: Columns) -> RowFormat:
    """Distinguish JSONL, CSV and TSV by name and content; the first line determines keys, names and number of columns.

    Args:
        path: file that contains both sides.
        line: its first line that is not empty.
        number: that line's 1-based number.
        columns: 1-based columns of source and target.

    Raises:
        DataError: a requested column does not exist.
    """
    if is_json_lines(path, line):
        return JsonRows.of(line, columns, str(path), number)
    lines = first_lines(path, _SAMPLE_LINES)
    if columns in ((1, 2), (2, 1)) and suffix_of(path) not in (".csv", ".tsv") and LexiconRows.suits(lines):
        return LexiconRows((1, 2) if columns == (1, 2) else (2, 1))
    style = cell_style(path, lines)
    records = whole_records(lines, style)
    return ColumnRows.of(records[0], columns, str(path), number, style, records)


def _find_two(paths: Sequence[Path], columns: Columns, leaves_out_faults: bool) -> PairFile:
    for path, other in zip(paths, reversed(paths), strict=True):
        check_one_side(path, other, first_line(path)[1])
    source, target = (next(data_lines(paths[int(column) - 1])) for column in columns)
    has_header = is_header(source, target)
    return _not_only_header(PairFile(paths, columns, None, int(has_header), leaves_out_faults), has_header)


def check_one_side(path: Path, other: Path, line: str) -> None:
    """Refuse one of two aligned files if its name says that it contains both sides.

    Args:
        line: its first line that is not empty.

    Raises:
        DataError: the file is JSONL or a table, or has several columns.
    """
    # The content alone is no proof: a side of a corpus may be program code or JSON.
    suffix = suffix_of(path)
    separators = {".tsv": "\t", ".csv": ","}.get(suffix)
    if is_table(path) or suffix in _JSON_SUFFIXES or (separators and separators in line):
        raise DataError(f"{path}: holds both sides of its pairs; give it alone, not with {other}")


def _not_only_header(pairs: PairFile, has_header: bool) -> PairFile:
    if has_header and next(iter(pairs), None) is None:
        raise DataError(f"{pairs.paths[0]}: nothing but headings")
    return pairs


def first_line(path: Path) -> tuple[int, str]:
    """Find the first line of a data file that is not empty.

    Returns:
        Its 1-based number, and the line.

    Raises:
        DataError: there is none.
    """
    for number, line in enumerate(data_lines(path, nul="refuse"), start=1):
        if line:
            return number, line
    raise DataError(f"{path}: nothing but empty lines")


def is_json_lines(path: Path, first: str) -> bool:
    """Tell whether a file has a JSON object on each line, as tables are read.

    Args:
        path: the file.
        first: its first line that is not empty.
    """
    if is_table(path):
        return True
    # A tab inside a JSON string is always escaped, so a line with tabs that starts with a brace is a row of a TSV.
    looks_so = first.startswith("{") and first.rstrip().endswith("}") and "\t" not in first
    return looks_so or suffix_of(path) in _JSON_SUFFIXES


def _shown(text: str) -> str:
    text = shown_labels(text) if JOINT in text else text
    return repr(text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}...")


def group_references(pairs: Iterable[Pair]) -> list[tuple[str, list[str]]]:
    """Group pairs by source: evaluation items with their references.

    Returns:
        Each source with its distinct targets, both in order of first occurrence.

    Example:
        >>> group_references([Pair("a", "x", 1), Pair("b", "y", 2), Pair("a", "z", 3), Pair("a", "x", 4)])
        [('a', ['x', 'z']), ('b', ['y'])]
    """
    groups: dict[str, dict[str, None]] = {}
    for pair in pairs:
        groups.setdefault(pair.source, {})[pair.target] = None
    return [(source, list(targets)) for source, targets in groups.items()]
