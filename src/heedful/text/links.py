"""Word alignments: notations, files, links from attention weights, symmetrisation, pieces to words.

A link is a pair (source, target) of positions counted from 0; an alignment is a sorted list of links.
"""

import re
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError, ShapeError, UsageError, did_you_mean
from heedful.text.lines import read_lines

Links = list[tuple[int, int]]
Combination = Literal["intersection", "union", "grow-diag"]

# At most nine digits: no sentence is longer, and Python refuses to parse numbers of thousands of digits.
_LINK: Final = re.compile(r"([0-9]{1,9})([-p?])([0-9]{1,9})")
_NAACL: Final = re.compile(r"([0-9]{1,9}) ([0-9]{1,9}) ([0-9]{1,9})(?: ([SP]))?(?: [0-9.]+)?(?: ([SP]))?")
_RWTH: Final = re.compile(r"([SP]) ([0-9]{1,9}) ([0-9]{1,9})")
_RWTH_SENTENCE: Final = re.compile(r"SENT: ?([0-9]{1,9})")
_NEIGHBOURS: Final = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


class GoldLinks(NamedTuple):
    """Manual alignment: `sure` links, and `possible` links, which include the sure links (Och and Ney 2003)."""

    sure: Links
    possible: Links


def format_pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """Write an alignment in Pharaoh format: source-target, counted from 0.

    Args:
        links: the links, in any order.

    Returns:
        The distinct links, sorted and separated by spaces; an empty string for no links.

    Example:
        >>> format_pharaoh([(1, 2), (0, 0)])
        '0-0 1-2'
    """
    return " ".join(f"{source}-{target}" for source, target in sorted(set(links)))


def parse_pharaoh(line: str, *, one_based: bool = False, where: str = "alignment") -> Links:
    """Read an alignment in Pharaoh format.

    Args:
        line: links such as ``0-0 1-2``, source-target, separated by white space.
        one_based: whether positions are counted from 1; the links returned are counted from 0 all the same.
        where: file:line, for messages.

    Returns:
        The links, sorted, each once.

    Raises:
        DataError: a word is not a link, a link is marked as possible, or a one-based position is 0.

    Example:
        >>> parse_pharaoh("2-1 1-1", one_based=True)
        [(0, 0), (1, 0)]
    """
    gold = parse_gold(line, one_based=one_based, where=where)
    if len(gold.possible) > len(gold.sure):
        raise DataError(f"{where}: possible links (such as 0p0) in an alignment that should have none; expected 0-0")
    return gold.sure


def parse_gold(line: str, *, one_based: bool = False, where: str = "alignment") -> GoldLinks:
    """Read a manual alignment: ``0-0`` is a sure link; ``0p0`` or ``0?0`` is a possible one.

    Args:
        line: links, source first, separated by white space.
        one_based: whether positions are counted from 1; the links returned are counted from 0 all the same.
        where: file:line, for messages.

    Returns:
        The sure links, and the possible links, which include the sure ones; sorted, without duplicates.

    Raises:
        DataError: a word is not a link, or a one-based position is 0.

    Example:
        >>> parse_gold("0-0 1p2")
        GoldLinks(sure=[(0, 0)], possible=[(0, 0), (1, 2)])
    """
    marked: list[tuple[tuple[int, int], bool]] = []
    first = 1 if one_based else 0
    for text in line.split():
        match = _LINK.fullmatch(text)
        if match is None:
            raise DataError(f"{where}: {text[:40]!r} is not a link; expected source-target, such as 0-0")
        link = int(match[1]) - first, int(match[3]) - first
        if min(link) < 0:
            raise DataError(f"{where}: {text!r} names position 0, but positions are counted from 1 here")
        marked.append((link, match[2] == "-"))
    return _gold(marked)


def _gold(marked: Sequence[tuple[tuple[int, int], bool]]) -> GoldLinks:
    return GoldLinks(sorted({link for link, is_sure in marked if is_sure}), sorted({link for link, _ in marked}))


