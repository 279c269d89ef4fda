"""One line of a file with both sides in it: columns with a separator between them, or a JSON object."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, final

from heedful.errors import DataError, did_you_mean

Columns = tuple[int | str, int | str]
"""Columns of source and target: 1-based numbers, or the names in a first row or of JSON keys."""

HEADER_WORDS: Final = frozenset(
    (
        "source target src tgt trg input output text translation reference sentence sentence1 sentence2 original "
        "translated question answer article summary document headline prompt completion word words phonemes phones "
        "pronunciation pinyin transliteration name normalized lang1 lang2 "
        "english german french spanish portuguese italian dutch polish czech russian ukrainian turkish arabic hebrew "
        "hindi vietnamese indonesian chinese mandarin cantonese japanese korean swedish danish finnish greek "
        "en de fr pt nl pl cs ru uk tr ar he hi vi zh ja ko sv da fi el "
        "en-us en-gb pt-br zh-cn zh-tw zh-hans zh-hant eng deu fra spa por rus ara zho jpn kor cmn "
        "原文 译文 譯文 源 目标 目標 源语言 目标语言 英文 中文 英语 汉语 德语 日语 拼音 输入 输出 文本 翻译 摘要 标题"
    ).split()
)
"""Words that, in both cells of a first row, make it a heading. Codes that are words (es, it, is, no) are left out."""

_QUOTED: Final = re.compile(r'"([^"]*(?:""[^"]*)*)"')
_TAB_CELL: Final = re.compile(r'(?:^|(?<=\t))(?:"[^"]*(?:""[^"]*)*"(?=\t|$)|[^\t]*)')
_OPEN_QUOTE: Final = "a quoted cell goes on in the next line; put spaces for the line breaks inside cells"
_AFTER_QUOTE: Final = "text behind a closing quote; double the quotes inside a quoted cell"
# JSON can spell both as \u escapes in a file without NUL that is valid UTF-8.
_BAD_IN_TEXT: Final = re.compile("[\0\ud800-\udfff]")


def is_header(source: str, target: str) -> bool:
    """Say whether a first row names the columns.

    Args:
        source: its source cell.
        target: its target cell.

    Returns:
        Whether both are well-known headings, and not the same one.

    Example:
        >>> is_header("English", "German"), is_header("word", "Wort")
        (True, False)
    """
    cells = {source.strip().casefold(), target.strip().casefold()}
    return len(cells) == 2 and all(cell in HEADER_WORDS or _is_compound(cell) for cell in cells)


def _is_compound(cell: str) -> bool:
    """Whether headings are joined by underscores in it, such as in "source_text"."""
    return "_" in cell and HEADER_WORDS.issuperset(cell.split("_"))


class RowFormat(ABC):
    """Format of a line: how it becomes a source and a target."""

    columns: Columns
    """Columns of source and target: 1-based numbers, or keys of JSON objects as they were asked for."""
    has_header: bool = False
    """Whether the first line names the columns."""

    @abstractmethod
    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        """Split a line into its cells.

        Args:
            line: text without its line end.
            name: the file, for messages.
            number: 1-based line number, for messages.

        Returns:
            The source and the target.

        Raises:
            DataError: the line is not of this format; the message names file:line.
        """

    @abstractmethod
    def describe(self) -> str:
        """Say in a few words what is read.

        Returns:
            Such as "separated by tabs, columns 1 and 2".
        """


@final
@dataclass(frozen=True)
class CellStyle:
    """The way in which the cells of a line are written."""

    separator: str
    quotes: Literal["ordinary", "lenient", "strict"]
    """Whether quotes are ordinary, or stand around a cell and are doubled inside; "strict" refuses one not closed."""

    @property
    def name(self) -> str:
        """The style in words."""
        separator = "tabs" if self.separator == "\t" else repr(self.separator)
        return f"separated by {separator}{', quoted as by Excel' if self.quotes == 'lenient' else ''}"

    def split(self, line: str, name: str = "", number: int = 0) -> list[str]:
        """Cut a line into cells.

        Args:
            line: text without its line end.
            name: the file, for messages.
            number: 1-based line number, for messages.

        Returns:
            The cells, without the quotes around them.

        Raises:
            DataError: a quote is not closed, or text follows a closing one; of strict styles only.

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
        lines: the first ones that are not empty.

    Returns:
        The style by which all lines have the same number of cells, two or more, or else the first line the most.
    """
    styles = [CellStyle(separator, "lenient") for separator in ",;\t"]
    counts = [[len(style.split(line)) for line in lines] for style in styles]
    even = [len(set(count)) == 1 and count[0] > 1 for count in counts]
    best = max(range(len(styles)), key=lambda index: (even[index], counts[index][0]))
    return CellStyle(styles[best].separator, "strict")


def is_quoted_tsv(lines: Sequence[str]) -> bool:
    """Tell a tab-separated file in which quotes stand around cells, as Excel and pandas write it, from plain text.

    Args:
        lines: the first ones that are not empty.

    Returns:
        Whether every cell with a quote in it is quoted for a reason: it holds a tab, a quote, or a comma where no cell
        without quotes has any; and every line then has as many cells, two or more.
    """
    counts = {len(QUOTED_TABS.split(line)) for line in lines}
    if len(counts) != 1 or counts == {1}:
        return False
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


@final
class ColumnRows(RowFormat):
    """Columns with a separator between them, as many on every line."""

    def __init__(self, num_columns: int, columns: tuple[int, int], style: CellStyle = TABS) -> None:
        """Remember what the first line has shown.

        Args:
            num_columns: cells of each line.
            columns: 1-based columns of source and target.
            style: how cells are written.
        """
        self.num_columns: Final = num_columns
        self.columns = columns
        self._names = ("", "")
        self._style: Final = style
        self._source, self._target = columns[0] - 1, columns[1] - 1

    @classmethod
    def of(cls, first: str, columns: Columns, name: str, number: int, style: CellStyle = TABS) -> "ColumnRows":
        """Take the number of columns, and names asked for, from the first line.

        Args:
            first: the first line that is not empty.
            columns: columns of source and target: 1-based numbers, or names that stand in the first line.
            name: the file, for messages.
            number: the line's 1-based number.
            style: how cells are written.

        Returns:
            The format.

        Raises:
            DataError: there are fewer columns than asked for, or none of that name.
        """
        cells = style.split(first, name, number)
        source, target = (_column(column, cells, name, number) for column in columns)
        if len(cells) >= max(source, target):
            rows = cls(len(cells), (source, target), style)
            heads = cells[source - 1], cells[target - 1]
            rows.has_header = any(isinstance(column, str) for column in columns) or is_header(*heads)
            rows._names = heads if rows.has_header else ("", "")
            return rows
        num_columns = len(cells)
        problem = f"{num_columns} column{'s' if num_columns > 1 else ''}, but {source},{target} are wanted"
        marks = [mark for mark in ("|||", ",", ";", "|") if num_columns == 1 and mark in first]
        separator = "a tab" if style.separator == "\t" else repr(style.separator)
        advice = f"columns are separated by {separator}{f', not by {marks[0]!r}' if marks else ''}"
        raise DataError(f"{name}:{number}: {problem}; {advice}; for two aligned files, give both")

    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        cells = self._style.split(line, name, number)
        if len(cells) != self.num_columns:
            problem = f"{len(cells)} column{'s' if len(cells) > 1 else ''}, the lines before have {self.num_columns}"
            mark = "tabs" if self._style.separator == "\t" else f"separators {self._style.separator!r}"
            raise DataError(f"{name}:{number}: {problem}; put the same number of {mark} in every line")
        return cells[self._source], cells[self._target]

    def describe(self) -> str:
        named = zip(self.columns, self._names, strict=True)
        source, target = (f"{number} ({name})" if name else str(number) for number, name in named)
        return f"{self._style.name}, columns {source} and {target}"


def _column(column: int | str, cells: Sequence[str], name: str, number: int) -> int:
    """The number of a column that may be named.

    Raises:
        DataError: there is no such name.
    """
    if isinstance(column, int):
        return column
    names = [cell.strip() for cell in cells]
    if column in names:
        return names.index(column) + 1
    raise DataError(f"{name}:{number}: no column {column!r}{did_you_mean(column, names)}")


@final
class JsonRows(RowFormat):
    """One JSON object a line, the same two keys in each."""

    def __init__(self, source_key: str, target_key: str) -> None:
        self.source_key: Final = source_key
        self.target_key: Final = target_key
        self.columns = (source_key, target_key)

    @classmethod
    def of(cls, first: str, columns: Columns, name: str, number: int) -> "JsonRows":
        """Choose the keys from the first object.

        "source" and "target" where there are both, else the only two keys that hold strings; `columns` (2, 1) swaps
        them. Failing that, keys are numbered in the order in which they stand.

        Args:
            first: the first line that is not empty.
            columns: keys of source and target, or their 1-based numbers.
            name: the file, for messages.
            number: the line's 1-based number.

        Returns:
            The format.

        Raises:
            DataError: the line is no object, or has fewer keys than asked for.
        """
        row = _parse(first, name, number)
        keys = list(row)
        texts = [key for key in keys if isinstance(row[key], str)]
        numbers = [column for column in columns if isinstance(column, int)]
        highest = max(numbers, default=0)
        if len(numbers) == 2 and highest == 2 and {"source", "target"} <= row.keys():
            keys = ["source", "target"]
        elif len(numbers) == 2 and highest == 2 and len(texts) == 2:
            keys = texts
        if len(keys) < highest:
            problem = f"{len(keys)} key{'' if len(keys) == 1 else 's'}, but {columns[0]},{columns[1]} are wanted"
            raise DataError(f'{name}:{number}: {problem}; write {{"source": "...", "target": "..."}} on each line')
        source, target = (keys[column - 1] if isinstance(column, int) else column for column in columns)
        rows = cls(source, target)
        if len(numbers) == 2:
            rows.columns = columns
        return rows

    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        row = _parse(line, name, number)
        return _text(row, self.source_key, name, number), _text(row, self.target_key, name, number)

    def describe(self) -> str:
        return f"keys {self.source_key!r} and {self.target_key!r}"


def _parse(line: str, name: str, number: int) -> dict[str, Any]:
    try:
        row: object = json.loads(line)
    except RecursionError:
        raise DataError(f"{name}:{number}: JSON nested too deeply") from None
    except json.JSONDecodeError as error:
        raise DataError(f"{name}:{number}:{error.colno}: not JSON: {error.msg}") from None
    except ValueError as error:  # an integer of thousands of digits
        raise DataError(f"{name}:{number}: not JSON that can be read: {error}") from None
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
    if not isinstance(text, str):
        advice = "; choose two keys by their place with --columns, such as 2,3"
        raise DataError(f"{name}:{number}: key {key!r} holds {type(text).__name__}, expected a string{advice}")
    if bad := _BAD_IN_TEXT.search(text):
        kind = "NUL character" if bad[0] == "\0" else f"half a character ({bad[0]!a}, a lone surrogate)"
        raise DataError(f"{name}:{number}: {kind} in {key!r}; remove it")
    return text
