"""Examples in memory, such as lists and tables of pandas, written to a file that every reader of data files reads."""

import json
import math
import os
import re
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from heedful.data.class_names import class_names, named_value
from heedful.data.rows import TRANSLATION, Columns
from heedful.errors import DataError, HeedfulError
from heedful.files.atomic_write import private_folder
from heedful.text.columns import named_column

PAIR_KEYS: Final[Columns] = ("source", "target")
"""Keys of the sides of pairs, which have no names of their own."""
SIDES: Final[Mapping[str, Columns]] = {"classification": ("text", "label"), "captioning": ("image", "caption")}
"""Names of the sides of pairs in messages, by task; of others `PAIR_KEYS`."""
_KINDS: Final = (
    "paths, or examples in memory: pairs, dictionaries, a dictionary of columns, or a table (pandas, polars, datasets)"
)
_FEWEST_ROWS: Final = 3
"""Length from which on two lists within a list are sources and targets; two of two values are two pairs."""
_HALF: Final = re.compile("[\ud800-\udfff]")
_SCALARS: Final = str | int | float | None
"""Types of values that no column and no row is of; an example may have lists beside them."""
QUOTED: Final = r"""(?<!\w)(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")(?!\w)"""
"""Pattern of a text in quotes within a message."""
_MADE: Final = r"\S*\.heedful-\d+-\d+\.unfinished[/\\](?P<name>\w+)\.jsonl(?::(?P<line>\d+))?"
"""File of examples in memory, and a line of it."""
_NUMBER: Final = r"\d+(?:,\d{3})*"
_LINES: Final = rf"(?:(?<=\()|(?<=unreadable: ))line(?P<plural>s?) (?P<lines>{_NUMBER}(?:, {_NUMBER})*)"
_PLACES: Final = re.compile(rf"{QUOTED}|{_MADE}|(?P<other>\S*(?:[/\\]\S|\.[A-Za-z])\S*)|{_LINES}")
"""Parts of a message that say where: files of examples in memory, other files, and lines; and texts in quotes."""
_MOST_BITS: Final = 64
_MOST_NESTED: Final = 8
"""Lists within one another."""


class ExampleFiles(NamedTuple):
    """Files of data, with the columns by which they are read."""

    paths: tuple[Path, ...]
    columns: Columns


@contextmanager
def example_files(
    data: Any, name: str, columns: Columns = (1, 2), sides: Columns = PAIR_KEYS
) -> Generator[ExampleFiles]:
    """Open data as files; examples in memory are written to a file that is removed at the end.

    Args:
        data: a path, a sequence of paths, or examples as `write_examples` takes them, alone or as the only element.
        name: name of the file without ending, for messages.
        columns: columns of source and target.
        sides: names of the sides of pairs, for messages.

    Yields:
        The files. Errors that leave the context name rows of examples in place of lines of files.

    Raises:
        DataError: examples stand beside other data, or are none, as in `write_examples`.
        HeedfulError: any that leaves the context.
    """
    parts = list(data) if isinstance(data, list | tuple) else [data]
    if all(isinstance(part, str | Path) for part in parts):
        yield ExampleFiles(tuple(map(Path, parts)), columns)
        return
    if any(isinstance(part, str | Path) for part in parts):
        raise DataError(f"{name}: give the examples in one list or table, or paths, not both")
    examples = parts[0] if len(parts) == 1 and _is_table(parts[0]) else data
    with private_folder() as folder:
        path = folder / f"{name}.jsonl"
        try:
            yield ExampleFiles((path,), write_examples(examples, path, columns, sides))
        except HeedfulError as error:
            error.args = (in_rows(str(error)), *error.args[1:])
            raise


def in_rows(text: str) -> str:
    """Name rows of examples in memory in place of lines of the files that were made of them.

    Args:
        text: message about files of `example_files`; texts in quotes and the lines of other files stay as they are.

    Example:
        >>> in_rows("/tmp/.heedful-9-0.unfinished/train.jsonl:3: 2 rows are empty (lines 3, 4)")
        'train: row 2: 2 rows are empty (rows 2, 3)'
    """
    if not re.search(_MADE, text):
        return text
    text = text.replace(f"{tempfile.gettempdir()}{os.sep}.heedful-", ".heedful-")
    is_made = False

    def as_rows(match: re.Match[str]) -> str:
        nonlocal is_made
        if match["name"]:
            is_made = True
            return f"{match['name']}: row {_one_less(match['line'])}" if match["line"] else match["name"]
        is_made = is_made and not match["other"]
        return f"row{match['plural']} {_one_less(match['lines'])}" if is_made and match["lines"] else match[0]

    return _PLACES.sub(as_rows, text)


