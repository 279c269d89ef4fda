"""Tables with results added: each row of a table as it was, in order, and behind its columns those of the results."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path
from typing import Any, Final, final

from heedful.data.cells import CellStyle, cell_style, whole_records
from heedful.data.corpus import first_line, is_json_lines
from heedful.data.rows import parse_object
from heedful.data.table_forms import Form
from heedful.data.tables import check_data_file, data_lines, is_columnar, table_batches
from heedful.data.text_columns import looks_like_headings
from heedful.errors import DataError, MissingExtra, did_you_mean
from heedful.text.columns import named_column, requested_columns

RowsTest = Callable[[Sequence[Sequence[str]]], bool]
_SAMPLE_LINES: Final = 1000
_CHUNK_ROWS: Final = 8192
COMMAS: Final = CellStyle(",", "lenient")


@final
@dataclass(frozen=True)
class TableRow:
    """Row of a table."""

    values: Mapping[str, Any]
    """Values by heading or key; where there are no headings, by number."""
    line: int
    """1-based line, or number of the row."""
    cells: tuple[str, ...] = ()
    """Cells of a row of columns, any number of them."""
    fault: str = ""
    """Why the row cannot be read; empty = it can."""


@final
class AnsweredTable:
    """Table whose rows are read, and written again with results."""

    def __init__(self, path: Path, known: Sequence[str] = (), are_headed: RowsTest | None = None) -> None:
        """Inspect the file.

        Args:
            known: names of columns by which a first row is recognised as one of headings, besides the usual ones.
            are_headed: further test of whether the first of some rows has headings.

        Raises:
            DataError: the file is missing, empty, or no table.
        """
        check_data_file(path)
        self.path: Final = path
        number, line = first_line(path)
        self.is_json: Final = is_json_lines(path, line)
        self.style = COMMAS
        self.has_headings = True
        if self.is_json:
            self.names: tuple[str, ...] = tuple(parse_object(line, str(path), number))
            return
        sample = [text for text in islice(data_lines(path, bad_bytes="replace"), _SAMPLE_LINES) if text]
        style = cell_style(path, sample)
        self.style = CellStyle(style.separator, "lenient") if style.quotes == "strict" else style
        rows = [self.style.split(text) for text in whole_records(sample, style)]
        heads = [cell.strip() for cell in rows[0]]
        is_known = not {name.casefold() for name in known if name}.isdisjoint(map(str.casefold, heads))
        body = [row for row in rows if len(row) == len(rows[0])]
        self.has_headings = is_known or looks_like_headings(body) or (are_headed is not None and are_headed(body))
        self.names = tuple(rows[0]) if self.has_headings else tuple(str(1 + index) for index in range(len(rows[0])))

    def __iter__(self) -> Iterator[TableRow]:
        """Read the rows, headings left out; a row that is no object, or of another width, has a fault."""
        lines = data_lines(self.path, bad_bytes="replace")
        if self.is_json:
            for number, line in enumerate(lines, start=1):
                if line:
                    try:
                        yield TableRow(parse_object(line, str(self.path), number), number)
                    except DataError as error:
                        yield TableRow({}, number, fault=str(error))
            return
        is_first = self.has_headings
        for record in self.style.records(lines, len(self.names)):
            if not record.text:
                continue
            if is_first:
                is_first = False
                continue
            cells = tuple(self.style.split(record.text))
            fault = (
                "" if len(cells) == len(self.names) else f"{len(cells)} columns, where others have {len(self.names)}"
            )
            names = (*self.names, *(str(1 + index) for index in range(len(self.names), len(cells))))
            values = dict(zip(names, cells, strict=False))
            yield TableRow(values, record.line, cells, fault and f"{self.path}:{record.line}: {fault}")

    def column(self, name: str) -> tuple[str, ...]:
        """Find columns by name or number.

        Args:
            name: one, or several joined by "+".

        Returns:
            Their names.

        Raises:
            DataError: the table lacks one.
        """
        columns: list[str] = []
        for part in requested_columns(name, self.names):
            heading = named_column(part, self.names)
            if heading is None and part.isdecimal() and 1 <= int(part) <= len(self.names):
                heading = self.names[int(part) - 1]
            if heading is None:
                names = [each.strip() for each in self.names]
                raise DataError(f"{self.path}: no column {part!r}{did_you_mean(part, names)}; name it with --columns")
            columns.append(heading)
        return tuple(columns)

    def new_names(self, names: Sequence[str]) -> dict[str, str]:
        """Name the columns of results: as they are called, or where the table has one, "predicted_" before it.

        Returns:
            The name in the table of each.
        """
        is_taken = self.has_headings and not {*self.names}.isdisjoint(names)
        return {name: f"predicted_{name}" if is_taken else name for name in names}


@final
class TableWriter:
    """Writer of a table in one form."""

    def __init__(self, table: AnsweredTable, form: Form, names: Sequence[str]) -> None:
        """Store what is written.

        Args:
            table: the table that is answered.
            form: form of the output, of text.
            names: columns of results.
        """
        self._table: Final = table
        self._form: Final = form
        self._names: Final = table.new_names(names)
        own = "," if table.is_json or table.style.separator == "\t" else table.style.separator
        self._separator: Final = "\t" if form == "tsv" else own
        self._is_plain: Final = form == "tsv" and table.style.quotes == "ordinary"

    def head(self) -> str:
        """Return the line of headings; empty if there is none."""
        if self._form == "jsonl" or not self._table.has_headings:
            return ""
        return self._line([*self._table.names, *self._names.values()])

    def row(self, row: TableRow, results: Mapping[str, Any]) -> str:
        """Write a row.

        Args:
            results: values by name; a missing one is an empty cell, or null.

        Returns:
            The line, with its end.
        """
        added = {self._names[name]: results.get(name) for name in self._names}
        if self._form == "jsonl":
            return json.dumps({**row.values, **added}, ensure_ascii=False, default=str) + "\n"
        cells = list(row.cells) or [row.values.get(name) for name in self._table.names]
        missing = [""] * (len(self._table.names) - len(cells))
        return self._line([*cells, *missing, *added.values()])

    def _line(self, values: Sequence[Any]) -> str:
        cells = [_cell(value) for value in values]
        if self._is_plain:
            return "\t".join(cell.replace("\t", " ") for cell in cells) + "\n"
        stream = io.StringIO()
        csv.writer(stream, delimiter=self._separator, lineterminator="\n").writerow(cells)
        return stream.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def write_parquet(
    path: Path, table: AnsweredTable, rows: Iterator[tuple[TableRow, Mapping[str, Any]]], names: Sequence[str]
) -> None:
    """Write rows with results as Parquet; the columns of a table in Parquet or Arrow keep their types.

    Args:
        path: the file, which is written from its start.
        table: the table that is answered.
        rows: rows and the results of each.
        names: columns of results.

    Raises:
        MissingExtra: pyarrow is not installed.
        DataError: the values of a column have no common type.
    """
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", f"{path}: a table in Parquet") from None
    added = table.new_names(names)
    writer: Any = None
    try:
        for batch in table_batches(table.path) if is_columnar(table.path) else repeat(None):
            chunk = [*islice(rows, _CHUNK_ROWS if batch is None else batch.num_rows)]
            if not chunk and (batch is None or not batch.num_rows):
                break
            columns = {new: [results.get(name) for _, results in chunk] for name, new in added.items()}
            if batch is None:
                values = {name: [row.values.get(name) for row, _ in chunk] for name in table.names}
                content = pyarrow.table({**values, **columns})
            else:
                content = pyarrow.Table.from_batches([batch])
                for name, column in columns.items():
                    content = content.append_column(name, pyarrow.array(column))
            if writer is None:
                writer = parquet.ParquetWriter(path, content.schema)
            writer.write_table(content.cast(writer.schema))
    except pyarrow.ArrowException as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{path}: {table.path} makes no table in Parquet: {reason}; write JSONL or CSV") from None
    finally:
        if writer is not None:
            writer.close()
