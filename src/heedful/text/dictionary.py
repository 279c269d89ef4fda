"""Bilingual dictionary learned from word-aligned pairs, used to translate the unknown words of outputs.

Without alignments, `align_pairs` computes them from the pairs alone by IBM model 1 or 2.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, Self, final, get_args

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError, UsageError, did_you_mean
from heedful.files import written_whole
from heedful.formats import DICTIONARY_FORMAT, KEY
from heedful.text.lines import read_lines
from heedful.text.links import Links, combine_links, links_from_weights
from heedful.text.vocabulary import SPECIAL_TOKENS, UNK

Pair = tuple[Sequence[str], Sequence[str]]
"""Source words and target words."""
Method = Literal["forward", "backward", "intersection", "union", "grow-diag"]
AlignmentModel = Literal["ibm1", "ibm2"]
"""ibm1: every source position is equally probable. ibm2: positions near the diagonal of the pair are more probable."""

TENSION: Final = 4.0
"""Tension lambda of IBM model 2, the initial value of Dyer et al. 2013."""
EMPTY_SHARE: Final = 0.08
"""Probability p_0 of the empty source word in IBM model 2; Dyer et al. 2013."""
CONCENTRATION: Final = 0.01
"""Concentration of the Dirichlet prior of IBM model 2's translations; Dyer et al. 2013."""

LARGEST_PAIR: Final = 40_000
"""Maximum number of source words times target words (200 words on each side); `align_pairs` skips larger pairs."""

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
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        """Create a dictionary.

        Args:
            entries: entries by source word.

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

        Args:
            word: source word.

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

        Returns:
            The dictionary.

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
        with written_whole(path) as stream:
            stream.write(f"#heedful dictionary {DICTIONARY_FORMAT.version}\n")
            for source, entry in sorted(self.entries.items()):
                stream.write(f"{source}\t{entry.target}\t{entry.probability!r}\t{entry.num_links}\n")


def learn_dictionary(pairs: Iterable[Pair], alignments: Iterable[Links], min_count: int = 2) -> Dictionary:
    """Learn the most frequent translation of each source word from alignment links.

    Luong et al. 2015, arXiv:1508.04025, section 3.3, keep links seen 10 times or more in 4.5 million pairs.

    Args:
        pairs: source words and target words.
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
        output: output words, some of them unknown.
        weights: [target, source] attention; rows and columns beyond the two lengths, such as EOS, are ignored.
        source: source words of the text, not their vocabulary entries (which may be unknown).
        dictionary: translations of source words; an empty dictionary copies every word.
        unknown: string that stands for an unknown word.

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


def align_pairs(
    pairs: Sequence[Pair],
    method: Method = "intersection",
    num_iterations: int = 5,
    model: AlignmentModel = "ibm1",
) -> list[Links]:
    """Align words by IBM model 1 or 2, from the pairs alone.

    The translation probabilities t(target word | source word) are learned by expectation maximisation from uniform
    values, with an empty source word for target words without a counterpart. Each target word is then linked to the
    source word with the largest t, the leftmost if several are equal. Brown et al. 1993, J93-2003, section 4.1.

    Model 2, in the form of Dyer et al. 2013, N13-1073, multiplies t by the probability of the position: `EMPTY_SHARE`
    for the empty word, and for the i-th of m source words of the j-th of n target words a part of the rest, in
    proportion to exp(-`TENSION` |i/m - j/n|). Its t has a sparse Dirichlet prior, learned by variational Bayes.

    Args:
        pairs: source words and target words.
        method: "forward" links each target word to one source word, "backward" each source word to one target word;
            the others combine both directions, see `combine_links`. Fewer links make a cleaner dictionary.
        num_iterations: iterations of expectation maximisation, 1 or more.
        model: the alignment model.

    Returns:
        The links (source, target) of each pair; none for a pair larger than `LARGEST_PAIR`.

    Raises:
        UsageError: the method or the model is unknown, or num_iterations is below 1.

    Cost: for 29,000 pairs of 13 words, 4 seconds on one core for both directions, and 450 MB of memory: 80 bytes for
        each combination of a source word and a target word of one pair.
    """
    if method not in get_args(Method):
        raise UsageError(f"no method {method!r}{did_you_mean(method, get_args(Method))}")
    if model not in get_args(AlignmentModel):
        raise UsageError(f"no alignment model {model!r}{did_you_mean(model, get_args(AlignmentModel))}")
    if num_iterations < 1:
        raise UsageError(f"num_iterations must be 1 or more, got {num_iterations}")
    if method == "forward":
        return _align_targets(pairs, num_iterations, model)
    turned = _align_targets([(target, source) for source, target in pairs], num_iterations, model)
    backward = [sorted((source, target) for target, source in links) for links in turned]
    if method == "backward":
        return backward
    forward = _align_targets(pairs, num_iterations, model)
    return [combine_links(one, other, method) for one, other in zip(forward, backward, strict=True)]


