"""Word alignments: from attention weights to links, from pieces to words, and Pharaoh's notation.

A link is a pair (source, target) of positions counted from 0; an alignment is a sorted list of links.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError, ShapeError

Links = list[tuple[int, int]]

# Nine digits: no sentence has a position beyond them, and Python refuses to read thousands.
_LINK = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})")


class GoldLinks(NamedTuple):
    """A hand-made alignment: `sure` links, and `possible` ones, which include the sure (Och and Ney 2003)."""

    sure: Links
    possible: Links


def links_from_weights(weights: NDArray[np.floating], source_length: int, target_length: int) -> Links:
    """Link each target token to the source token it attends to most.

    End marks are left out before the maximum is taken, so attention that rests on the source's end mark does not
    leave a token without its link. Luong et al. 2015, arXiv:1508.04025, section 4.5: one link per target word.

    Args:
        weights: [token, position] attention; rows and columns beyond the two lengths (end marks, filling) are ignored.
        source_length: tokens of the source, without its end mark.
        target_length: tokens of the target, without its end mark.

    Returns:
        The links; of equal weights the leftmost wins, and a token that attends to no source token has none.

    Raises:
        ShapeError: `weights` is smaller than the lengths say.

    Example:
        >>> links_from_weights(np.array([[0.1, 0.3, 0.6], [0.8, 0.1, 0.1], [0.0, 0.0, 1.0]]), 2, 2)
        [(0, 1), (1, 0)]
    """
    if weights.ndim != 2 or weights.shape[0] < target_length or weights.shape[1] < source_length:
        raise ShapeError(
            f"weights have shape {list(weights.shape)}; expected at least [{target_length}, {source_length}]"
        )
    inner = weights[:target_length, :source_length]
    if inner.size == 0:
        return []
    best = inner.argmax(axis=1)
    return sorted((int(best[token]), int(token)) for token in np.flatnonzero(inner.max(axis=1) > 0))


def merge_pieces(links: Iterable[tuple[int, int]], source_words: Sequence[int], target_words: Sequence[int]) -> Links:
    """Turn links between pieces into links between words: words are linked if any of their pieces are.

    Args:
        links: links between pieces.
        source_words: for each source piece the word it belongs to; -1 for a piece of no word, such as a mark.
        target_words: the same for the target.

    Returns:
        The links between words, each once.

    Raises:
        ShapeError: a link names a piece that does not exist.

    Example:
        >>> merge_pieces([(0, 0), (1, 0), (2, 1)], [0, 0, 1], [0, 1])
        [(0, 0), (1, 1)]
    """
    merged: set[tuple[int, int]] = set()
    for source, target in links:
        if not (0 <= source < len(source_words) and 0 <= target < len(target_words)):
            raise ShapeError(
                f"link {source}-{target} is outside {len(source_words)} source and {len(target_words)} target pieces"
            )
        words = source_words[source], target_words[target]
        if min(words) >= 0:
            merged.add(words)
    return sorted(merged)


def format_pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """Write an alignment in Pharaoh's notation, source-target, counted from 0.

    Args:
        links: the links, in any order.

    Returns:
        The links sorted, each once, separated by a space; empty for none.

    Example:
        >>> format_pharaoh([(1, 2), (0, 0)])
        '0-0 1-2'
    """
    return " ".join(f"{source}-{target}" for source, target in sorted(set(links)))


def parse_pharaoh(line: str, *, one_based: bool = False, where: str = "alignment") -> Links:
    """Read an alignment in Pharaoh's notation.

    Args:
        line: links such as ``0-0 1-2``, source-target, separated by white space.
        one_based: whether positions are counted from 1; the links returned are counted from 0 all the same.
        where: file:line, for messages.

    Returns:
        The links, sorted, each once.

    Raises:
        DataError: something is not a link, or position 0 stands where positions are counted from 1.

    Example:
        >>> parse_pharaoh("2-1 1-1", one_based=True)
        [(0, 0), (1, 0)]
    """
    gold = parse_gold(line, one_based=one_based, where=where)
    if len(gold.possible) > len(gold.sure):
        raise DataError(f"{where}: possible links (such as 0p0) in an alignment that should have none; expected 0-0")
    return gold.sure


def parse_gold(line: str, *, one_based: bool = False, where: str = "alignment") -> GoldLinks:
    """Read a hand-made alignment, where ``0-0`` is a sure link and ``0p0`` a possible one.

    Args:
        line: links, source first, separated by white space.
        one_based: whether positions are counted from 1; the links returned are counted from 0 all the same.
        where: file:line, for messages.

    Returns:
        The sure links, and the possible ones with the sure among them; sorted, each once.

    Raises:
        DataError: something is not a link, or position 0 stands where positions are counted from 1.

    Example:
        >>> parse_gold("0-0 1p2")
        GoldLinks(sure=[(0, 0)], possible=[(0, 0), (1, 2)])
    """
    sure: set[tuple[int, int]] = set()
    possible: set[tuple[int, int]] = set()
    first = 1 if one_based else 0
    for text in line.split():
        match = _LINK.fullmatch(text)
        if match is None:
            raise DataError(f"{where}: {text[:40]!r} is not a link; expected source-target, such as 0-0")
        link = int(match[1]) - first, int(match[3]) - first
        if min(link) < 0:
            raise DataError(f"{where}: {text!r} names position 0, but positions are counted from 1 here")
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldLinks(sorted(sure), sorted(possible))
