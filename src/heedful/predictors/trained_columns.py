"""Columns of a table that a classifier reads: those of its training data, by name."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from heedful.data.answered_tables import AnsweredTable
from heedful.data.corpus import first_line
from heedful.data.first_rows import may_be_names
from heedful.data.folders import is_folder_table
from heedful.data.label_rows import FASTTEXT
from heedful.data.rows import Columns, RequestedColumns, are_open
from heedful.data.text_columns import choose_label_columns, is_id, is_number, is_text_heading
from heedful.errors import DataError
from heedful.text.columns import named_column
from heedful.text.quoting import listed

_SAMPLE_ROWS: Final = 1000
_SHOWN: Final = 8
_MISSING: Final = frozenset(("", "n/a", "na", "nan", "null", "none", "-", "?"))
"""Cells that stand for a missing value, and are no headings."""
_FEW_ROWS: Final = 3
"""Number of rows of numbers from which on a word above them is a heading."""


def are_headed(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether a first row has headings of numbers, whatever their names are.

    Args:
        rows: the first rows, all of the same width.

    Returns:
        True if no cell of the first row is a number or a missing value, and one stands above a column of numbers: a
        name of identifiers, or any word above three numbers or more.

    Example:
        >>> are_headed([["id"], ["0"], ["1"]]), are_headed([["a quiet room", "5"], ["too loud", "2"]])
        (True, False)
    """
    first, body = rows[0], rows[1:]
    if not body or any(is_number(cell) or cell.strip().casefold() in _MISSING for cell in first):
        return False
    numeric = [name for index, name in enumerate(first) if all(is_number(row[index]) for row in body)]
    return any(is_id(name) or len(body) >= _FEW_ROWS for name in numeric)


def opened_table(path: Path, trained: Sequence[str], *others: str) -> AnsweredTable:
    """Open a table of texts.

    Args:
        trained: names of the columns of texts in the training data.
        others: further names by which a first row is recognised as one of headings.

    Raises:
        DataError: the file is missing, empty, or no table.
    """
    return AnsweredTable(
        path, (*trained, *others), lambda rows: are_headed(rows) or bool(trained and may_be_names(rows))
    )


def trained_columns(table: AnsweredTable, trained: Sequence[str], advice: str) -> tuple[str, ...]:
    """Find the columns of a table that a model was trained on, in any case of their letters.

    In place of a single missing one, the only column with another known name of texts is taken.

    Args:
        trained: names of the columns of texts in the training data; none = they are not known.
        advice: end of the message of an error.

    Returns:
        Their names in the table; none where it has no headings, or the names are not known.

    Raises:
        DataError: the table has headings, but lacks one of the columns.
    """
    if not trained or not table.has_headings:
        return ()
    headings = [named_column(name, table.names) for name in trained]
    missing = [name for name, heading in zip(trained, headings, strict=True) if heading is None]
    known = [name for name in table.names if is_text_heading(name)]
    if missing and len(trained) == len(known) == 1:
        return (known[0],)  # another name of texts, and the only one
    if missing:
        there = listed([name.strip() or "''" for name in table.names], _SHOWN)
        raise DataError(
            f"{table.path}: no column {' and '.join(missing)}, which the model was trained on, but {there}; {advice}"
        )
    return tuple(heading for heading in headings if heading is not None)


def labelled_columns(paths: Sequence[Path], trained: Sequence[str], columns: Columns) -> Columns:
    """Choose the columns of texts and labels by the columns of texts in the training data.

    Args:
        paths: a file of texts with labels, or two aligned files.
        trained: names of the columns of texts in the training data; none = they are not known.
        columns: as someone has named them; (1, 2) are chosen here.

    Returns:
        The columns to read; as given where the file has no headings or is no table.

    Raises:
        DataError: the file has headings, but lacks a column of the training data.
    """
    if len(paths) != 1 or not trained or not are_open(columns) or is_folder_table(paths[0]):
        return columns
    (path,) = paths
    table = opened_table(path, trained)
    if not table.is_json and FASTTEXT in first_line(path)[1]:
        return columns
    names = trained_columns(table, trained, "name the columns of text and label with --columns TEXT,LABEL")
    if not names or any("+" in name for name in table.names):
        return columns
    rows = [[row.values.get(name) for name in table.names] for row in islice(table, _SAMPLE_ROWS) if not row.fault]
    if not rows:
        return columns
    chosen, _ = choose_label_columns(table.names, rows)
    labels = [table.names[index] for index in chosen.labels if table.names[index] not in names]
    if not labels:
        return columns
    texts, wanted = ("+".join(name.strip() for name in each) for each in (names, labels))
    return RequestedColumns((texts, wanted))
