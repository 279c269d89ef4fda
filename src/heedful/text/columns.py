"""Sources of several columns, such as a word and its features: one text, with separators between the columns."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

ColumnKind = Literal["text", "features"]
"""Kind of a column: text, which has a tokenizer, or features, which are whole tokens."""

COLUMN_SEPARATOR: Final = " | "
"""Separator of the columns that are one text."""
FEATURE_SEPARATOR: Final = ";"
"""Separator of the features in a column, as UniMorph writes them."""
_FEWEST_USES: Final = 5
"""Least mean number of occurrences of a feature in a column of features."""
_FEWEST_REPEATS: Final = 20
"""The same, in a column without separators."""


def join_columns(cells: Iterable[str]) -> str:
    """Join the columns of a text.

    Returns:
        One text; empty if one of several columns is blank.

    Raises:
        ValueError: one of several columns contains the separator.

    Example:
        >>> join_columns(["go", "V;PST"]), join_columns(["go", ""]), join_columns([" a | b "])
        ('go | V;PST', '', ' a | b ')
    """
    parts = [*cells]
    if len(parts) == 1:
        return parts[0]
    parts = [part.strip() for part in parts]
    if any(len(split_columns(part)) > 1 for part in parts):
        raise ValueError(f"{COLUMN_SEPARATOR!r} or a tab within a column")
    return COLUMN_SEPARATOR.join(parts) if all(parts) else ""


def named_column(column: str, names: Iterable[str]) -> str | None:
    """Find the heading that a name means: the same one, or else the only one that differs in nothing but case.

    Args:
        column: the name.
        names: headings or keys, whose spaces at the ends do not matter.

    Returns:
        The heading as it stands; None = no heading is meant, or several are.

    Example:
        >>> named_column("text", ["id", " Text"]), named_column("text", ["Text", "TEXT"])
        (' Text', None)
    """
    headings = [*names]
    folded = column.strip().casefold()
    same = [heading for heading in headings if heading.strip() == column.strip()]
    alike = [heading for heading in headings if heading.strip().casefold() == folded]
    return same[0] if same else alike[0] if len(alike) == 1 else None


def requested_columns(column: str, names: Iterable[str]) -> list[str]:
    """Split the name of joined columns.

    Args:
        column: name or number of a column, or of several with "+" between them.
        names: all headings; one that contains "+" is one column.

    Example:
        >>> requested_columns("lemma+features", ["lemma", "features"]), requested_columns("a+b", ["a+b", "c"])
        (['lemma', 'features'], ['a+b'])
    """
    return [column] if named_column(column, names) is not None else [part.strip() for part in column.split("+")]


def split_columns(text: str) -> list[str]:
    r"""Split a source into its columns.

    Args:
        text: columns with tabs or `COLUMN_SEPARATOR` between them.

    Example:
        >>> split_columns("go | V;PST"), split_columns("go\tV;PST")
        (['go', 'V;PST'], ['go', 'V;PST'])
    """
    return [part.strip() for part in text.split("\t" if "\t" in text else COLUMN_SEPARATOR)]


def text_columns(source: str, kinds: Sequence[ColumnKind]) -> str:
    """Return the columns of text of a source.

    Args:
        source: joined columns.
        kinds: their kinds; none = the source is one text.

    Example:
        >>> text_columns("go | V;PST", ("text", "features")), text_columns("a | b", ())
        ('go', 'a | b')
    """
    if "text" not in kinds:
        return source
    parts = zip(split_columns(source), kinds, strict=True)
    return COLUMN_SEPARATOR.join(part for part, kind in parts if kind == "text")


def column_kinds(rows: Sequence[Sequence[str]]) -> tuple[ColumnKind, ...]:
    """Recognise columns of features: few different ones, with semicolons between them or, behind the first, alone.

    Args:
        rows: columns of the first sources.

    Example:
        >>> column_kinds([["go", "V;PST"], ["see", "V;PST"], ["ask", "V;PRS"], ["eat", "V;PRS"], ["buy", "V;PRS"]])
        ('text', 'features')
    """
    return tuple(_kind(cells, index) for index, cells in enumerate(zip(*rows, strict=True)))


def _kind(cells: Sequence[str], index: int) -> ColumnKind:
    features = [feature for cell in cells for feature in cell.split(FEATURE_SEPARATOR)]
    num_different = len({*features})
    num_separated = sum(FEATURE_SEPARATOR in cell for cell in cells)
    if 2 * num_separated >= len(cells):
        return "features" if len(features) >= min(_FEWEST_USES, len(cells) // 2) * num_different else "text"
    return "features" if index and len(features) >= _FEWEST_REPEATS * num_different else "text"
