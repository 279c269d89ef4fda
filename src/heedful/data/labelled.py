"""Files of texts with labels."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from heedful.data.cells import CellStyle, cell_style, whole_records
from heedful.data.class_names import stored_class_names
from heedful.data.corpus import PairFile, check_columns, find_pairs, first_line, found_pairs, is_json_lines
from heedful.data.label_rows import (
    FASTTEXT,
    FastTextRows,
    LabelColumnRows,
    LabelJsonRows,
    Sample,
    json_sample,
    label_format,
)
from heedful.data.rows import ColumnRows, Columns, RowFormat, are_open
from heedful.data.tables import check_data_file, first_lines

_SAMPLE_LINES: Final = 1000
"""Number of first lines by which columns, headings and kinds of labels are recognised."""


def find_labelled(
    paths: Sequence[Path], columns: Columns = (1, 2), separator: str = "", leaves_out_faults: bool = False
) -> PairFile:
    """Inspect files of texts with labels.

    Args:
        paths: a file of any format that `heedful.data.corpus.find_pairs` reads, of fastText's lines, or a folder with
            a folder of texts for each label; or two aligned files.
        columns: columns of text and label, by number or name; "title+body" joins columns to one text, and "a+b" as
            labels are columns with 1 for the texts that have the label. (1, 2) are found by headings, keys and content.
        separator: separator of several labels in a cell; empty = a cell is one label.
        leaves_out_faults: as for `heedful.data.corpus.find_pairs`.

    Returns:
        Text and label of each row; where texts may have several labels, these are joined as by
        `heedful.text.label_sets.joined_labels`.

    Raises:
        DataError: as `heedful.data.corpus.find_pairs`.
        MissingExtra: a file is Parquet or Arrow, and pyarrow is not installed.
    """
    check_columns(paths, columns)
    if len(paths) != 1:
        return find_pairs(paths, columns, leaves_out_faults)
    (path,) = paths
    check_data_file(path)
    number, line = first_line(path)
    where = f"{path}:{number}"
    rows: RowFormat
    if is_json_lines(path, line):
        sample = json_sample(path, _SAMPLE_LINES)
        rows = LabelJsonRows(*label_format(sample, columns, separator, where), classes=stored_class_names(path))
    elif any(word.startswith(FASTTEXT) for word in line.split()) and are_open(columns):
        rows = FastTextRows(any(text.count(FASTTEXT) > 1 for text in first_lines(path, _SAMPLE_LINES)))
    else:
        sample_lines = first_lines(path, _SAMPLE_LINES)
        style = cell_style(path, sample_lines)
        lenient = CellStyle(style.separator, "lenient" if style.quotes == "strict" else style.quotes)
        records = whole_records(sample_lines, style)
        cells = [style.split(records[0], str(path), number), *map(lenient.split, records[1:])]
        width = len(cells[0])
        if width < 2:  # says what is wrong
            ColumnRows.of(records[0], columns, str(path), number, style, records)
        chosen, names = label_format(Sample((), [row for row in cells if len(row) == width]), columns, separator, where)
        rows = LabelColumnRows(style, width, chosen, names)
    return found_pairs(path, rows, number, leaves_out_faults)
