"""Line formats of files that contain both sides: separated columns, or JSON objects."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast, final

from heedful.data.cells import TABS, CellStyle, Record, split_record
from heedful.data.text_columns import choose_columns, inflection_columns, is_header, is_id
from heedful.errors import DataError, did_you_mean
from heedful.text.columns import join_columns, named_column, requested_columns
from heedful.text.pronunciations import alternatives, are_in_ipa
from heedful.text.text_files import aligned_with

TRANSLATION: Final = "translation"
"""Key of translations by language, ``{"translation": {"de": ..., "en": ...}}``, as datasets often have them."""
Columns = tuple[int | str, int | str]
"""Columns of source and target: 1-based numbers, headings, or JSON keys; several of one side with "+" between them."""


@final
class RequestedColumns(tuple[int | str, int | str]):
    """Columns that someone has named, which are read as they are; any others leave the choice to headings and content.

    Example:
        >>> are_open((1, 2)), are_open(RequestedColumns((1, 2)))
        (True, False)
    """

    __slots__ = ()


def are_open(columns: Columns) -> bool:
    """Tell whether headings and content may say which columns are meant.

    Args:
        columns: columns of source and target.

    Returns:
        Whether they are the first two, and nobody has named them.
    """
    return columns == (1, 2) and not isinstance(columns, RequestedColumns)


_SHOWN_KEYS: Final = 5
_LONGEST_CODE: Final = 3
"""Number of letters of a code of a language, at most."""
# A valid UTF-8 file without NUL can still contain both as JSON \u escapes.
_BAD_IN_TEXT: Final = re.compile("[\0\ud800-\udfff]")


class RowFormat(ABC):
    """Format of a row, which splits it into source and target."""

    columns: Columns
    """Columns of source and target, as requested: 1-based numbers, or keys of JSON objects."""
    has_header: bool = False
    """Whether the first line names the columns."""
    names: tuple[str, str] = ("", "")
    """Names of the columns of source and target: headings, or keys; empty where there are none."""
    source_names: tuple[str, ...] = ()
    """Names of all columns that are joined to a source, or their numbers; empty where there are none."""
    has_ranks: bool = False
    """True where the first target of a source is its main one, as in a lexicon; elsewhere a later row is as good."""
    divides_targets: bool = False
    """True where commas stand between the pronunciations of a word, each of which is a row of its own."""
    separator: str = ""
    """Separator of several labels in a cell; empty where there is none."""
    has_label_sets: bool = False
    """Whether targets are sets of labels, joined as by `heedful.text.label_sets.joined_labels`."""

    def records(self, lines: Iterable[str]) -> Iterator[Record]:
        """Divide lines into rows; by default, each line is one.

        Yields:
            The rows, empty ones included.
        """
        return (Record(number, number, line) for number, line in enumerate(lines, start=1))

    @abstractmethod
    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        """Split a row into its cells.

        Args:
            line: text of a record; line breaks in cells are read as spaces.
            number: 1-based line number, for messages.

        Raises:
            DataError: the line does not have this format; the message names file:line.
        """

    @abstractmethod
    def describe(self) -> str:
        """Describe the format in a few words.

        Returns:
            Such as "separated by tabs, columns 1 and 2".
        """


@final
class ColumnRows(RowFormat):
    """Separated columns, the same number on every line."""

    def __init__(self, num_columns: int, source: Sequence[int], target: Sequence[int], style: CellStyle = TABS) -> None:
        """Store the format found in the first line.

        Args:
            num_columns: number of cells per line.
            source: 1-based columns that are joined to a source.
            target: 1-based columns that are joined to a target.
        """
        self.num_columns: Final = num_columns
        self.columns = (_joined_number(source), _joined_number(target))
        self._reason = ""
        self._style: Final = style
        self._source: Final = tuple(source)
        self._target: Final = tuple(target)

    @classmethod
    def of(
        cls,
        first: str,
        columns: Columns,
        name: str,
        number: int,
        style: CellStyle = TABS,
        sample: Sequence[str] = (),
    ) -> "ColumnRows":
        """Determine the number of columns, and find named columns, from the first line.

        Args:
            first: the first non-empty line.
            columns: columns of source and target: 1-based numbers, or headings in the first line; where nobody has
                named them, headings and content may say that others are meant.
            number: the line's 1-based number.
            sample: the first non-empty lines, in which identifiers are recognised.

        Raises:
            DataError: a requested column does not exist.
        """
        cells = style.split(first, name, number)
        source, target = (find_columns(column, cells, f"{name}:{number}") for column in columns)
        lenient = CellStyle(style.separator, "ordinary" if style.quotes == "ordinary" else "lenient")
        is_named = not all(str(column).replace("+", "").isdecimal() for column in columns)
        has_header, reason = is_named, ""
        if len(source) == len(target) == 1 and not is_named and not isinstance(columns, RequestedColumns):
            read = [cells, *map(lenient.split, sample[1:])]
            chosen = choose_columns(read, (source[0], target[0]))
            has_header, reason = chosen.has_header, chosen.reason
            source, target = (chosen.columns[0],), (chosen.columns[1],)
            if are_open(columns) and (inflection := inflection_columns(read)):
                source, target = inflection.source, (inflection.target,)
                has_header, reason = inflection.has_header, "word and features to a form, as UniMorph writes them"
        if len(cells) >= max(*source, *target):
            rows = cls(len(cells), source, target, style)
            heads = ("+".join(cells[n - 1] for n in source), "+".join(cells[n - 1] for n in target))
            # Codes of languages are words of others, and headings do not come again.
            recurs = max(map(len, heads)) <= _LONGEST_CODE and first in sample[1:]
            rows.has_header = has_header or (is_header(*heads) and not recurs)
            rows._reason = reason
            if len(target) == 1:
                rows._find_alternatives([*map(lenient.split, sample)])
            rows.names = heads if rows.has_header else ("", "")
            if len(source) > 1:
                shown = (cells[column - 1].strip() if rows.has_header else str(column) for column in source)
                rows.source_names = tuple(shown)
            return rows
        num_columns = len(cells)
        problem = f"{num_columns} column{'s' if num_columns > 1 else ''}, but {columns[0]},{columns[1]} were requested"
        marks = [mark for mark in ("|||", ",", ";", "|") if num_columns == 1 and mark in first]
        separator = "a tab" if style.separator == "\t" else repr(style.separator)
        advice = f"columns are separated by {separator}{f', not by {marks[0]!r}' if marks else ''}"
        other = aligned_with(Path(name)) if num_columns == 1 else None
        files = f"give both, such as {name} {other}" if other else "give both"
        raise DataError(f"{name}:{number}: {problem}; {advice}; for two aligned files, {files}")

    def _find_alternatives(self, rows: Sequence[Sequence[str]]) -> None:
        """Find out whether targets are pronunciations in the IPA, several of a word with commas between them."""
        whole = [cells for cells in rows[self.has_header :] if len(cells) == self.num_columns]
        words, phones = ([cells[side[0] - 1] for cells in whole] for side in (self._source, self._target))
        if are_in_ipa(words, phones):
            self.divide_targets()

    def divide_targets(self) -> None:
        """Divide targets at commas."""
        if len(self._target) == 1:
            self.divides_targets = self.has_ranks = True
            self._reason = "pronunciations in the IPA, those of one word with commas between them"

    def records(self, lines: Iterable[str]) -> Iterator[Record]:
        records = self._style.records(lines, self.num_columns)
        return chain.from_iterable(map(self._each_alternative, records)) if self.divides_targets else records

    def _each_alternative(self, record: Record) -> Iterator[Record]:
        """Yield a row for each pronunciation of a word; a row that cannot be read is left to `cells`."""
        try:
            cells = self._style.split(record.text)
        except DataError:
            cells = []
        column = self._target[0] - 1
        if len(cells) != self.num_columns or "," not in cells[column]:
            yield record
            return
        for one in alternatives(cells[column]):
            cells[column] = one
            yield record._replace(text=self._style.join(cells))

    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        cells = split_record(self._style, self.num_columns, line, name, number)
        source, target = (
            joined_cells((cells[column - 1].replace("\n", " ") for column in side), f"{name}:{number}")
            for side in (self._source, self._target)
        )
        return source, target

    def describe(self) -> str:
        named = zip(self.columns, self.names, strict=True)
        source, target = (f"{number} ({name})" if name else str(number) for number, name in named)
        reason = f"; {self._reason}" if self._reason else ""
        return f"{self._style.name}, columns {source} and {target}{reason}"


def joined_cells(cells: Iterable[str], where: str) -> str:
    """Join the cells of a side as `heedful.text.columns.join_columns` does.

    Args:
        where: file and line, for messages.

    Raises:
        DataError: a cell contains the separator.
    """
    try:
        return join_columns(cells)
    except ValueError as error:
        raise DataError(f"{where}: {error}; replace it") from None


def find_columns(column: int | str, names: Sequence[str], where: str) -> tuple[int, ...]:
    """Find the columns of a side.

    Args:
        column: a 1-based number or a name, or several with "+" between them.
        names: headings.
        where: file and line of the headings, for messages.

    Returns:
        Their 1-based numbers.

    Raises:
        DataError: a name does not exist, or a column is named twice.
    """
    parts = requested_columns(str(column), names)
    is_number = isinstance(column, int) or len(parts) > 1
    numbers = tuple(find_column(int(part) if is_number and part.isdecimal() else part, names, where) for part in parts)
    if len({*numbers}) < len(numbers) or 0 in numbers:
        raise DataError(f"{where}: columns {column}: expected different columns from 1")
    return numbers


def _joined_number(columns: Sequence[int]) -> int | str:
    return columns[0] if len(columns) == 1 else "+".join(map(str, columns))


def find_column(column: int | str, cells: Sequence[str], where: str) -> int:
    """Find a column by its name.

    Args:
        column: a 1-based number, which stays as it is, or a name.
        cells: headings.
        where: file and line of the headings, for messages.

    Returns:
        The 1-based number.

    Raises:
        DataError: the name does not exist.
    """
    if isinstance(column, int):
        return column
    heading = named_column(column, cells)
    if heading is None:
        raise DataError(f"{where}: no column {column!r}{did_you_mean(column, [cell.strip() for cell in cells])}")
    return cells.index(heading) + 1


@final
class JsonRows(RowFormat):
    """One JSON object per line, with the same two keys in each."""

    def __init__(self, source: Sequence[str], target: Sequence[str]) -> None:
        """Store the keys of a source and of a target, which are joined."""
        self._sides: Final = (tuple(source), tuple(target))
        self.columns = self.names = ("+".join(source), "+".join(target))
        self.source_names = tuple(source) if len(source) > 1 else ()
        self._others: tuple[str, ...] = ()

    @classmethod
    def of(cls, first: str, columns: Columns, name: str, number: int) -> "JsonRows":
        """Choose the keys from the first object.

        "source" and "target" if both exist, else the only two keys with strings that are no identifiers, or with
        strings or whole numbers; `columns` (2, 1) swaps them.
        Otherwise, keys are numbered in their order in the object.

        Args:
            first: the first non-empty line.
            columns: keys of source and target, or their 1-based numbers.
            number: the line's 1-based number.

        Raises:
            DataError: the line is not a JSON object, or a requested key does not exist.
        """
        row = parse_object(first, name, number)
        keys = list(row)
        texts = [key for key in keys if isinstance(row[key], str) and not is_id(key)]
        scalars = [key for key in keys if isinstance(row[key], str | int) and not is_id(key)]
        numbers = [column for column in columns if isinstance(column, int)]
        highest = max(numbers, default=0)
        if len(numbers) == 2 and highest == 2 and {"source", "target"} <= row.keys():
            keys = ["source", "target"]
        elif len(numbers) == 2 and highest == 2 and 2 in (len(texts), len(scalars)):
            keys = texts if len(texts) == 2 else scalars
        if len(keys) < highest:
            problem = f"{len(keys)} key{'' if len(keys) == 1 else 's'}, but {columns[0]},{columns[1]} were requested"
            raise DataError(f'{name}:{number}: {problem}; write {{"source": "...", "target": "..."}} on each line')
        source, target = (_keys(column, keys, f"{name}:{number}") for column in columns)
        rows = cls(source, target)
        if len(numbers) == 2:
            rows.columns = columns
            rows._others = tuple(key for key in texts if key not in (*source, *target))
        return rows

    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        row = parse_object(line, name, number)
        for key in (*self._sides[0], *self._sides[1]):
            if key not in row:
                raise DataError(f"{name}:{number}: no key {key!r}{did_you_mean(key, row)}")
        source, target = (
            joined_cells((text_of(row[key], key, row, name, number) for key in keys), f"{name}:{number}")
            for keys in self._sides
        )
        return source, target

    def describe(self) -> str:
        others = f"; also there: {', '.join(map(repr, self._others[:_SHOWN_KEYS]))}" if self._others else ""
        source, target = ("+".join(map(repr, keys)) for keys in self._sides)
        return f"keys {source} and {target}{others}"


def _keys(column: int | str, keys: Sequence[str], where: str) -> tuple[str, ...]:
    """Keys of a side: of a number, of a name, which the object may lack, or of several joined by "+".

    Raises:
        DataError: there are fewer keys.
    """
    if isinstance(column, str) and "+" not in column:
        language = column.removeprefix(f"{TRANSLATION}.")
        return (named_column(column, keys) or named_column(language, keys) or column,)
    numbers = find_columns(column, keys, where)
    if max(numbers) > len(keys):
        raise DataError(f"{where}: {len(keys)} keys, but {column} was requested")
    return tuple(keys[number - 1] for number in numbers)


def parse_object(line: str, name: str, number: int) -> dict[str, Any]:
    """Read a JSON object from a line.

    Args:
        line: the line.
        name: file, for messages.
        number: 1-based number of the line.

    Returns:
        The object; of {"translation": {...}} the inner one, as data sets of translations are often published.

    Raises:
        DataError: the line is no JSON object.
    """
    try:
        row: object = json.loads(line)
    except RecursionError:
        raise DataError(f"{name}:{number}: JSON nested too deeply") from None
    except json.JSONDecodeError as error:
        raise DataError(f"{name}:{number}:{error.colno}: not JSON: {error.msg}") from None
    except ValueError as error:  # Python refuses integers of thousands of digits
        raise DataError(f"{name}:{number}: invalid JSON: {error}") from None
    if not isinstance(row, dict):
        advice = f"; write one object a line: jq -c '.[]' {name}" if isinstance(row, list) else ""
        raise DataError(f"{name}:{number}: expected a JSON object, got {type(row).__name__}{advice}")
    pairs = cast(dict[str, Any], row)
    nested = pairs.get(TRANSLATION)
    return cast(dict[str, Any], nested) if isinstance(nested, dict) else pairs


def text_of(value: object, key: str, row: Sized, name: str, number: int) -> str:
    """Read a text from a JSON value.

    Args:
        value: a string, a whole number or a truth value.
        key: its key, for messages.
        row: the object that has it.
        name: file.
        number: 1-based line.

    Raises:
        DataError: the value is of another type, or contains what no text may.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):  # a label, for instance; a table of text has its digits, too
        return str(value)
    if not isinstance(value, str):
        advice = "; choose two keys by position with --columns, such as 2,3" if len(row) > 2 else ""
        raise DataError(f"{name}:{number}: key {key!r} holds {type(value).__name__}, expected a string{advice}")
    if bad := _BAD_IN_TEXT.search(value):
        kind = "NUL character" if bad[0] == "\0" else f"half a character ({bad[0]!a}, a lone surrogate)"
        raise DataError(f"{name}:{number}: {kind} in {key!r}; remove it")
    return value
