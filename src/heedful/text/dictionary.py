"""Bilingual dictionary learned from word-aligned pairs, used to translate the unknown words of outputs."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError, UsageError
from heedful.files.atomic_write import atomic_write
from heedful.files.formats import DICTIONARY_FORMAT, KEY
from heedful.text.lines import read_lines
from heedful.text.links import Links, links_from_weights
from heedful.text.vocabulary import SPECIAL_TOKENS, UNK
from heedful.text.word_alignment import Pair

_HEADER: Final = re.compile(r"#heedful dictionary (\d{1,9})")
# Characters that a line of a table, or UTF-8, cannot represent; a byte order mark would be lost at the start of a file.
_NOT_IN_A_CELL: Final = re.compile("[\t\n\r\0\ufeff\ud800-\udfff]")


class Entry(NamedTuple):
    """Translation of a source word."""

    target: str
    probability: float
    """Share of the source word's links that lead to this translation, in (0, 1]."""
    num_links: int
    """Number of links that lead to this translation; 1 in a dictionary written by hand."""


@final
class Dictionary:
    """Dictionary with one translation per source word.

    On disk, each entry is a line ``source<TAB>target<TAB>probability<TAB>count``.

    Example:
        >>> dictionary = Dictionary({"Haus": Entry("house", 1.0, 3)})
        >>> dictionary.translate("Haus"), dictionary.translate("Meyer")
        ('house', 'Meyer')
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        """Create a dictionary.

        Raises:
            DataError: a word is empty or has a tab or another character that a table cannot represent, or a number is
                out of range.
        """
        for source, entry in entries.items():
            for word in (source, entry.target):
                if not word or _NOT_IN_A_CELL.search(word):
                    raise DataError(f"dictionary: the word {word!r} is empty or has a character that no table can hold")
            if not 0 < entry.probability <= 1 or entry.num_links < 1:
                raise DataError(
                    f"dictionary: {source!r} has probability {entry.probability} and count {entry.num_links}; "
                    "expected more than 0 to 1, and 1 or more"
                )
        self.entries: Final = dict(entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, word: object) -> bool:
        return word in self.entries

    def translate(self, word: str) -> str:
        """Translate a word.

        Returns:
            The translation; the word itself if it has no entry, which is right for names and numbers.
        """
        entry = self.entries.get(word)
        return word if entry is None else entry.target

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a dictionary written by `save`, or by hand with the first two columns only.

        Args:
            path: the file, gzip or not.

        Raises:
            DataError: the file cannot be read or is not a dictionary; the message names file:line.
            NewerFormat: a newer heedful wrote it.
        """
        entries: dict[str, Entry] = {}
        for number, line in enumerate(read_lines(path, nul="refuse"), 1):
            cells = line.split("\t")
            if number == 1 and (version := _HEADER.fullmatch(line)):
                DICTIONARY_FORMAT.check(path, {KEY: int(version[1])})
                continue
            if len(cells) not in (2, 4):
                problem = f"{len(cells)} column{'' if len(cells) == 1 else 's'}"
                raise DataError(f"{path}:{number}: {problem}; expected source, target, probability and count")
            if cells[0] in entries:
                raise DataError(f"{path}:{number}: {cells[0]!r} has a translation already; keep one")
            try:
                entry = Entry(cells[1], *((float(cells[2]), int(cells[3])) if len(cells) == 4 else (1.0, 1)))
                cls({cells[0]: entry})
            except ValueError:
                raise DataError(f"{path}:{number}: {cells[2:]} is no probability and count") from None
            except DataError as error:
                raise DataError(f"{path}:{number}: {error}") from None
            entries[cells[0]] = entry
        return cls(entries)

    def save(self, path: Path) -> None:
        """Write the dictionary, in code-point order of the source words.

        Args:
            path: the file; an existing file is replaced only when the new one is complete.
        """
        with atomic_write(path) as stream:
            stream.write(f"#heedful dictionary {DICTIONARY_FORMAT.version}\n")
            for source, entry in sorted(self.entries.items()):
                stream.write(f"{source}\t{entry.target}\t{entry.probability!r}\t{entry.num_links}\n")


