"""Rows of texts with labels: columns, JSON objects and fastText's lines, with a label each or any number of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast, final

from heedful.data.cells import CellStyle, Record, split_record
from heedful.data.class_names import Names, named_value
from heedful.data.rows import Columns, RowFormat, are_open, find_column, parse_object, text_of
from heedful.data.tables import data_lines
from heedful.data.text_columns import LabelColumns, choose_label_columns, is_label_heading
from heedful.errors import DataError, did_you_mean
from heedful.text.columns import COLUMN_SEPARATOR, requested_columns
from heedful.text.label_sets import joined_labels

FASTTEXT: Final = "__label__"
"""Prefix of labels in files of fastText."""
CATEGORIES: Final = "cats"
"""Key of spaCy's labels, an object of scores."""
LEAST_SCORE: Final = 0.5
"""Score from which on a text has one of several labels."""


@final
class FastTextRows(RowFormat):
    """Lines of fastText: words, and before, between or behind them labels with a prefix."""

    def __init__(self, has_label_sets: bool) -> None:
        self.columns = (1, 2)
        self.has_label_sets = has_label_sets

    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        words = line.split()
        labels = [word.removeprefix(FASTTEXT) for word in words if word.startswith(FASTTEXT)]
        if not labels:
            raise DataError(f"{name}:{number}: no {FASTTEXT}LABEL, which the lines before have")
        rest = [word for word in words if not word.startswith(FASTTEXT)]
        is_comma_first = words[0].startswith(FASTTEXT) and rest[:1] == [","]  # behind the labels of published files
        return " ".join(rest[is_comma_first:]), one_label(labels, self.has_label_sets, f"{name}:{number}")

    def describe(self) -> str:
        return f"lines of fastText, labels with {FASTTEXT}"


class Sample(NamedTuple):
    """First rows of a file."""

    names: tuple[str, ...]
    """Headings or keys; empty = the file has none."""
    rows: list[list[Any]]
    """Values of each row."""


@final
class LabelColumnRows(RowFormat):
    """Separated columns: of those of texts, joined, and of those of labels, one label or those of columns with 1."""

    def __init__(
        self,
        style: CellStyle,
        num_columns: int,
        chosen: LabelColumns,
        names: Sequence[str],
        nouns: tuple[str, str] = ("text", "label"),
    ) -> None:
        """Store the format.

        Args:
            num_columns: number of cells of a row.
            chosen: columns, and the separator of labels in a cell.
            names: headings; none where the file has none.
            nouns: what the cells of the two kinds of columns are, for the description.
        """
        self._style: Final = style
        self._num_columns: Final = num_columns
        self._chosen: Final = chosen
        self._names: Final = tuple(names)
        self._nouns: Final = nouns
        self.has_header = bool(names)
        self.has_label_sets, self.separator = chosen.has_several, chosen.separator
        self.columns = (chosen.texts[0] + 1, chosen.labels[0] + 1)
        self.names = (names[chosen.texts[0]], names[chosen.labels[0]]) if names else ("", "")
        self.source_names = tuple(names[index] for index in chosen.texts) if names else ()

    def records(self, lines: Iterable[str]) -> Iterator[Record]:
        return self._style.records(lines, self._num_columns)

    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        cells = split_record(self._style, self._num_columns, line, name, number)
        return row_cells(cells, self._chosen, self._names, f"{name}:{number}")

    def describe(self) -> str:
        return f"{self._style.name}, {described(self._chosen, self._names, self._nouns)}"


@final
class LabelJsonRows(RowFormat):
    """JSON objects, whose labels are texts, numbers, lists of them, or scores by label."""

    def __init__(
        self,
        chosen: LabelColumns,
        names: Sequence[str],
        nouns: tuple[str, str] = ("text", "label"),
        classes: Names | None = None,
    ) -> None:
        """Store the keys.

        Args:
            chosen: indices of the keys of texts and of labels.
            names: keys of the first object.
            nouns: as for `LabelColumnRows`.
            classes: names of classes whose numbers are labels, by key; None = none are.
        """
        self._classes: Final = classes or {}
        self._chosen: Final = chosen
        self._names: Final = tuple(names)
        self._nouns: Final = nouns
        self.has_label_sets, self.separator = chosen.has_several, chosen.separator
        self.columns = self.names = (names[chosen.texts[0]], names[chosen.labels[0]])
        self.source_names = tuple(names[index] for index in chosen.texts)

    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        row = parse_object(line, name, number)
        for index in (*self._chosen.texts, *self._chosen.labels):
            key = self._names[index]
            if key not in row:
                raise DataError(f"{name}:{number}: no key {key!r}{did_you_mean(key, row)}")
        values: list[Any] = [named_value(row.get(key), self._classes.get(key, ())) for key in self._names]
        for index in self._chosen.texts:
            value = values[index]
            values[index] = "" if is_missing(value) else text_of(value, self._names[index], row, name, number)
        return row_cells(values, self._chosen, self._names, f"{name}:{number}")

    def describe(self) -> str:
        return described(self._chosen, self._names, self._nouns, "key")