def _one_less(numbers: str) -> str:
    """Numbers between commas, counted from 0 in place of 1."""
    return ", ".join(
        f"{int(number.replace(',', '')) - 1:{',' if ',' in number else ''}}" for number in numbers.split(", ")
    )


def _is_table(part: object) -> bool:
    """Tell whether an element of data is a collection of examples, not one example."""
    if isinstance(part, Mapping):
        return not any(isinstance(value, _SCALARS | Mapping) for value in part.values())
    if isinstance(part, list | tuple):
        return not any(isinstance(value, _SCALARS) for value in part)
    return not isinstance(part, str | Path)


def write_examples(data: Any, path: Path, columns: Columns = (1, 2), sides: Columns = PAIR_KEYS) -> Columns:
    """Write examples as lines of JSON.

    Args:
        data: pairs of a source and a target, such as an array [pair, 2]; two lists, arrays or Series of equal length,
            of sources and of targets, lists with three values or more; dictionaries with equal keys, in any order; a
            dictionary from the names of columns to their values; or a table with the names of its columns, of pandas,
            polars, PyArrow or datasets, whose numbers of classes become their names. Translations by language,
            ``{"translation": {"de": ..., "en": ...}}``, are pairs.
        path: new file.
        columns: columns of source and target; for pairs (1, 2), or (2, 1) where the target comes first; of several
            languages two, such as ("translation.de", "translation.en").
        sides: names of the sides of pairs, for messages.

    Returns:
        Columns by which the file is read.

    Raises:
        DataError: the data are of another kind, there are none, or a value is missing or no text, number, truth value,
            or list or dictionary of these; the message has the index of the row.
    """
    name = path.name.partition(".")[0]
    classes = class_names(getattr(data, "features", None))
    rows = example_rows(data, name, sides)
    if classes:
        rows = ({key: named_value(value, classes.get(key, ())) for key, value in row.items()} for row in rows)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{name}: no examples; give at least one")
    names = tuple(first)
    shown: dict[str, str] = dict(zip(map(str, PAIR_KEYS), map(str, sides), strict=True)) if names == PAIR_KEYS else {}
    _check_languages(first, name, columns)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for number, row in enumerate(chain((first,), rows)):
            if row.keys() != first.keys():
                raise DataError(f"{name}: row {number} has the keys {_listed(row)}, row 0 has {_listed(names)}")
            where = f"{name}: row {number}"
            file.write(_line({key: _cell(row[key], first[key], shown.get(key, key), where) for key in names}))
    return _pair_columns(columns, sides, name) if names == PAIR_KEYS else columns


def _pair_columns(columns: Columns, sides: Columns, name: str) -> Columns:
    """Keys of source and target of pairs, for their columns by number or by name.

    Raises:
        DataError: pairs have no such columns.
    """
    for first, second in ((1, 2), PAIR_KEYS, sides):
        if columns == (first, second):
            return PAIR_KEYS
        if columns == (second, first):
            return PAIR_KEYS[1], PAIR_KEYS[0]
    known = " and ".join(map(repr, sides))
    raise DataError(f"{name}: pairs have the columns 1 and 2, or {known}; not {' and '.join(map(repr, columns))}")


def _check_languages(row: Mapping[str, Any], name: str, columns: Columns) -> None:
    """Refuse translations into several languages of which nobody has chosen two.

    Raises:
        DataError: there are more than two.
    """
    languages = row.get(TRANSLATION)
    if columns in ((1, 2), (2, 1)) and isinstance(languages, Mapping) and len(cast(Mapping[str, Any], languages)) > 2:
        source, target = (f"{TRANSLATION}.{language}" for language in islice(cast(Mapping[str, Any], languages), 2))
        raise DataError(
            f"{name}: {TRANSLATION!r} has {_listed(languages)}; choose two: columns=({source!r}, {target!r})"
        )


