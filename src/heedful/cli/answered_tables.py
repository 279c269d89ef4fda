"""Tables on the command line: a file of rows is read, and given back with the columns of the results."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from heedful.cli.lines import STANDARD, OutputFormat, opened_output, refuse_overwriting
from heedful.cli.messages import Messages, SummedWarning
from heedful.cli.options import FILES
from heedful.errors import DataError, UsageError
from heedful.files.atomic_write import temporary_path

if TYPE_CHECKING:
    from heedful.data.answered_tables import AnsweredTable, TableRow
    from heedful.data.table_forms import Form

InputColumn = Annotated[
    str,
    typer.Option(
        "--columns",
        metavar="NAME",
        help="Column of a table that is read, by name or number; A+B joins two. Default: that of the training data.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]
Results = Callable[[list[Any]], Iterable[Mapping[str, Any]]]
"""Function from the inputs of some rows to the results of each, by name."""
_DOCUMENT: Final = ".json"
"""Suffix of a file that is one JSON array, not a line for each row."""
_PARQUET: Final = ".parquet"
"""Suffix of a file in Parquet, which is compressed by itself."""


def is_table_file(path: Path | None) -> bool:
    """Tell whether a file of inputs is a table, by its name."""
    from heedful.data.table_forms import table_form

    return path is not None and path != STANDARD and table_form(path) is not None


def named_headings(columns: str) -> list[str]:
    """List the headings that are named by `--columns`.

    Args:
        columns: names or numbers of columns with "+" between them; may be empty.

    Returns:
        The names; a number is the place of a column, and tells nothing about headings.

    Example:
        >>> named_headings("title+2")
        ['title']
    """
    return [name for part in columns.split("+") if (name := part.strip()) and not name.isdecimal()]


def answer_table(
    table: "AnsweredTable",
    target: Path | None,
    output_format: OutputFormat,
    read: Callable[["TableRow"], Any],
    results: Results,
    names: Sequence[str],
    messages: Messages,
    window_rows: int,
) -> None:
    """Answer the rows of a table, and write it with the results behind its columns.

    Args:
        table: the table.
        target: where it goes, in the form that the name tells; None or "-" is standard output, in its own form.
        output_format: jsonl writes lines of JSON whatever the form of the table is; text leaves it as it is.
        read: function that gives the input of a row, or None for a row without one, whose results stay empty.
        results: function that answers inputs.
        names: names of the results.
        messages: where to warn of rows that cannot be read.
        window_rows: most rows that are answered together.

    Raises:
        UsageError: the target has no form of a table, or another one than the format.
    """
    from heedful.data.answered_tables import TableWriter, write_parquet
    from heedful.data.cells import suffix_of

    form = _output_form(table.path, None if target == STANDARD else target, output_format)
    faults = SummedWarning(messages, str(table.path), "rows could not be read and have no results")
    answered = _answered(table, read, results, faults, window_rows)
    if form == "parquet" and target is not None:
        refuse_overwriting(target, (table.path,))
        with temporary_path(target) as temporary:
            write_parquet(temporary, table, answered, names)
            temporary.replace(target)
    else:
        writer = TableWriter(table, form, names)
        with ExitStack() as stack:
            output = stack.enter_context(opened_output(target, (table.path,)))
            rows = (writer.row(row, own) for row, own in answered)
            if output_format == "text" and target is not None and suffix_of(target) == _DOCUMENT:
                output.writelines(_array(rows))
            else:
                output.write(writer.head())
                output.writelines(rows)
    faults.close()


def _output_form(source: Path, target: Path | None, output_format: OutputFormat) -> "Form":
    """Form in which a table is written: that of the format, or of the name of the output, or its own.

    Raises:
        UsageError: there is none, or the name contradicts the format.
    """
    from heedful.data.cells import suffix_of
    from heedful.data.table_forms import table_form

    form = table_form(target or source)
    if output_format == "jsonl":
        if target is not None and (form not in (None, "jsonl") or suffix_of(target) == _DOCUMENT):
            raise UsageError(f"--format jsonl: {target} is named like another format; give a name that ends in .jsonl")
        return "jsonl"
    if target is None:
        return "jsonl" if form in (None, "parquet") else form
    if form is None or (form == "parquet" and target.suffix.lower() != _PARQUET):
        raise UsageError(f"{target}: give a name that ends in .csv, .tsv, .jsonl, .json or .parquet, or --format jsonl")
    return form


def _array(lines: Iterator[str]) -> Iterator[str]:
    """Lines of JSON as an array, each value on a line."""
    between = "[\n"
    for line in lines:
        yield between + line.rstrip("\n")
        between = ",\n"
    yield "\n]\n" if between != "[\n" else "[]\n"


def _answered(
    table: "AnsweredTable",
    read: Callable[["TableRow"], Any],
    results: Results,
    faults: SummedWarning,
    window_rows: int,
) -> Iterator[tuple["TableRow", Mapping[str, Any]]]:
    rows = iter(table)
    while window := list(islice(rows, window_rows)):
        inputs: dict[int, Any] = {}
        for index, row in enumerate(window):
            try:
                if row.fault:
                    raise DataError(row.fault)
                value = read(row)
            except DataError as error:
                faults.add(row.line, str(error))
                value = None
            if value is not None:
                inputs[index] = value
        answers = dict(zip(inputs, results([*inputs.values()]), strict=True))
        for index, row in enumerate(window):
            yield row, answers.get(index, {})


def warn_of_cut(messages: Messages, source: Path, num_cut: int, max_tokens: int, by: str = "") -> None:
    """Warn of texts of which a model reads the beginning only.

    Args:
        source: file of the texts.
        num_cut: number of such texts; 0 = nothing to say.
        max_tokens: most tokens of a text that the model takes.
        by: name of the model, where there are several.
    """
    from heedful.text.counts import counted

    if num_cut:
        messages.warn(f"{source}: {counted(num_cut, 'text')} cut after {max_tokens} tokens{by and f' by {by}'}")


def text_of_row(names: Sequence[str]) -> Callable[["TableRow"], str | None]:
    """Make the function that reads the text of a row.

    Args:
        names: columns, which are joined as in training.
    """
    from heedful.text.columns import COLUMN_SEPARATOR

    def read(row: "TableRow") -> str | None:
        values = (row.values.get(name) for name in names)
        parts = [str(value) for value in values if value is not None and value == value]
        text = COLUMN_SEPARATOR.join(part for part in parts if part.strip()) if len(names) > 1 else "".join(parts)
        return text.replace("\n", " ") if text.strip() else None

    return read