def described(
    chosen: LabelColumns, names: Sequence[str], nouns: tuple[str, str] = ("text", "label"), column: str = "column"
) -> str:
    """Describe columns in a few words.

    Args:
        names: headings or keys; none where there are none.
        nouns: what a text and its label are.
        column: what a column is.
    """
    text, label = nouns

    def listed(indices: Sequence[int]) -> str:
        shown = [f"{index + 1} ({names[index]})" if names else f"{index + 1}" for index in indices[:5]]
        more = ", ..." if len(indices) > 5 else ""
        return f"{column}{'s' if len(indices) > 1 else ''} {', '.join(shown)}{more}"

    kind = f"a {label} for each 1 in" if chosen.is_one_hot else f"{label}{'s' * chosen.has_several} in"
    them = "it" if len(chosen.unread) == 1 else "them"
    unread = f"; not read: {listed(chosen.unread)}, unless --columns names {them}" if chosen.unread else ""
    return f"{text} in {listed(chosen.texts)}, {kind} {listed(chosen.labels)}{unread}"


def row_cells(values: Sequence[Any], chosen: LabelColumns, names: Sequence[str], where: str) -> tuple[str, str]:
    """Read the text and the labels of a row.

    Args:
        values: cells, or values of an object.
        names: headings or keys.
        where: file and line, for messages.

    Returns:
        Text and label; several labels are joined as by `joined_labels`.

    Raises:
        DataError: the row has several labels where texts have one.
    """
    texts = (values[index] for index in chosen.texts)
    parts = ("" if is_missing(value) else str(value).replace("\n", " ") for value in texts)
    text = COLUMN_SEPARATOR.join(part for part in parts if part.strip()) if len(chosen.texts) > 1 else next(parts)
    if chosen.is_one_hot:
        labels = [names[index] for index in chosen.labels if is_positive(values[index])]
    else:
        labels = labels_of(values[chosen.labels[0]], chosen.separator)
    return text, one_label(labels, chosen.has_several, where)


def one_label(labels: Sequence[str], has_several: bool, where: str) -> str:
    """Write the labels of a text as one text.

    Args:
        has_several: whether texts may have any number of labels.
        where: file and line, for messages.

    Returns:
        The label, empty if there is none; or the labels joined as by `joined_labels`.

    Raises:
        DataError: there are several where texts have one.
    """
    if has_several:
        return joined_labels(labels)
    if len(labels) > 1:
        raise DataError(f"{where}: {len(labels)} labels, where the first rows have one each; move this row to the top")
    return labels[0] if labels else ""


def labels_of(value: Any, separator: str = "") -> list[str]:
    """List the labels in a cell or a JSON value.

    Args:
        separator: what separates labels in a text; empty = a text is one label.

    Returns:
        The labels; of an object of scores those of `LEAST_SCORE` and more; none for null, NaN and blank texts.
    """
    if isinstance(value, Mapping):
        scores = cast(Mapping[str, Any], value)
        return [label for label, score in scores.items() if is_positive(score)]
    if isinstance(value, list):
        return [label for each in cast(list[Any], value) for label in labels_of(each)]
    if is_missing(value):
        return []
    if isinstance(value, bool):
        return [str(value).lower()]
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # pandas makes a column of whole numbers with a gap one of fractions
    texts = str(value).replace("\n", " ").split(separator) if separator else [str(value).replace("\n", " ")]
    return [text.strip() for text in texts if text.strip()]


def is_missing(value: Any) -> bool:
    """Tell whether a cell or a JSON value is missing: null, or NaN, also as programs write it into a cell."""
    return value is None or value != value or value in ("NaN", "nan")  # NaN differs from itself