def _cell(value: Any, first: Any, key: str, position: str) -> Any:
    """Value as JSON has it; translations by language, where the first row has such.

    Raises:
        DataError: it is missing, of another type, or in other languages than those of the first row.
    """
    if key != TRANSLATION or not isinstance(first, Mapping):
        return _value(value, f"{position}, {key!r}")
    if not isinstance(value, Mapping):
        raise DataError(f"{position}, {key!r} is a {type(value).__name__}; give a dictionary, as in row 0")
    texts, usual = cast(Mapping[str, Any], value), cast(Mapping[str, Any], first)
    if texts.keys() != usual.keys():
        raise DataError(f"{position}, {key!r} has {_listed(texts)}; row 0 has {_listed(usual)}")
    return {language: _value(texts[language], f"{position}, '{key}.{language}'") for language in usual}


def column_of(table: Any, column: str) -> list[str]:
    """Return a column of a table in memory as texts.

    Args:
        table: as `write_examples` takes it, with names of columns.

    Raises:
        DataError: there is no such column, or a value is missing or no text.
    """
    texts: list[str] = []
    for number, row in enumerate(example_rows(table, "table")):
        name = named_column(column, row)
        if name is None:
            raise DataError(f"table: row {number} has no column {column!r}; it has {_listed(row)}")
        text = row[name]
        if not isinstance(text, str):
            raise DataError(f"table: row {number}, {column!r} is a {type(text).__name__}; give a text")
        texts.append(text)
    return texts


def with_column(table: Any, name: str, values: Sequence[Any]) -> Any:
    """Add a column to a table in memory.

    Args:
        table: a table of pandas, polars, PyArrow or datasets, a dictionary of columns, or dictionaries in a list; it is
            not changed.
        name: name of the new column.
        values: one for each row.

    Returns:
        A table of the same kind.

    Raises:
        DataError: there is a column of this name, or the table is of another kind.

    Example:
        >>> with_column([{"text": "one"}], "length", [3])
        [{'text': 'one', 'length': 3}]
    """
    names: Any = getattr(table, "column_names", getattr(table, "columns", table if isinstance(table, Mapping) else ()))
    rows: list[Mapping[str, Any]] = list(table) if isinstance(table, list) else []
    if name in list(names) or any(name in row for row in rows):
        raise DataError(f"table: has a column {name!r}; choose another name for the new one")
    new, frame = list(values), cast(Any, table)
    if isinstance(table, Mapping):
        return {**table, name: new}
    if isinstance(table, list):
        return [{**row, name: value} for row, value in zip(rows, new, strict=True)]
    if hasattr(frame, "append_column"):  # PyArrow
        return frame.append_column(name, [new])
    if hasattr(frame, "with_columns"):  # polars
        return frame.with_columns(type(frame.to_series(0))(name, new))
    if hasattr(frame, "add_column"):  # datasets
        return frame.add_column(name, new)
    if hasattr(frame, "assign"):  # pandas
        return frame.assign(**{name: new})
    raise DataError(f"table: expected {_KINDS}; got {type(table).__name__}")


def _line(values: Mapping[str, Any]) -> str:
    """Line of JSON; half characters stand in it as escapes, as in files of others."""
    line = json.dumps(values, ensure_ascii=False)
    return (json.dumps(values) if _HALF.search(line) else line) + "\n"


def example_rows(data: Any, name: str, sides: Columns = PAIR_KEYS) -> Iterator[dict[str, Any]]:
    """Read examples in memory row by row.

    Args:
        data: as for `write_examples`.
        name: name of the data, for messages.
        sides: names of the sides of pairs, for messages.

    Yields:
        Values by name; of pairs by `PAIR_KEYS`.

    Raises:
        DataError: the data are of another kind.
    """
    if hasattr(data, "to_pylist"):  # PyArrow
        yield from data.to_pylist()
    elif hasattr(data, "to_dicts"):  # polars
        yield from data.to_dicts()
    elif hasattr(data, "to_dict") and hasattr(data, "columns"):  # pandas
        yield from (_row(row, name, sides) for row in data.to_dict("records"))
    elif isinstance(data, Mapping):
        _check_no_splits(data, name)
        yield from _transposed(data, name)
    elif isinstance(data, Iterable) and not isinstance(data, bytes):
        for number, row in enumerate(_paired(data, name, sides)):
            yield _row(row, f"{name}: row {number}", sides)
    else:
        raise DataError(f"{name}: expected {_KINDS}; got {type(data).__name__}")