def _align_targets(pairs: Sequence[Pair], num_iterations: int, model: AlignmentModel) -> list[Links]:
    """Link each target word to one source word or to none; see `align_pairs`."""
    used = [pair for pair in pairs if _is_used(pair)]
    if not used:
        return [[] for _ in pairs]
    # The empty word comes last, so that a real word wins a tie.
    sources, num_sources, _ = _number([[*source, None] for source, _ in used])
    targets, num_targets, num_words = _number([target for _, target in used])
    # One place per combination of a target token and a source token of a pair; places of a target token are contiguous.
    num_places = np.repeat(num_sources, num_targets)
    starts = np.cumsum(num_places) - num_places
    positions = np.arange(num_places.sum()) - np.repeat(starts, num_places)
    place_sources = np.repeat(np.repeat(np.cumsum(num_sources) - num_sources, num_targets), num_places) + positions
    cells, place_cells = np.unique(
        sources[place_sources] * num_words + np.repeat(targets, num_places), return_inverse=True
    )
    del place_sources
    prior, concentration = None, 0.0
    if model == "ibm2":
        target_positions = np.arange(num_targets.sum()) - np.repeat(np.cumsum(num_targets) - num_targets, num_targets)
        relative = np.repeat((target_positions + 1) / np.repeat(num_targets, num_targets), num_places)
        prior, concentration = _near_diagonal(positions, relative, starts, num_places), CONCENTRATION
    cell_sources = cells // num_words
    translation = _expectation_maximisation(
        place_cells, cell_sources, starts, num_places, num_iterations, prior, concentration
    )
    shares = translation[place_cells] if prior is None else translation[place_cells] * prior
    best = np.flatnonzero(shares == np.repeat(np.maximum.reduceat(shares, starts), num_places))
    chosen = positions[best[np.searchsorted(best, starts)]]  # leftmost best source position of each target token
    rows = iter(np.split(chosen, np.cumsum(num_targets)[:-1]))
    return [_links(next(rows).tolist(), len(pair[0])) if _is_used(pair) else [] for pair in pairs]


def _is_used(pair: Pair) -> bool:
    return 0 < len(pair[0]) * len(pair[1]) <= LARGEST_PAIR


def _links(chosen: Sequence[int], source_length: int) -> Links:
    return sorted((source, target) for target, source in enumerate(chosen) if source < source_length)


def _number(sentences: Sequence[Sequence[str | None]]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Word ids of all sentences, concatenated; the length of each sentence; and the number of distinct words."""
    numbers: dict[str | None, int] = {}
    flat = [numbers.setdefault(word, len(numbers)) for words in sentences for word in words]
    lengths = [len(words) for words in sentences]
    return np.array(flat, dtype=np.int64), np.array(lengths, dtype=np.int64), len(numbers)


def _expectation_maximisation(
    place_cells: NDArray[np.int64],
    cell_sources: NDArray[np.int64],
    starts: NDArray[np.int64],
    num_places: NDArray[np.int64],
    num_iterations: int,
    prior: NDArray[np.float64] | None,
    concentration: float,
) -> NDArray[np.float64]:
    """Translation probabilities [cell]: t(target word | source word) of each two words that share a sentence pair.

    With a prior [place] of positions, shares are in proportion to it too. With a concentration above 0, a translation
    is exp(E[log t]) under the posterior Dirichlet distribution.
    """
    translation = np.ones(len(cell_sources))
    for _ in range(num_iterations):
        shares = translation[place_cells]
        if prior is not None:
            shares *= prior
        shares /= np.repeat(np.add.reduceat(shares, starts), num_places)
        expected = np.bincount(place_cells, shares, minlength=len(cell_sources)) + concentration
        totals = np.bincount(cell_sources, expected)[cell_sources]
        translation = np.exp(_digamma(expected) - _digamma(totals)) if concentration else expected / totals
    return translation


def _near_diagonal(
    positions: NDArray[np.int64],
    relative: NDArray[np.float64],
    starts: NDArray[np.int64],
    num_places: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Prior probability [place] of each source position, given the relative position [place] of the target word."""
    num_words = np.repeat(num_places - 1, num_places)  # without the empty word, which is the last place
    nearness = np.exp(-TENSION * np.abs((positions + 1) / num_words - relative))
    nearness[positions == num_words] = 0.0
    prior = (1 - EMPTY_SHARE) * nearness / np.repeat(np.add.reduceat(nearness, starts), num_places)
    prior[positions == num_words] = EMPTY_SHARE
    return prior


def _digamma(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Digamma function of positive numbers: recurrence to 6 or more, then the asymptotic series; error below 1e-9."""
    result, shifted = np.zeros_like(values), values.copy()
    for _ in range(6):
        result -= 1 / shifted
        shifted += 1
    square = 1 / shifted**2
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))))
    return result + np.log(shifted) - 0.5 / shifted - series