def read_gold(path: Path, *, one_based: bool = False) -> list[GoldLinks]:
    """Read manual alignments with one sentence per line and ``p`` or ``?`` in possible links.

    Args:
        path: the file, gzip or not; an empty line is a sentence without links.
        one_based: whether the file counts positions from 1, as RWTH's ``.talp`` files do.

    Returns:
        The sure and possible links of each line.

    Raises:
        DataError: the file cannot be read, or a line is not an alignment; the message names file:line.
    """
    return [
        parse_gold(line, one_based=one_based, where=f"{path}:{number}")
        for number, line in enumerate(read_lines(path), 1)
    ]


def read_numbered_gold(path: Path) -> dict[int, GoldLinks]:
    """Read manual alignments with one link per line, in either of two notations.

    NAACL: ``sentence source target``, optionally followed by S or P (default S) and a confidence, which is ignored;
    positions are counted from 1, and 0 stands for no word (Mihalcea and Pedersen 2003, W03-0301). RWTH: a line
    ``SENT: 0``, then a line ``S source target`` or ``P source target`` for each link of the sentence; positions are
    counted from 0.

    Args:
        path: the file, gzip or not; empty lines are ignored.

    Returns:
        Links, counted from 0, by sentence number of the file. A sentence that the file does not name is missing; one
        that it names without links has empty lists.

    Raises:
        DataError: the file cannot be read, or a line is in neither notation; the message names file:line.
    """
    marked: dict[int, list[tuple[tuple[int, int], bool]]] = {}
    sentence = -1  # number in the last line `SENT:`; -1 = no such line yet, so the notation is NAACL's
    for number, line in enumerate(read_lines(path), 1):
        text = " ".join(line.split())
        if match := _RWTH_SENTENCE.fullmatch(text):
            sentence = int(match[1])
            marked.setdefault(sentence, [])
        elif sentence >= 0 and (match := _RWTH.fullmatch(text)):
            marked[sentence].append(((int(match[2]), int(match[3])), match[1] == "S"))
        elif sentence < 0 and (match := _NAACL.fullmatch(text)):
            link = int(match[2]) - 1, int(match[3]) - 1
            links = marked.setdefault(int(match[1]), [])
            if min(link) >= 0:
                links.append((link, "P" not in (match[4], match[5])))
        elif text:
            expected = "'S source target' or 'P source target'" if sentence >= 0 else "'sentence source target S'"
            raise DataError(f"{path}:{number}: {text[:40]!r} is not a link; expected {expected}")
    return {sentence: _gold(links) for sentence, links in marked.items()}


def links_from_weights(weights: NDArray[np.floating], source_length: int, target_length: int) -> Links:
    """Link each target token to the source token it attends to most.

    The source's EOS is left out before the maximum is taken, so a token that attends mostly to EOS still gets a link.
    Luong et al. 2015, arXiv:1508.04025, section 4.5: one link per target word.

    Args:
        weights: [token, position] attention; rows and columns beyond the two lengths (EOS, padding) are ignored.
        source_length: number of source tokens, without EOS.
        target_length: number of target tokens, without EOS.

    Returns:
        The links. Among equal weights the leftmost wins; a token whose weights are all zero has no link.

    Raises:
        ShapeError: `weights` is smaller than the two lengths.

    Example:
        >>> links_from_weights(np.array([[0.1, 0.3, 0.6], [0.8, 0.1, 0.1], [0.0, 0.0, 1.0]]), 2, 2)
        [(0, 1), (1, 0)]
    """
    inner = _inner(weights, source_length, target_length)
    if inner.size == 0:
        return []
    best = inner.argmax(axis=1)
    return sorted((int(best[token]), int(token)) for token in np.flatnonzero(inner.max(axis=1) > 0))