def _paired(data: Iterable[Any], name: str, sides: Columns) -> Iterable[Any]:
    """Pairs of sources and targets that are given as two sequences; other data as they are.

    Raises:
        DataError: the sequences differ in length.
    """
    if not isinstance(data, list | tuple) or len(data) != 2:
        return data
    parts: list[Any] = [*data]
    sources, targets = map(_side, parts)
    if sources is None or targets is None or not all(isinstance(value, _SCALARS) for value in sources):
        return data
    if isinstance(data, list) and min(len(sources), len(targets)) < _FEWEST_ROWS:
        return data
    if len(sources) != len(targets):
        raise DataError(
            f"{name}: {len(sources)} values of {sides[0]}, but {len(targets)} of {sides[1]}; give one for each"
        )
    return zip(sources, targets, strict=True)


def _side(part: Any) -> list[Any] | None:
    """Values of a list, of an array of one axis or of a Series; None for anything else."""
    if isinstance(part, str | bytes | Mapping) or hasattr(part, "columns") or getattr(part, "ndim", 1) != 1:
        return None
    if hasattr(part, "tolist") or hasattr(part, "to_list"):
        return [*(part.tolist() if hasattr(part, "tolist") else part.to_list())]
    return [*cast(Sequence[Any], part)] if isinstance(part, Sequence) else None


def _check_no_splits(data: Mapping[str, Any], name: str) -> None:
    """Refuse a dictionary of tables, such as a DatasetDict.

    Raises:
        DataError: it has a table.
    """
    tables = [key for key, value in data.items() if hasattr(value, "column_names") or hasattr(value, "columns")]
    if tables:
        others = ", and others as dev and test" if name == "train" else ""
        raise DataError(
            f"{name}: a dictionary of the tables {_listed(tables)}; give one, such as data[{tables[0]!r}]{others}"
        )


def _transposed(data: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """Rows of a dictionary of columns.

    Raises:
        DataError: a column is no list of values, or they differ in length.
    """
    for key, values in data.items():
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise DataError(f"{name}: column {key!r} is a {type(values).__name__}; give a list of values, one a row")
    columns = {str(key): list(values) for key, values in data.items()}
    sizes = {key: len(values) for key, values in columns.items()}
    if len({*sizes.values()}) > 1:
        raise DataError(
            f"{name}: columns differ in length: " + ", ".join(f"{key} {size}" for key, size in sizes.items())
        )
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _row(row: Any, position: str, sides: Columns) -> dict[str, Any]:
    """Row as a dictionary.

    Raises:
        DataError: it is neither a dictionary nor a pair.
    """
    if isinstance(row, Mapping):
        return {str(key): value for key, value in row.items()}
    values = row.tolist() if getattr(row, "ndim", 0) == 1 else row  # a row of an array
    is_sequence = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    if is_sequence and len(values) == 2:
        return dict(zip(PAIR_KEYS, values, strict=True))
    size = f" of {len(values)}" if is_sequence else ""
    raise DataError(
        f"{position} is a {type(row).__name__}{size}; give a pair ({', '.join(map(str, sides))}) or a dictionary"
    )


def _value(value: Any, position: str, depth: int = 0) -> Any:
    """Value as JSON has it.

    Raises:
        DataError: it is missing, or of another type.
    """
    plain = value.item() if hasattr(value, "item") and not getattr(value, "shape", ()) else value  # NumPy's numbers
    plain = plain.tolist() if hasattr(plain, "tolist") else plain
    if isinstance(plain, list | tuple) and depth < _MOST_NESTED:
        return [_value(one, position, depth + 1) for one in plain]
    if isinstance(plain, Mapping) and depth < _MOST_NESTED:  # such as the answers of SQuAD
        return {str(key): _value(one, f"{position}, {key!r}", depth + 1) for key, one in plain.items()}
    if plain is None or (isinstance(plain, float) and not math.isfinite(plain)):
        raise DataError(f"{position} is {plain!r}; give a value, or leave the row out")
    if isinstance(plain, int) and plain.bit_length() > _MOST_BITS:
        raise DataError(f"{position} is a number of {plain.bit_length()} bits; give one of {_MOST_BITS} at most")
    if isinstance(plain, str | int | float):
        return plain
    raise DataError(f"{position} is a {type(value).__name__}; give a text, a number, or a list or dictionary of them")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(islice(map(repr, names), 5)) or "none"
