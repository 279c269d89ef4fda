"""Headings of unknown names, recognised because the first row is unlike the rows below."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

_LEAST_ROWS: Final = 3
"""Largest number of rows that are too few for a first row to stand out."""
_FEW_ROWS: Final = 20
"""Fewest cells by which recurring values, such as labels, are told from a heading that does not recur."""
_LONGEST: Final = 40
"""Longest heading, in characters."""
_MOST_SINGLE: Final = 0.05
"""Largest share of values that stand once in a column of recurring values."""


def is_name(cell: str) -> bool:
    """Tell whether a cell is one word that may name a column.

    Example:
        >>> is_name("comment_text"), is_name("too loud"), is_name("7")
        (True, False, False)
    """
    return 0 < len(cell) <= _LONGEST and cell.isascii() and cell.replace("-", "_").isidentifier()


def _is_plain_name(cell: str) -> bool:
    """Tell whether a name is in lower case or has an underscore, unlike the first word of a text."""
    return is_name(cell) and (cell.islower() or "_" in cell)


def text_columns(rows: Sequence[Sequence[Any]]) -> list[int]:
    """Find the columns in which a name stands above texts.

    Args:
        rows: the first rows, all of the same width.

    Returns:
        0-based columns with a name, below which cells with a content are longer and no names.

    Example:
        >>> text_columns([["doc", "verdict"], ["a quiet room", "good"], ["far too loud", "bad"], ["so so la", "good"]])
        [0]
    """
    if len(rows) <= _LEAST_ROWS:
        return []
    columns = (_cells(rows, index) for index in range(len(rows[0])))
    return [index for index, (head, body) in enumerate(columns) if body and _is_above_texts(head, body)]


def are_names(rows: Sequence[Sequence[Any]]) -> bool:
    """Tell whether a first row has headings of unknown names, in a table of which nothing is known.

    Returns:
        Whether it has different names in lower case and nothing else, one of them above texts, and there is more: a
        name above other texts, one with an underscore, or one above cells that are no names, or that come again as it
        does not.

    Example:
        >>> are_names([["doc", "q", "a"], *[["Ada went home. Bo left.", "Where is Ada?", "home"]] * 3])
        True
        >>> are_names([["great", "good"], ["a quiet room", "good"], ["far too loud", "bad"], ["so so la la", "good"]])
        False
    """
    texts = text_columns(rows)
    heads = [head for head, _ in (_cells(rows, index) for index in range(len(rows[0]))) if head]
    if not texts or len({head.casefold() for head in heads}) < len(heads) or not all(map(_is_plain_name, heads)):
        return False
    if len(texts) > 1 or "_" in str(rows[0][texts[0]]):
        return True
    others = (_cells(rows, index) for index in range(len(rows[0])) if index not in texts)
    return any(_is_unlike(head, body) for head, body in others if head)


def may_be_names(rows: Sequence[Sequence[Any]]) -> bool:
    """Tell whether a first row may have headings, in a table that should have some.

    Returns:
        Whether it has different names, of which none comes again, and one of them stands above texts; or each stands
        above cells that are no names, or that come again as it does not.

    Example:
        >>> may_be_names([["kind", "other"], *[["good", "x0.1"], ["bad", "x0.2"]] * 3])
        True
    """
    columns = [_cells(rows, index) for index in range(len(rows[0]))]
    filled = [(head, body) for head, body in columns if head]
    least = 0 if any("_" in head for head, _ in filled) else 1
    is_long = len(rows) > _LEAST_ROWS and len({head.casefold() for head, _ in filled}) == len(filled) > least
    if not is_long or not all(is_name(head) and not _is_among(head, body) for head, body in filled):
        return False
    return bool(text_columns(rows)) or all(_is_unlike(head, body) or _recurs(head, body) for head, body in filled)


def _cells(rows: Sequence[Sequence[Any]], index: int) -> tuple[str, list[str]]:
    """The first cell of a column, and the others with a content."""
    head, *body = ("" if row[index] is None else str(row[index]).strip() for row in rows)
    return head, [cell for cell in body if cell]


def _is_above_texts(head: str, body: Sequence[str]) -> bool:
    """True for a name above longer cells that are no names, or, with an underscore, above cells of several words."""
    names = [cell for cell in body if is_name(cell)]
    if not is_name(head):
        return False
    if "_" in head:
        return 2 * sum(" " in cell for cell in body) > len(body) and not any("_" in name for name in names)
    is_long = sum(map(len, body)) > 2 * len(head) * len(body) and all(len(cell) > len(head) for cell in body)
    return is_long and not names


def _is_unlike(head: str, body: Sequence[str]) -> bool:
    """True for a name unlike all cells below: these are no names, or a few values other than the name."""
    if not body or any(is_name(cell) for cell in body):
        return len(body) >= _FEW_ROWS and _recurs(head, body)
    return len(body) >= _LEAST_ROWS


def _recurs(head: str, body: Sequence[str]) -> bool:
    """True for a column of recurring cells whose first cell does not recur."""
    counts = Counter(cell.casefold() for cell in body)
    num_single = sum(number == 1 for number in counts.values())
    is_usual = num_single <= _MOST_SINGLE * len(body) and 3 * len(counts) <= len(body)
    return is_usual and not _is_among(head, body)


def _is_among(head: str, body: Sequence[str]) -> bool:
    return head.casefold() in map(str.casefold, body)
