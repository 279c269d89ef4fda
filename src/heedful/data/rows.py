"""Line formats of files that contain both sides: separated columns, or JSON objects."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast, final

from heedful.data.text_columns import ChosenColumns, choose_columns, is_header, is_id
from heedful.errors import DataError, did_you_mean
from heedful.text.text_files import aligned_with

Columns = tuple[int | str, int | str]
"""Columns of source and target: 1-based numbers, headings, or JSON keys."""

_QUOTED: Final = re.compile(r'"([^"]*(?:""[^"]*)*)"')
_TAB_CELL: Final = re.compile(r'(?:^|(?<=\t))(?:"[^"]*(?:""[^"]*)*"(?=\t|$)|[^\t]*)')
_SHOWN_KEYS: Final = 5
_OPEN_QUOTE: Final = "a quoted cell continues on the next line; replace line breaks inside cells by spaces"
_AFTER_QUOTE: Final = "text after a closing quote; double the quotes inside a quoted cell"
# A valid UTF-8 file without NUL can still contain both as JSON \u escapes.
_BAD_IN_TEXT: Final = re.compile("[\0\ud800-\udfff]")


class RowFormat(ABC):
    """Format of a line, which splits it into source and target."""

    columns: Columns
    """Columns of source and target, as requested: 1-based numbers, or keys of JSON objects."""
    has_header: bool = False
    """Whether the first line names the columns."""
    names: tuple[str, str] = ("", "")
    """Names of the columns of source and target: headings, or keys; empty where there are none."""

    @abstractmethod
    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        """Split a line into its cells.

        Args:
            line: text without its line end.
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
@dataclass(frozen=True)
class CellStyle:
    """Separator and quoting of the cells of a line."""

    separator: str
    quotes: Literal["ordinary", "lenient", "strict"]
    """Quoting: none, or around cells with quotes inside doubled; "strict" refuses an unclosed quote."""

    @property
    def name(self) -> str:
        """Description of the style."""
        separator = "tabs" if self.separator == "\t" else repr(self.separator)
        return f"separated by {separator}{', quoted as by Excel' if self.quotes == 'lenient' else ''}"

    def split(self, line: str, name: str = "", number: int = 0) -> list[str]:
        """Cut a line into cells.

        Args:
            line: text without its line end.
            number: 1-based line number, for messages.

        Returns:
            The cells, without the quotes around them.

        Raises:
            DataError: a quote is not closed, or text follows a closing quote; only in strict styles.

        Example:
            >>> CellStyle(",", "strict").split('a,"b, ""c"" d",')
            ['a', 'b, "c" d', '']
        """
        if self.quotes == "ordinary" or '"' not in line:
            return line.split(self.separator)
        cells: list[str] = []
        start = 0
        while True:
            quoted = _QUOTED.match(line, start)
            if quoted and line[quoted.end() : quoted.end() + 1] in ("", self.separator):
                cells.append(quoted[1].replace('""', '"'))
                end = quoted.end()
            else:
                if self.quotes == "strict" and line.startswith('"', start):
                    is_open = line.count('"', start) % 2 == 1
                    raise DataError(f"{name}:{number}: {_OPEN_QUOTE if is_open else _AFTER_QUOTE}")
                end = line.find(self.separator, start)
                end = len(line) if end < 0 else end
                cells.append(line[start:end])
            if end == len(line):
                return cells
            start = end + 1


TABS: Final = CellStyle("\t", "ordinary")
QUOTED_TABS: Final = CellStyle("\t", "lenient")


def csv_style(lines: Sequence[str]) -> CellStyle:
    """Choose the separator of a CSV file, RFC 4180; Excel writes semicolons where commas are decimal points.

    Args:
        lines: the first non-empty lines.

    Returns:
        The style in which all lines have the same number of cells, two or more; else the one with the most cells in the
        first line.
    """
    styles = [CellStyle(separator, "lenient") for separator in ",;\t"]
    counts = [[len(style.split(line)) for line in lines] for style in styles]
    even = [len(set(count)) == 1 and count[0] > 1 for count in counts]
    best = max(range(len(styles)), key=lambda index: (even[index], counts[index][0]))
    return CellStyle(styles[best].separator, "strict")


def is_quoted_tsv(lines: Sequence[str]) -> bool:
    """Tell whether a tab-separated file quotes its cells, as Excel and pandas do.

    Args:
        lines: the first non-empty lines.

    Returns:
        Whether every cell is in quotes but for whole numbers, on at least two lines; or every cell with a quote needs
        its quotes (it contains a tab, a quote, or a comma, which no unquoted cell contains). All lines then have the
        same number of cells, two or more.
    """
    counts = {len(QUOTED_TABS.split(line)) for line in lines}
    if len(counts) != 1 or counts == {1}:
        return False
    if len(lines) > 1 and all('"' in line and _is_all_quoted(line) for line in lines):
        return True
    has_reason, is_by_comma, has_bare_comma = False, False, False
    for line in lines:
        for cell in _TAB_CELL.findall(line) if '"' in line else line.split("\t"):
            if '"' not in cell:
                has_bare_comma = has_bare_comma or "," in cell
            elif not (quoted := _QUOTED.fullmatch(cell)):
                return False
            elif "\t" in quoted[1] or '"' in quoted[1]:
                has_reason = True
            elif "," in quoted[1]:
                is_by_comma = True
            else:
                return False
    return (has_reason or is_by_comma) and not (is_by_comma and has_bare_comma)


