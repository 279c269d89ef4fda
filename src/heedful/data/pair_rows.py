"""Rows of pairs as a tab-separated file that `heedful.data.corpus.find_pairs` reads as the same pairs."""

from collections.abc import Iterable, Iterator, Sequence
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
    is_plain = not any(cell.startswith('"') for row in pairs for cell in row) and not (pairs and is_header(*pairs[0]))
    if not is_plain:
        yield from quoted_lines([_HEADINGS, *pairs])
        return
    for row in pairs:
        yield "\t".join(cell.translate(_SPACES) for cell in row) + "\n"


def quoted_lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Write rows as lines of quoted cells; tabs and line breaks become spaces.

    Yields:
        Lines with their ends.
    """
    for row in rows:
        yield "\t".join(map(_quoted, row)) + "\n"


def _quoted(cell: str) -> str:
    doubled = cell.translate(_SPACES).replace('"', '""')
    return f'"{doubled}"'
