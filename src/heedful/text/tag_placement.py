"""Placement of inline tags in a translation: each tag goes where the words that it enclosed went, by alignment.

A sentence is translated whole, without its tags. Each word of the translation then votes, with the weights of its
links, for or against lying within a tag; the tag takes the consecutive words with the largest sum of votes. Tags are
placed within their parents and beside their siblings, so that the result is always well formed.

Source: projection of spans as in Zenkel, Wuebker, DeNero 2021, "Automatic Bilingual Markup Transfer", with the weights
of attention in place of the links of an aligner.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple, final

from heedful.text.scripts import UNSPACED, script_of
from heedful.text.tagged_text import OUTERMOST, Tag, TaggedText, weave

_WORD: Final = re.compile(r"[^\W_]++(?:['’][^\W_]++)*+|[^\s]")
_UNALIGNED: Final = -0.05
"""Vote of a word without links: it lies within a tag only between words that do."""


class CharacterLink(NamedTuple):
    """Link between characters of a source and of its translation."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int
    weight: float = 1.0
    """Share of the target's attention, in [0, 1]."""


class AlignedSegment(NamedTuple):
    """Segment of a text that was translated by itself. All places count from the beginning of the whole texts."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int
    links: Sequence[CharacterLink] = ()
    """Links; where there are none, words are taken to go to the same share of the length."""


def words(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Find the words of a part of a text: runs of letters and digits, other characters, and those of unspaced scripts.

    Args:
        start: index of the first character.
        end: index after the last one.

    Yields:
        Start and end of each word.

    Example:
        >>> [*words("Don't go.", 0, 9)]
        [(0, 5), (6, 8), (8, 9)]
    """
    for match in _WORD.finditer(text, start, end):
        first = match.start()
        if match.end() - first == 1 or match[0].isascii():
            yield match.span()
            continue
        for offset, character in enumerate(match[0], first):
            if script_of(character) in UNSPACED:
                if first < offset:
                    yield first, offset
                yield offset, offset + 1
                first = offset + 1
        if first < match.end():
            yield first, match.end()


def place_tags(source: TaggedText, target: str, segments: Sequence[AlignedSegment]) -> TaggedText:
    """Place the tags of a text in its translation.

    Args:
        target: translation of the text without tags.
        segments: parts that were translated by themselves, in order.

    Returns:
        The translation with the same tags in the same order, each within its parent, siblings apart. A tag around whole
        segments stays around them; a tag whose words have no counterpart encloses the word that is nearest, or nothing
        where all words belong to its siblings. An element without text between two spaces stands between two again.

    Cost: number of tags that begin or end within a segment, times the links of that segment.

    Example:
        >>> links = [CharacterLink(0, 3, 4, 7), CharacterLink(4, 7, 0, 3)]
        >>> place_tags(TaggedText("rot neu", (Tag(0, 3),)), "new red", [AlignedSegment(0, 7, 0, 7, links)]).tags[0][:2]
        (4, 7)
    """
    spans = _Spans(source, segments)
    for segment, pieces in zip(segments, spans.pieces, strict=True):
        if pieces:
            for piece, offset in _Placement(source, target, segment).place(pieces).items():
                spans.set(piece, offset)
    return _with_spaces(source, TaggedText(target, tuple(spans.nested(len(target)))))


def _with_spaces(source: TaggedText, output: TaggedText) -> TaggedText:
    """Translation in which a space is on each side of what stands between two spaces in the source."""
    text = source.text
    spaced = {
        index
        for index, tag in enumerate(source.tags)
        if tag.start == tag.end and not tag.is_break and text[max(0, tag.start - 1) : tag.start + 1].isspace()
        if 0 < tag.start < len(text)
    }
    if not spaced:
        return output
    pieces: list[str] = []
    size = offset = behind = 0  # characters written, those read, and those written up to the last such element
    starts, ends = [[0] * len(source.tags) for _ in range(2)]
    for piece in weave(output):
        if isinstance(piece, str):
            pieces.append(piece)
            size += len(piece)
            offset += len(piece)
            continue
        edge, index = piece
        has_spaces = edge == "point" and index in spaced
        if has_spaces and 0 < offset and (size == behind or not pieces[-1][-1].isspace()):
            pieces.append(" ")
            size += 1
        if edge != "close":
            starts[index] = size
        if edge != "open":
            ends[index] = size
        if has_spaces:
            behind = size
            if 0 < offset < len(output.text) and not output.text[offset].isspace():
                pieces.append(" ")
                size += 1
    tags = tuple(tag._replace(start=starts[index], end=ends[index]) for index, tag in enumerate(output.tags))
    return TaggedText("".join(pieces), tags)


