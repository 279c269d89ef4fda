"""Files for models whose sources are several columns: pairs and tables, read by the columns of the training data."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from heedful.data.answered_tables import AnsweredTable
from heedful.data.corpus import PairFile, find_pairs, first_line
from heedful.data.rows import Columns, joined_cells
from heedful.data.table_forms import table_form
from heedful.engines.folder import ModelFolder
from heedful.errors import DataError
from heedful.text.columns import split_columns

COLUMNS: Final = "columns"
"""Key of the columns of source and target in `heedful.json`, where a source is several of them."""
DIVIDES: Final = "divides_targets"
"""Key of true in `heedful.json`, where commas stood between the pronunciations of a word in the training data."""


def model_pairs(
    folder: ModelFolder,
    paths: Sequence[Path],
    columns: Columns = (1, 2),
    lacks_last: bool = False,
    leaves_out_faults: bool = False,
) -> PairFile:
    """Find pairs for a model.

    Args:
        folder: the model; its own columns are taken where none are named, unless the file has others of its own or
            sources that are joined already.
        paths: as for `find_pairs`.
        columns: as for `find_pairs`.
        lacks_last: whether the last column of the model's sources is none of the file's.
        leaves_out_faults: as for `find_pairs`.

    Raises:
        DataError: as `find_pairs`.
    """
    pairs = find_pairs(paths, columns, leaves_out_faults)
    if folder.facts.get(DIVIDES) is True:
        pairs.divide_targets()
    own = folder.facts.get(COLUMNS)
    if own is None or lacks_last or columns != (1, 2) or pairs.source_names:
        return pairs
    first = next((pair.source for pair in pairs if pair.source), "")
    if len(split_columns(first)) == len(str(own[0]).split("+")):
        return pairs
    return find_pairs(paths, (own[0], own[1]), leaves_out_faults)


def is_source_table(path: Path) -> bool:
    """Tell whether a file of sources has rows of columns, by its name or its first line.

    Raises:
        DataError: the file cannot be read.
    """
    return table_form(path) is not None or "\t" in first_line(path)[1]


def table_sources(path: Path, folder: ModelFolder, columns: str = "", lacks_last: bool = False) -> Iterator[str]:
    """Read the sources of a table.

    Args:
        path: a file for which `is_source_table` holds.
        folder: the model, whose columns are taken; of a table with just as many columns, all.
        columns: other columns, with "+" between them; empty = none.
        lacks_last: whether the last column of the model is none of the table's.

    Yields:
        The source of each row, headings left out.

    Raises:
        DataError: a row cannot be read, or a column is missing.
    """
    own = str(folder.facts[COLUMNS][0]).split("+")
    own = own[:-1] if lacks_last else own
    table = AnsweredTable(path, own)
    has_just_these = not columns and len(table.names) == len(own)
    names = table.names if has_just_these else table.column(columns or "+".join(own))
    for row in table:
        if row.fault:
            raise DataError(row.fault)
        where = f"{path}:{row.line}"
        if missing := [name for name in names if name not in row.values]:
            raise DataError(f"{where}: no {missing[0]!r}")
        yield joined_cells((str(row.values[name]).replace("\n", " ") for name in names), where)
