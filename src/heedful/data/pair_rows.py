"""Rows of pairs as a tab-separated file that `heedful.data.corpus.find_pairs` reads as the same pairs."""

from collections.abc import Iterator, Sequence
from typing import Final

from heedful.data.text_columns import is_header

_SPACES: Final = {ord(character): " " for character in "\t\r\n"}
_HEADINGS: Final = ("source", "target")


def tsv_lines(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Write pairs as lines; tabs and line breaks become spaces.

    Cells are quoted, under headings, only where a plain file would be read as another one: where a cell begins with a
    quote, as those of Excel do, or where the first pair looks like headings.

    Args:
        pairs: source and target of each.

    Yields:
        Lines with their ends.

    Example:
        >>> [line.split() for line in tsv_lines([("ja", "yes")])]
        [['ja', 'yes']]
        >>> [line.split() for line in tsv_lines([("German", "English")])]
        [['"source"', '"target"'], ['"German"', '"English"']]
    """
    rows = [(source.translate(_SPACES), target.translate(_SPACES)) for source, target in pairs]
    is_plain = not any(cell.startswith('"') for row in rows for cell in row) and not (rows and is_header(*rows[0]))
    for source, target in rows if is_plain else (_HEADINGS, *rows):
        yield f"{source}\t{target}\n" if is_plain else f"{_quoted(source)}\t{_quoted(target)}\n"


def _quoted(cell: str) -> str:
    doubled = cell.replace('"', '""')
    return f'"{doubled}"'
