"""Pronunciation lexicons: words with the phones of each pronunciation, as CMUdict writes them."""

import re
from collections.abc import Sequence
from typing import Final, final

from heedful.data.rows import RowFormat
from heedful.errors import DataError

_PHONE: Final = (
    "(?:(?:AA|AE|AH|AO|AW|AY|EH|ER|EY|IH|IY|OW|OY|UH|UW)[0-2]?|B|CH|D|DH|F|G|HH|JH|K|L|M|N|NG|P|R|S|SH|T|TH|V|W|Y|Z|ZH"
    "|SIL|SPN|NSN)"
)
"""Phone of ARPAbet, with the stress of a vowel; silence and noises, as Kaldi has them."""
_ENTRY: Final = re.compile(rf"(\S+?)(?:\(\d+\))?(?:  +(\S.*)| ({_PHONE}(?: {_PHONE})*))")
"""Entry of a pronunciation lexicon: a word, the number of its variant if it has several, two spaces, and phones. One
space is enough before those of ARPAbet, as CMUdict has it today."""
_ONE_PHONE: Final = re.compile(_PHONE)
_VOWEL: Final = re.compile(r"\b(?:AA|AE|AH|AO|AW|AY|EH|ER|EY|IH|IY|OW|OY|UH|UW)\b")
_LEAST_VOWELS: Final = 6
"""Number of different vowels that entries without stresses have, where there is one space only."""
_COMMENTS: Final = (";;;", "#")


@final
class LexiconRows(RowFormat):
    """Pronunciation lexicon as of CMUdict: ``WORD  P H O N E S``, further pronunciations as ``WORD(2)``, comments."""

    has_ranks = True

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
            Whether each is a comment or an entry without tabs, and there is an entry; with stresses or many vowels of
            ARPAbet where there is one space only, as texts in capitals have neither.
        """
        entries = [line for line in lines if not line.startswith(_COMMENTS)]
        matches = [None if "\t" in line else _ENTRY.fullmatch(_without_comment(line)) for line in entries]
        rest = " ".join(entry[3] or "0" for entry in matches if entry)
        has_words = any(entry and not _ONE_PHONE.fullmatch(entry[1]) for entry in matches)
        is_told = any(map(str.isdigit, rest)) or (has_words and len({*_VOWEL.findall(rest)}) >= _LEAST_VOWELS)
        return bool(entries) and None not in matches and is_told

    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        if line.startswith(_COMMENTS):
            return "", ""
        entry = _ENTRY.fullmatch(_without_comment(line))
        if entry is None:
            raise DataError(f"{name}:{number}: no entry of a lexicon; write a word, two spaces, and its phones")
        word, phones = entry[1], " ".join((entry[2] or entry[3]).split())
        return (phones, word) if self._is_swapped else (word, phones)

    def describe(self) -> str:
        return "pronunciation lexicon: words, two spaces, phones"


def _without_comment(line: str) -> str:
    return line.partition(" #")[0].rstrip()