class _Piece(NamedTuple):
    """Part of a tag within one segment."""

    tag: int
    start: int
    end: int
    begins: bool
    """Whether the tag begins within the segment; if not, the piece begins with the segment."""
    ends: bool


@final
class _Spans:
    """Places of tags in the translation, put together from their pieces in the segments."""

    def __init__(self, source: TaggedText, segments: Sequence[AlignedSegment]) -> None:
        self._tags: Final = source.tags
        self.pieces: Final[list[list[_Piece]]] = [[] for _ in segments]
        self._starts: Final[dict[int, int]] = {}
        self._ends: Final[dict[int, int]] = {}
        first_places = [each.source_start for each in segments]
        last_places = [each.source_end for each in segments]
        for index, tag in enumerate(source.tags):
            is_point = tag.start == tag.end or not source.text[tag.start : tag.end].strip()
            first = bisect_left(last_places, tag.start) if is_point else bisect_right(last_places, tag.start)
            last = first if is_point else bisect_left(first_places, tag.end) - 1
            if first == len(segments):
                self._starts[index] = self._ends[index] = segments[-1].target_end if segments else 0
                continue
            for number in {first, max(first, last)}:
                segment = segments[number]
                start, end = max(tag.start, segment.source_start), min(tag.end, segment.source_end)
                covers = tag.start <= segment.source_start and tag.end >= segment.source_end
                if is_point:
                    self.pieces[number].append(_Piece(index, start, start, True, True))
                elif not covers:
                    self.pieces[number].append(_Piece(index, start, end, number == first, number == last))
                else:
                    self._starts.setdefault(index, segment.target_start)
                    self._ends[index] = segment.target_end

    def set(self, piece: _Piece, offset: tuple[int, int]) -> None:
        """Set the place of a piece, which is the tag's beginning in its first segment, and its end in its last one."""
        start, end = offset
        self._starts[piece.tag] = min(start, self._starts.get(piece.tag, start))
        self._ends[piece.tag] = max(end, self._ends.get(piece.tag, end))

    def nested(self, size: int) -> Iterator[Tag]:
        """Tags at their places, within their parents."""
        placed: list[Tag] = []
        for index, tag in enumerate(self._tags):
            low, high = placed[tag.parent][:2] if tag.parent != OUTERMOST else (0, size)
            start = min(max(self._starts[index], low), high)
            end = min(max(self._ends[index], start), high)
            placed.append(tag._replace(start=start, end=end))
        yield from placed