def is_positive(value: Any) -> bool:
    """Tell whether a score or a cell of a column of its own says that a text has the label."""
    if isinstance(value, bool):
        return value
    text = str(value).strip().casefold()
    try:
        return float(text) >= LEAST_SCORE
    except ValueError:
        return text in ("true", "yes", "y", "x")


def label_format(sample: Sample, columns: Columns, separator: str, where: str) -> tuple[LabelColumns, tuple[str, ...]]:
    """Choose the columns of texts and labels.

    Args:
        sample: first rows of the file; of a file of columns, the first row may be one of headings.
        columns: as requested: numbers or names, several of which are joined by "+".
        separator: separator of labels in a cell; empty = a cell is a label.
        where: file and line of the first row, for messages.

    Returns:
        The columns, and the headings or keys; none where there are none.

    Raises:
        DataError: a requested column does not exist, or there is none beside that of the texts.
    """
    names, rows = sample
    if are_open(columns):
        chosen, names = choose_label_columns(names, rows)
        if {*chosen.texts} & {*chosen.labels}:
            raise DataError(_without_label(chosen, names, rows, where))
        chosen = chosen._replace(unread=_unread(chosen, rows[bool(names and not sample.names) :]))
    else:
        requested = [str(column) for column in columns]
        first = names or tuple(str(cell) for cell in rows[0])
        is_named = any(not part.isdecimal() for column in requested for part in requested_columns(column, first))
        if not names and (is_named or choose_label_columns((), rows)[1]):
            names = first
        parts = (requested_columns(column, first) for column in requested)
        texts, labels = ([_index(part, first, names, where) for part in each] for each in parts)
        chosen = LabelColumns(tuple(texts), tuple(labels), len(labels) > 1)
    if separator:
        return chosen._replace(separator=separator, has_several=True), names
    body = rows[1:] if names and rows and list(names) == [str(cell) for cell in rows[0]] else rows
    counts = {len(_found(row, chosen, names)) for row in body}
    return chosen._replace(has_several=not counts <= {1} if chosen.is_one_hot else max(counts, default=1) > 1), names


def _without_label(chosen: LabelColumns, names: Sequence[str], rows: Sequence[Sequence[Any]], where: str) -> str:
    """Message about rows that have nothing but texts, or nothing but labels."""
    text = names[chosen.texts[0]] if names else f"column {chosen.texts[0] + 1}"
    alone = f"{text!r} is all there is" if len(rows[0]) == 1 else f"nothing but {text!r} has values"
    missing = "texts" if is_label_heading(text) else "labels"
    return f"{where}: no {missing}: {alone}; each row needs a text and a label, such as columns text and label"


def _unread(chosen: LabelColumns, rows: Sequence[Sequence[Any]]) -> tuple[int, ...]:
    """Columns with values that are neither texts nor labels."""
    width = len(rows[0]) if rows else 0
    others = [index for index in range(width) if index not in (*chosen.texts, *chosen.labels)]
    return tuple(index for index in others if any(map(_is_filled, (row[index] for row in rows))))


def _is_filled(value: Any) -> bool:
    return not is_missing(value) and str(value).strip() != ""


def _found(row: Sequence[Any], chosen: LabelColumns, names: Sequence[str]) -> list[str]:
    if chosen.is_one_hot:
        return [names[index] for index in chosen.labels if is_positive(row[index])]
    return labels_of(row[chosen.labels[0]])


def _index(column: str, first: Sequence[str], names: Sequence[str], where: str) -> int:
    """Index of a requested column; a number is a name only among headings, and no cell of a first row of data.

    Raises:
        DataError: the column does not exist.
    """
    number = find_column(int(column) if column.isdecimal() and column not in names else column, first, where)
    if not 1 <= number <= len(first):
        raise DataError(f"{where}: {len(first)} columns, but column {column} was requested")
    return number - 1


def json_sample(path: Path, most: int) -> Sample:
    """Read the first objects of a file.

    Args:
        path: the file.
        most: most objects to read.

    Raises:
        DataError: the first line that is not empty is no object.
    """
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(data_lines(path, bad_bytes="replace"), start=1):
        if len(rows) == most:
            break
        if line:
            try:
                rows.append(parse_object(line, str(path), number))
            except DataError:
                if not rows:
                    raise
    names = tuple(rows[0]) if rows else ()
    return Sample(names, [[row.get(name) for name in names] for row in rows])
