"""Rows of separated cells: separator, quoting, and rows of several lines where a quoted cell has line breaks."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Literal, NamedTuple, final

from heedful.data.text_columns import is_heading, is_id
from heedful.errors import DataError

_QUOTED: Final = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"')
_TAB_CELL: Final = re.compile(r'(?:^|(?<=\t))(?:"[^"]*+(?:""[^"]*+)*+"(?=\t|$)|[^\t]*+)')
_OPEN_QUOTE: Final = "a quoted cell is not closed; close it, or double the quote where it is part of the text"
_AFTER_QUOTE: Final = "text after a closing quote; double the quotes inside a quoted cell"
MOST_LINES: Final = 1_000
"""Largest number of lines of a quoted cell; a quote that opens more is taken for a fault."""


class Record(NamedTuple):
    """Row of a file."""

    line: int
    """1-based number of its first line."""
    end: int
    """1-based number of its last line, which is another one if a quoted cell has line breaks."""
    text: str
    """Its lines, joined by line breaks."""


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
                    fault = _OPEN_QUOTE if line.count('"', start) % 2 else _AFTER_QUOTE
                    raise DataError(f"{name}:{number}: {fault}")
                end = line.find(self.separator, start)
                end = len(line) if end < 0 else end
                cells.append(line[start:end])
            if end == len(line):
                return cells
            start = end + 1

    def join(self, cells: Sequence[str]) -> str:
        """Write cells as a line that `split` cuts into them again.

        Example:
            >>> CellStyle(",", "strict").join(["a", 'b, "c" d'])
            'a,"b, ""c"" d"'
        """
        if self.quotes == "ordinary":
            return self.separator.join(cells)
        return self.separator.join(map(self._quoted, cells))

    def _quoted(self, cell: str) -> str:
        needs_quotes = self.separator in cell or '"' in cell
        return '"' + cell.replace('"', '""') + '"' if needs_quotes else cell

    def records(self, lines: Iterable[str], num_cells: int = 0) -> Iterator[Record]:
        """Join lines where a quoted cell has line breaks.

        Args:
            num_cells: number of cells of a row; lines that make no such row are left apart. 0 = any number.

        Yields:
            The rows; a row that is not complete at the end of the lines is left apart, too.
        """
        remaining, waiting, number = iter(lines), deque[str](), 0
        while (line := waiting.popleft() if waiting else next(remaining, None)) is not None:
            number += 1
            num_more = 0
            if self.quotes != "ordinary" and line.count('"') % 2 and self.is_open(line):
                num_more = self._num_more(line, waiting, remaining, num_cells)
            if num_more:
                line = "\n".join([line, *(waiting.popleft() for _ in range(num_more))])
            yield Record(number, number + num_more, line)
            number += num_more

    def is_open(self, line: str) -> bool:
        """Tell whether a quoted cell begins in a line and does not end there."""
        start = 0
        while start >= 0:
            quoted = _QUOTED.match(line, start)
            if quoted and line[quoted.end() : quoted.end() + 1] in ("", self.separator):
                start = quoted.end() + 1 if quoted.end() < len(line) else -1
            elif line.startswith('"', start):
                return line.count('"', start) % 2 == 1
            else:
                start = line.find(self.separator, start) + 1 or -1
        return False

    def _num_more(self, line: str, waiting: deque[str], remaining: Iterator[str], num_cells: int) -> int:
        """Number of further lines that complete a row, 0 if none do; lines that are read for it are left waiting."""
        for index in range(MOST_LINES):
            if index == len(waiting):
                other = next(remaining, None)
                if other is None:
                    return 0
                waiting.append(other)
            if waiting[index].count('"') % 2:  # closes the cell
                text = "\n".join([line, *islice(waiting, index + 1)])
                return (
                    0 if num_cells and len(CellStyle(self.separator, "lenient").split(text)) != num_cells else index + 1
                )
        return 0


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
    styles = [CellStyle(separator, "lenient") for separator in ",;\t|"]
    counts = [[len(style.split(text)) for text in whole_records(lines, style)] for style in styles]
    even = [len(set(count)) == 1 and count[0] > 1 for count in counts]
    best = max(range(len(styles)), key=lambda index: (even[index], counts[index][0]))
    return CellStyle(styles[best].separator, "strict")


def headed_style(lines: Sequence[str]) -> CellStyle | None:
    """Recognise a file of commas or other separators without the name of one, by its headings.

    Args:
        lines: the first non-empty lines.

    Returns:
        The style, if the first row has well-known headings alone, such as "image,caption"; else None.
    """
    style = csv_style(lines)
    cells = [cell.strip() for cell in CellStyle(style.separator, "lenient").split(lines[0])] if lines else []
    return style if len(cells) > 1 and all(is_heading(cell) or is_id(cell) for cell in cells) else None


def whole_records(lines: Sequence[str], style: CellStyle) -> list[str]:
    """Divide the first lines of a file into rows.

    Returns:
        Those that are not empty, at least one, without a last one that is cut by the end of the lines.
    """
    records = [record.text for record in style.records(lines) if record.text]
    is_cut = len(records) > 1 and style.is_open(records[-1])
    return records[:-1] if is_cut else records


def is_quoted_tsv(lines: Sequence[str]) -> bool:
    """Tell whether a tab-separated file quotes its cells, as Excel and pandas do.

    Args:
        lines: the first non-empty lines.

    Returns:
        Whether every cell is in quotes but for whole numbers, on at least two lines; or every cell with a quote needs
        its quotes (it contains a tab, a quote, a line break, or a comma, which no unquoted cell contains). All rows
        then have the same number of cells, two or more, if need be after joining lines of quoted cells.
    """
    counts = {len(QUOTED_TABS.split(line)) for line in lines}
    if len(counts) != 1:
        lines = whole_records(lines, QUOTED_TABS)
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
            elif not {*'\t"\n'}.isdisjoint(quoted[1]):
                has_reason = True
            elif "," in quoted[1]:
                is_by_comma = True
            else:
                return False
    return (has_reason or is_by_comma) and not (is_by_comma and has_bare_comma)


def _is_all_quoted(line: str) -> bool:
    return all(_QUOTED.fullmatch(cell) or cell.isdecimal() for cell in _TAB_CELL.findall(line))


def cell_style(path: Path, lines: Sequence[str]) -> CellStyle:
    """Choose separator and quoting of the cells of a file.

    Args:
        path: the file; .csv is RFC 4180 with any separator, else tabs separate cells.
        lines: its first lines that are not empty.
    """
    if suffix_of(path) == ".csv":
        return csv_style(lines)
    if not any("\t" in line for line in lines) and (style := headed_style(lines)) is not None:
        return style
    return QUOTED_TABS if is_quoted_tsv(lines) else TABS


def split_record(style: CellStyle, num_columns: int, text: str, name: str, number: int) -> list[str]:
    """Cut a row into cells.

    Args:
        num_columns: number of cells that it must have.
        text: the row.
        name: file, for messages.
        number: 1-based number of its first line.

    Raises:
        DataError: it has another number of cells.
    """
    cells = style.split(text, name, number)
    if len(cells) != num_columns:
        problem = f"{len(cells)} column{'s' if len(cells) > 1 else ''}, the lines before have {num_columns}"
        mark = "tabs" if style.separator == "\t" else f"separators {style.separator!r}"
        raise DataError(f"{name}:{number}: {problem}; put the same number of {mark} in every line")
    return cells


def suffix_of(path: Path) -> str:
    """Return the suffix of a file in lower case, without that of gzip."""
    return Path(path.name.removesuffix(".gz")).suffix.lower()