@final
class _Placement:
    """Placement of pieces of tags among the words of one segment of the translation."""

    def __init__(self, source: TaggedText, target: str, segment: AlignedSegment) -> None:
        self._source: Final = source
        self._target: Final = target
        self._segment: Final = segment
        self._words: Final = [*words(target, segment.target_start, segment.target_end)]
        self._links: Final = self._links_of_words()
        self._points: Final[dict[tuple[object, ...], int]] = {}

    def place(self, pieces: Sequence[_Piece]) -> dict[_Piece, tuple[int, int]]:
        """Place pieces of tags.

        Args:
            pieces: the pieces in the order of their tags.

        Returns:
            First character and the one after the last, for each piece.
        """
        segment = self._segment
        whole = (segment.source_start, segment.source_end), (segment.target_start, segment.target_end)
        areas = {OUTERMOST: _Area(*whole, 0, len(self._words))}
        placed: dict[_Piece, tuple[int, int]] = {}
        for piece in sorted(pieces, key=self._order({piece.tag for piece in pieces})):
            parent = self._source.tags[piece.tag].parent
            around = parent
            while around not in areas:
                around = self._source.tags[around].parent
            areas[parent] = areas[around]
            area = self._area(piece, areas[parent])
            areas[piece.tag] = area
            placed[piece] = area.target
        return placed

    def _order(self, present: set[int]) -> Callable[[_Piece], tuple[int, int, int]]:
        """Order of placing: parents first; of siblings those bound to an end of the segment, then the others."""
        depths: dict[int, int] = {OUTERMOST: 0}

        def depth(tag: int) -> int:
            chain: list[int] = []
            while tag not in depths:
                chain.append(tag)
                tag = self._source.tags[tag].parent
            for one in reversed(chain):
                depths[one] = depths[self._source.tags[one].parent] + (one in present)
            return depths[chain[0]] if chain else depths[tag]

        return lambda piece: (depth(piece.tag), piece.begins + piece.ends + (piece.start == piece.end), piece.tag)

    def _area(self, piece: _Piece, parent: "_Area") -> "_Area":
        tag = self._source.tags[piece.tag]
        source = piece.start, piece.end
        if piece.start == piece.end:
            # A text may have any number of elements at one place.
            key = tag.is_break, piece.start, parent.source, parent.target, parent.first, parent.last
            if (offset := self._points.get(key)) is None:
                offset = self._break(piece, parent) if tag.is_break else self._point(piece, parent)
                self._points[key] = offset
            return _Area(source, (offset, offset), 0, 0)
        if tag.is_kept and (occurrence := self._kept(source, parent)):
            first = sum(end <= occurrence[0] for _, end in self._words)
            last = sum(start < occurrence[1] for start, _ in self._words)
            parent.taken.update(range(first, last))
            return _Area(source, occurrence, first, last)
        text = self._source.text
        if not (text[parent.source[0] : piece.start] + text[piece.end : parent.source[1]]).strip() and not parent.taken:
            parent.taken.update(range(parent.first, parent.last))
            return _Area(source, parent.target, parent.first, parent.last)
        first, last = self._best(piece, parent)
        if first == last:  # all words belong to siblings
            return _Area(source, (parent.target[1], parent.target[1]), 0, 0)
        parent.taken.update(range(first, last))
        start = parent.target[0] if not piece.begins else self._words[first][0]
        end = parent.target[1] if not piece.ends else self._words[last - 1][1]
        return _Area(source, (start, end), first, last)

    def _best(self, piece: _Piece, parent: "_Area") -> tuple[int, int]:
        """Consecutive free words of the parent with the largest sum of votes; equal indices if none is free."""
        votes = {word: self._vote(word, piece) for word in range(parent.first, parent.last) if word not in parent.taken}
        # A piece at an end of the segment has at least the word there.
        best_sum, best = 0.0 if piece.begins and piece.ends else -inf, (parent.first, parent.first)
        start, total = parent.first, 0.0
        for word in range(parent.first, parent.last):
            if word not in votes:
                start, total = word + 1, 0.0
                if not piece.begins:
                    break
                continue
            if total <= 0.0 and piece.begins:
                start, total = word, 0.0
            total += votes[word]
            is_end = piece.ends or word + 1 == parent.last
            if total > best_sum and is_end:
                best_sum, best = total, (start, word + 1)
        if best[0] < best[1] or not votes:
            return best
        if not (piece.begins and piece.ends):
            return best
        expected = self._expected((piece.start + piece.end) / 2)
        word = max(votes, key=lambda word: (votes[word], -abs(sum(self._words[word]) / 2 - expected)))
        return word, word + 1

    def _vote(self, word: int, piece: _Piece) -> float:
        """Share of a word's attention within a tag, minus the share outside."""
        links = self._links[word]
        if not links:
            return _UNALIGNED
        vote = total = 0.0
        for start, end, weight in links:
            inside = max(0, min(end, piece.end) - max(start, piece.start)) / max(1, end - start)
            vote += weight * (2 * inside - 1)
            total += weight
        return vote / total

    def _kept(self, source: tuple[int, int], parent: "_Area") -> tuple[int, int] | None:
        """Characters that stand in the translation as in the source: those linked, else between words, the nearest."""
        text, (low, high) = self._source.text[slice(*source)], parent.target
        for link in self._segment.links:
            span = link.target_start, link.target_end
            if link[:2] == source and low <= span[0] and span[1] <= high and self._target[slice(*span)] == text:
                return span
        match = [each.start() for each in re.finditer(re.escape(text), self._target[low:high])]
        if not match:
            return None
        expected = self._expected(source[0])
        starts = [low + offset for offset in match]
        apart = [start for start in starts if not self._is_within_word(start, start + len(text))]
        start = min(apart or starts, key=lambda start: abs(start - expected))
        return start, start + len(text)

    def _is_within_word(self, start: int, end: int) -> bool:
        target = self._target
        return any(
            target[max(0, edge - 1) : edge].isalnum() and target[edge : edge + 1].isalnum() for edge in (start, end)
        )

    def _point(self, piece: _Piece, parent: "_Area") -> int:
        """Place of an element without text: before the word that follows it, or behind the one before it."""
        text, offset = self._source.text, piece.start
        (low, high), (source_low, source_high) = parent.target, parent.source
        if not text[source_low:offset].strip():
            return low
        if not text[offset:source_high].strip():
            return high
        is_before = not text[offset].isspace()
        neighbour = offset if is_before else len(text[:offset].rstrip()) - 1
        shares = {
            word: sum(weight for start, end, weight in self._links[word] if start <= neighbour < end)
            for word in range(parent.first, parent.last)
        }
        word = max(
            shares, key=lambda word: (shares[word], -abs(self._words[word][0] - self._expected(offset))), default=-1
        )
        if word < 0:
            return low
        return self._words[word][0] if is_before else self._words[word][1]

    def _break(self, piece: _Piece, parent: "_Area") -> int:
        """Place of a line break: between the words where it divides the translation as it divides the source."""
        expected = self._expected(piece.start)
        low, high = parent.target
        places = [low, *(end for _, end in self._words[parent.first : parent.last])]
        gaps = [offset for offset in places if offset == low or self._target[offset : offset + 1].isspace()]
        return min([*gaps, high], key=lambda offset: abs(offset - expected))

    def _expected(self, offset: float) -> float:
        """Place in the translation at the same share of the length."""
        segment = self._segment
        share = (offset - segment.source_start) / max(1, segment.source_end - segment.source_start)
        return segment.target_start + share * (segment.target_end - segment.target_start)

    def _links_of_words(self) -> list[list[tuple[int, int, float]]]:
        segment = self._segment
        linked: list[list[tuple[int, int, float]]] = [[] for _ in self._words]
        starts = [start for start, _ in self._words]
        for link in segment.links:
            first = bisect_right(starts, link.target_start) - 1
            for word in range(max(0, first), len(self._words)):
                start, end = self._words[word]
                if start >= link.target_end:
                    break
                if end > link.target_start:
                    linked[word].append((link.source_start, link.source_end, link.weight))
        if not segment.links:
            length = max(1, segment.target_end - segment.target_start)
            for word, (start, end) in enumerate(self._words):
                share = ((start + end) / 2 - segment.target_start) / length
                offset = segment.source_start + int(share * (segment.source_end - segment.source_start))
                linked[word].append((offset, offset + 1, 1.0))
        return linked


@final
@dataclass
class _Area:
    """Part of a segment that belongs to a tag, or the whole segment."""

    source: tuple[int, int]
    target: tuple[int, int]
    first: int
    """Index of the first word of the translation."""
    last: int
    """Index after the last word."""
    taken: set[int] = field(default_factory=set[int])
    """Words that belong to a child."""