def learn_dictionary(pairs: Iterable[Pair], alignments: Iterable[Links], min_count: int = 2) -> Dictionary:
    """Learn the most frequent translation of each source word from alignment links.

    Luong et al. 2015, arXiv:1508.04025, section 3.3, keep links seen 10 times or more in 4.5 million pairs.

    Args:
        alignments: links (source, target) of each pair.
        min_count: minimum number of links of an entry, 1 or more.

    Returns:
        The dictionary; among equally frequent translations the first in code-point order. Words that a table cannot
        represent are left out.

    Raises:
        DataError: the number of alignments differs from the number of pairs, or a link is outside its pair.
        UsageError: min_count is below 1.

    Example:
        >>> pairs = [("das Haus".split(), "the house".split()), ("das Buch".split(), "the book".split())]
        >>> learn_dictionary(pairs, [[(0, 0), (1, 1)], [(0, 0), (1, 1)]]).entries
        {'das': Entry(target='the', probability=1.0, num_links=2)}
    """
    if min_count < 1:
        raise UsageError(f"min_count must be 1 or more, got {min_count}")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    pairs, alignments = list(pairs), list(alignments)
    if len(pairs) != len(alignments):
        raise DataError(f"{len(pairs)} pairs have {len(alignments)} alignments; there must be one for each")
    for number, ((source, target), links) in enumerate(zip(pairs, alignments, strict=True), 1):
        for left, right in links:
            if not (0 <= left < len(source) and 0 <= right < len(target)):
                lengths = f"{len(source)} source and {len(target)} target words"
                raise DataError(f"pair {number}: link {left}-{right} leads out of its {lengths}; were words cut anew?")
            counts[source[left]][target[right]] += 1
    entries: dict[str, Entry] = {}
    for word, linked in counts.items():
        target, count = min(linked.items(), key=lambda item: (-item[1], item[0]))
        if count >= min_count and word and target and not _NOT_IN_A_CELL.search(word + target):
            entries[word] = Entry(target, count / linked.total(), count)
    return Dictionary(entries)


def replace_unknown(
    output: Sequence[str],
    weights: NDArray[np.floating],
    source: Sequence[str],
    dictionary: Dictionary,
    unknown: str = SPECIAL_TOKENS[UNK],
) -> list[str]:
    """Replace the unknown words of an output.

    An unknown word becomes the translation of the source word that it attends to most, or a copy of that source word if
    the dictionary has no entry. Luong et al. 2015, arXiv:1508.04025, section 3.3; Jean et al. 2015, arXiv:1412.2007,
    section 3.3.

    Args:
        weights: [target, source] attention; rows and columns beyond the two lengths, such as EOS, are ignored.
        source: source words of the text, not their vocabulary entries (which may be unknown).
        dictionary: translations of source words; an empty dictionary copies every word.

    Returns:
        The output words; an unknown word that attends to no source word stays unknown.

    Raises:
        ShapeError: `weights` is smaller than the two lengths.

    Example:
        >>> dictionary = Dictionary({"Haus": Entry("house", 1.0, 3)})
        >>> weights = np.array([[0.9, 0.1, 0.0], [0.1, 0.2, 0.7], [0.1, 0.8, 0.1]])
        >>> replace_unknown(["the", "<unk>", "<unk>"], weights, ["Kuhs", "Haus", "Meyer"], dictionary)
        ['the', 'Meyer', 'house']
    """
    attended = {target: position for position, target in links_from_weights(weights, len(source), len(output))}
    return [
        dictionary.translate(source[attended[index]]) if word == unknown and index in attended else word
        for index, word in enumerate(output)
    ]