def _is_all_quoted(line: str) -> bool:
    return all(_QUOTED.fullmatch(cell) or cell.isdecimal() for cell in _TAB_CELL.findall(line))


@final
class ColumnRows(RowFormat):
    """Separated columns, the same number on every line."""

    def __init__(self, num_columns: int, columns: tuple[int, int], style: CellStyle = TABS) -> None:
        """Store the format found in the first line.

        Args:
            num_columns: number of cells per line.
            columns: 1-based columns of source and target.
        """
        self.num_columns: Final = num_columns
        self.columns = columns
        self._reason = ""
        self._style: Final = style
        self._source, self._target = columns[0] - 1, columns[1] - 1

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
            columns: columns of source and target: 1-based numbers, or headings in the first line; (1, 2) leaves out
                columns of identifiers.
            number: the line's 1-based number.
            sample: the first non-empty lines, in which identifiers are recognised.

        Raises:
            DataError: a requested column does not exist.
        """
        cells = style.split(first, name, number)
        source, target = (_column(column, cells, name, number) for column in columns)
        lenient = CellStyle(style.separator, "ordinary" if style.quotes == "ordinary" else "lenient")
        is_named = any(isinstance(column, str) for column in columns)
        chosen = ChosenColumns((source, target))
        if not is_named:
            chosen = choose_columns([cells, *map(lenient.split, sample[1:])], (source, target))
        source, target = chosen.columns
        if len(cells) >= max(source, target):
            rows = cls(len(cells), (source, target), style)
            heads = cells[source - 1], cells[target - 1]
            rows.has_header = is_named or chosen.has_header or is_header(*heads)
            rows._reason = chosen.reason
            rows.names = heads if rows.has_header else ("", "")
            return rows
        num_columns = len(cells)
        problem = f"{num_columns} column{'s' if num_columns > 1 else ''}, but {source},{target} were requested"
        marks = [mark for mark in ("|||", ",", ";", "|") if num_columns == 1 and mark in first]
        separator = "a tab" if style.separator == "\t" else repr(style.separator)
        advice = f"columns are separated by {separator}{f', not by {marks[0]!r}' if marks else ''}"
        other = aligned_with(Path(name)) if num_columns == 1 else None
        files = f"give both, such as {name} {other}" if other else "give both"
        raise DataError(f"{name}:{number}: {problem}; {advice}; for two aligned files, {files}")

    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        cells = self._style.split(line, name, number)
        if len(cells) != self.num_columns:
            problem = f"{len(cells)} column{'s' if len(cells) > 1 else ''}, the lines before have {self.num_columns}"
            mark = "tabs" if self._style.separator == "\t" else f"separators {self._style.separator!r}"
            raise DataError(f"{name}:{number}: {problem}; put the same number of {mark} in every line")
        return cells[self._source], cells[self._target]

    def describe(self) -> str:
        named = zip(self.columns, self.names, strict=True)
        source, target = (f"{number} ({name})" if name else str(number) for number, name in named)
        reason = f"; {self._reason}" if self._reason else ""
        return f"{self._style.name}, columns {source} and {target}{reason}"


def _column(column: int | str, cells: Sequence[str], name: str, number: int) -> int:
    """Number of a column, found by name if it is given by name.

    Raises:
        DataError: the name does not exist.
    """
    if isinstance(column, int):
        return column
    names = [cell.strip() for cell in cells]
    if column in names:
        return names.index(column) + 1
    raise DataError(f"{name}:{number}: no column {column!r}{did_you_mean(column, names)}")


@final
class JsonRows(RowFormat):
    """One JSON object per line, with the same two keys in each."""

    def __init__(self, source_key: str, target_key: str) -> None:
        self.source_key: Final = source_key
        self.target_key: Final = target_key
        self.columns = self.names = (source_key, target_key)
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
        row = _parse(first, name, number)
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
        source, target = (keys[column - 1] if isinstance(column, int) else column for column in columns)
        rows = cls(source, target)
        if len(numbers) == 2:
            rows.columns = columns
            rows._others = tuple(key for key in texts if key not in (source, target))
        return rows

    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        row = _parse(line, name, number)
        return _text(row, self.source_key, name, number), _text(row, self.target_key, name, number)

    def describe(self) -> str:
        others = f"; also there: {', '.join(map(repr, self._others[:_SHOWN_KEYS]))}" if self._others else ""
        return f"keys {self.source_key!r} and {self.target_key!r}{others}"


def _parse(line: str, name: str, number: int) -> dict[str, Any]:
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
    nested = pairs.get("translation")
    # Data sets of translations are often published as {"translation": {"de": ..., "en": ...}}.
    return cast(dict[str, Any], nested) if isinstance(nested, dict) else pairs


def _text(row: dict[str, Any], key: str, name: str, number: int) -> str:
    if key not in row:
        raise DataError(f"{name}:{number}: no key {key!r}{did_you_mean(key, row)}")
    text = row[key]
    if isinstance(text, bool):
        return str(text).lower()
    if isinstance(text, int):  # a label, for instance; a table of text has its digits, too
        return str(text)
    if not isinstance(text, str):
        advice = "; choose two keys by position with --columns, such as 2,3" if len(row) > 2 else ""
        raise DataError(f"{name}:{number}: key {key!r} holds {type(text).__name__}, expected a string{advice}")
    if bad := _BAD_IN_TEXT.search(text):
        kind = "NUL character" if bad[0] == "\0" else f"half a character ({bad[0]!a}, a lone surrogate)"
        raise DataError(f"{name}:{number}: {kind} in {key!r}; remove it")
    return text
