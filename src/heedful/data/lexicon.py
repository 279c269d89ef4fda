"""Pronunciation lexicons: words with the phones of each pronunciation, as CMUdict writes them."""

import re
from collections.abc import Sequence
from typing import Final, final

from heedful.data.rows import RowFormat
from heedful.errors import DataError

_ENTRY: Final = re.compile(r"(\S+?)(?:\(\d+\))?  +(\S.*)")
"""Entry of a pronunciation lexicon: a word, the number of its variant if it has several, two spaces, and phones."""
_COMMENTS: Final = (";;;", "#")


@final
class LexiconRows(RowFormat):
    """Pronunciation lexicon as of CMUdict: ``WORD  P H O N E S``, further pronunciations as ``WORD(2)``, comments."""

    def __init__(self, columns: tuple[int, int]) -> None:
        """Store the order of the sides.

        Args:
            columns: (1, 2) from words to phones, (2, 1) from phones to words.
        """
        self.columns = columns
        self._is_swapped: Final = columns == (2, 1)

    @staticmethod
    def suits(lines: Sequence[str]) -> bool:
        """Tell whether lines are those of a lexicon.

        Args:
            lines: the first non-empty lines.

        Returns:
            Whether each is a comment or an entry without tabs, and there is an entry.
        """
        entries = [line for line in lines if not line.startswith(_COMMENTS)]
        return bool(entries) and all("\t" not in line and _ENTRY.fullmatch(line) for line in entries)

    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        if line.startswith(_COMMENTS):
            return "", ""
        entry = _ENTRY.fullmatch(line.partition(" #")[0].rstrip())
        if entry is None:
            raise DataError(f"{name}:{number}: no entry of a lexicon; write a word, two spaces, and its phones")
        word, phones = entry[1], " ".join(entry[2].split())
        return (phones, word) if self._is_swapped else (word, phones)

    def describe(self) -> str:
        return "pronunciation lexicon: words, two spaces, phones"
