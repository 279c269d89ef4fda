"""Tables of sources on the command line: which files are tables, the column that is translated, and the results."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heedful.cli.answered_tables import is_table_file, named_headings
from heedful.cli.messages import Messages

if TYPE_CHECKING:
    from heedful.data.answered_tables import AnsweredTable
    from heedful.predictors.translation import Translation

_PLAIN: Final = (".tsv", ".json")
"""Suffixes of tables that are lines or documents, unless a column or another form of the output is named."""
_SAMPLE_ROWS: Final = 1000


def source_table(source: Path | None, target: Path | None, columns: str) -> Path | None:
    """Find the table that a command is to translate.

    Args:
        source: file of `--input`; None = there is none.
        target: output file.
        columns: columns that were named; may be empty.

    Returns:
        The file; None if it is lines or a document: one of tabs or of JSON is a table only where a column is named, or
        the output is to be a table of another form.
    """
    from heedful.data.cells import suffix_of

    if source is None or not is_table_file(source):
        return None
    is_converted = target is not None and is_table_file(target) and suffix_of(target) != suffix_of(source)
    return source if columns or is_converted or suffix_of(source) not in _PLAIN else None


def warn_of_tabs(source: Path | None, messages: Messages) -> None:
    """Warn of lines of columns that are translated as they are.

    Args:
        source: file of `--input`, which is translated line by line; None = there is none.
    """
    from heedful.data.tables import data_lines

    if source is None or not is_table_file(source) or not source.is_file():
        return
    if any("\t" in line for line in islice(data_lines(source, bad_bytes="replace"), _SAMPLE_ROWS)):
        messages.warn(f"{source}: lines are translated with their tabs; to translate one column: --columns NAME")


def opened_sources(path: Path, columns: str, language: str) -> "tuple[AnsweredTable, tuple[str, ...]]":
    """Open a table and find the column of the sources.

    Args:
        path: the table.
        columns: columns that were named; empty = the first under a heading of sources or of their language, or else the
            first with texts that are no numbers.
        language: code of the source language; may be empty.

    Returns:
        The table, and the names of its columns that are a source.

    Raises:
        DataError: the file is missing, empty or no table, or lacks the column.
    """
    from heedful.data.headings import HEADINGS
    from heedful.data.text_columns import choose_source_column
    from heedful.predictors.trained_columns import opened_table
    from heedful.serving.languages import name_of

    groups = {HEADINGS.get(name_of(language).casefold()), HEADINGS["source"]}
    headings = {language, *(word for word, group in HEADINGS.items() if group in groups)} - {""}
    table = opened_table(path, (), *headings, *named_headings(columns))
    if columns:
        return table, table.column(columns)
    rows = [[row.values.get(name) for name in table.names] for row in islice(table, _SAMPLE_ROWS)]
    return table, (choose_source_column(table.names, rows, headings),)


def result_names(align: bool, nbest: int, has_confidence: bool) -> tuple[str, ...]:
    """Name the columns of the results of a source.

    Args:
        align: whether word links are wanted.
        nbest: number of alternatives.
        has_confidence: whether the confidence of outputs is computed.

    Example:
        >>> result_names(align=False, nbest=2, has_confidence=True)
        ('translation', 'translation_2', 'confidence')
    """
    more = [name for name, is_wanted in (("alignment", align), ("confidence", has_confidence)) if is_wanted]
    return ("translation", *map(_ranked, range(2, nbest + 1)), *more)


def result_cells(output: "Translation", align: bool, is_withheld: bool) -> dict[str, Any]:
    """Give the results of a source.

    Args:
        align: whether word links are wanted.
        is_withheld: whether the output is left out, so that nothing but its confidence is given.

    Returns:
        Values by the names of `result_names`.
    """
    confidence = {} if output.confidence is None else {"confidence": round(output.confidence, 6)}
    if is_withheld:
        return confidence
    others = {_ranked(rank): other.text for rank, other in enumerate(output.alternatives[1:], start=2)}
    return {"translation": output.text, **others, **confidence, **({"alignment": output.pharaoh()} if align else {})}


def _ranked(rank: int) -> str:
    """Name of the column of an alternative."""
    return f"translation_{rank}"