def _inner(weights: NDArray[np.floating], source_length: int, target_length: int) -> NDArray[np.floating]:
    if weights.ndim != 2 or weights.shape[0] < target_length or weights.shape[1] < source_length:
        raise ShapeError(
            f"weights have shape {list(weights.shape)}; expected at least [{target_length}, {source_length}]"
        )
    return weights[:target_length, :source_length]


def combine_links(
    forward: Iterable[tuple[int, int]], backward: Iterable[tuple[int, int]], method: Combination = "grow-diag"
) -> Links:
    """Combine the alignments of two directions (symmetrisation).

    "grow-diag" starts from the intersection and adds, one after another, links of the union that neighbour an accepted
    link, diagonally too, and whose source word or target word has no link yet. Koehn, Och and Marcu 2003, N03-1017,
    section 4.3; the paper leaves the order open, here links are visited by target, then source.

    Args:
        backward: links of the other direction, also as (source, target).
        method: "intersection" for few, precise links; "union" for many; "grow-diag" between the two.

    Returns:
        The combined links, sorted.

    Raises:
        UsageError: the method is unknown.

    Example:
        >>> combine_links([(0, 0), (1, 1), (3, 5)], [(0, 0), (0, 1), (2, 1)])
        [(0, 0), (0, 1), (1, 1), (2, 1)]
    """
    if method not in get_args(Combination):
        raise UsageError(f"no method {method!r}{did_you_mean(method, get_args(Combination))}")
    one, other = set(forward), set(backward)
    if method == "grow-diag":
        return sorted(_grow(one & other, one | other))
    return sorted(one & other if method == "intersection" else one | other)


def _grow(links: set[tuple[int, int]], union: set[tuple[int, int]]) -> set[tuple[int, int]]:
    sources, targets = {source for source, _ in links}, {target for _, target in links}
    # Words only gain links, so a rejected neighbour stays rejected, and each link needs one visit. A new link that lies
    # before the current one waits for the next round, as in repeated passes over the whole matrix.
    now, later = sorted((target, source) for source, target in links), list[tuple[int, int]]()
    while now:
        here = heappop(now)
        for down, right in _NEIGHBOURS:
            target, source = here[0] + down, here[1] + right
            is_new = (source, target) in union and (source, target) not in links
            if is_new and not (source in sources and target in targets):
                links.add((source, target))
                sources.add(source)
                targets.add(target)
                heappush(now if (target, source) > here else later, (target, source))
        if not now:
            now, later = later, now
    return links


def merge_weights(
    weights: NDArray[np.floating], source_words: Sequence[int], target_words: Sequence[int]
) -> NDArray[np.float64]:
    """Convert attention weights between pieces to weights between words.

    Weights are summed over the pieces of a source word and averaged over the pieces of a target word, so rows that sum
    to 1 still do, unless a dropped column has weight.

    Args:
        weights: [piece, position] attention; rows and columns beyond the two lists (EOS, padding) are dropped.
        source_words: 0-based word index of each source piece; -1 drops the piece, such as EOS.
        target_words: 0-based word index of each target piece.

    Returns:
        [target word, source word] weights; zero for a word without pieces.

    Raises:
        ShapeError: `weights` is smaller than the lists.

    Example:
        >>> merge_weights(np.array([[0.2, 0.3, 0.5], [0.4, 0.4, 0.2]]), [0, 0, -1], [0, 0]).round(2).tolist()
        [[0.65]]
    """
    inner = _inner(weights, len(source_words), len(target_words))
    shares = _membership(target_words)
    shares /= np.maximum(shares.sum(axis=0), 1)
    return shares.T @ inner.astype(np.float64) @ _membership(source_words)


def _membership(words: Sequence[int]) -> NDArray[np.float64]:
    """Membership matrix [piece, word]: 1 if the piece belongs to the word, else 0."""
    return (np.asarray(words, dtype=np.int64)[:, None] == np.arange(max(words, default=-1) + 1)).astype(np.float64)
