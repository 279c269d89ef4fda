"""Reading ahead: blocks of a stream are read by another thread while the ones before are in use."""

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final, TypeVar

Item = TypeVar("Item")

BLOCK: Final = 256
"""Number of items that are read at once; few, for each may be a whole document."""


def read_ahead(items: Iterable[Item], size: int = BLOCK) -> Generator[list[Item], None, None]:
    """Divide a stream into blocks, and read the next one while one is in use.

    The two take turns unless one is in code that lets other threads of Python run, such as that of SentencePiece.

    Args:
        items: any number of items; what their reading raises is raised here, at their place.
        size: number of items in a block; the last may have fewer.

    Yields:
        The blocks in order.

    Example:
        >>> [*read_ahead("abcde", 2)]
        [['a', 'b'], ['c', 'd'], ['e']]
    """
    remaining = iter(items)

    def block() -> list[Item]:
        return list(islice(remaining, size))

    with ThreadPoolExecutor(1, "heedful-reading") as pool:
        upcoming = pool.submit(block)
        while current := upcoming.result():
            upcoming = pool.submit(block)
            yield current
