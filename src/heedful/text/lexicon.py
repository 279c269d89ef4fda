"""Lexicon: how strongly source and target words are associated, learned from the training pairs of a model.

Attention says where a word of an output comes from, and is blurred over neighbours; a lexicon knows which words
translate each other, and not which of two equal ones. Links between words need both.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.files.atomic_write import atomic_write
from heedful.files.formats import KEY, LEXICON_FORMAT
from heedful.text.lines import read_lines
from heedful.text.tag_placement import words
from heedful.text.word_alignment import associations

LEAST: Final = 0.02
"""Smallest association that is kept."""
_HEADER: Final = re.compile(r"#heedful lexicon (\d{1,9})")


@final
class Lexicon:
    """Associations of words in lower case.

    On disk, each line is a source word, then each target word with its association, separated by tabs.
    """

    def __init__(self, table: Mapping[str, Mapping[str, float]]) -> None:
        self._table: Final = table

    def __len__(self) -> int:
        return len(self._table)

    @classmethod
    def learn(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        """Learn a lexicon.

        Args:
            pairs: source and target texts.
        """
        return cls(associations([(words_of(source), words_of(target)) for source, target in pairs], LEAST))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a lexicon written by `save`.

        Raises:
            DataError: the file cannot be read or is no lexicon; the message names file:line.
            NewerFormat: a newer heedful wrote it.
        """
        lines = iter(read_lines(path, nul="refuse"))
        header = _HEADER.fullmatch(next(lines, ""))
        if header is None:
            raise DataError(f"{path}:1: no lexicon; copy the file again")
        LEXICON_FORMAT.check(path, {KEY: int(header[1])})
        table: dict[str, dict[str, float]] = {}
        for number, line in enumerate(lines, 2):
            source, *cells = line.split("\t")
            try:
                table[source] = dict(zip(cells[::2], map(float, cells[1::2]), strict=True))
            except ValueError:
                raise DataError(f"{path}:{number}: not words with numbers; copy the file again") from None
        return cls(table)

    def save(self, path: Path) -> None:
        """Write the lexicon.

        Args:
            path: the file; an existing file is replaced only when the new one is complete.
        """
        with atomic_write(path) as stream:
            stream.write(f"#heedful lexicon {LEXICON_FORMAT.version}\n")
            for source, targets in sorted(self._table.items()):
                ranked = sorted(targets.items(), key=lambda item: (-item[1], item[0]))
                stream.write("\t".join([source, *(f"{target}\t{share:.2f}" for target, share in ranked)]) + "\n")

    def best(self, word: str) -> str:
        """Look up the target word that a source word is associated with the most; empty where there is none.

        Args:
            word: source word in lower case.
        """
        row = self._table.get(word, {})
        return max(row, key=lambda target: row[target], default="")

    def associations(self, sources: Sequence[str], targets: Sequence[str]) -> NDArray[np.float64]:
        """Look up the associations between the words of a pair.

        Args:
            sources: source words in lower case.
            targets: target words in lower case.

        Returns:
            [target, source] associations in [0, 1].

        Example:
            >>> Lexicon({"hund": {"dog": 0.9}}).associations(["ein", "hund"], ["dog"])
            array([[0. , 0.9]])
        """
        rows: list[Mapping[str, float]] = [self._table.get(word, {}) for word in sources]
        return np.array([[row.get(word, 0.0) for row in rows] for word in targets]).reshape(len(targets), len(sources))


def words_of(text: str) -> list[str]:
    """Split a text into the words that tags and links know, in lower case.

    Example:
        >>> words_of("Don't go.")
        ["don't", 'go', '.']
    """
    return [text[start:end].lower() for start, end in words(text, 0, len(text))]
