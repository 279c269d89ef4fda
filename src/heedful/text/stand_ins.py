"""Stand-ins for spans of a text that its markup excludes from translation: one character in place of each.

Whatever is in such a span, rules for sentences, lists and line breaks then read it as a part of its sentence.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import Final, final

from heedful.text.kept import MARKUP, Kept
from heedful.text.segments import Segment, Text

Span = tuple[int, int]
"""Index of the first character and the one after the last."""
_PRIVATE: Final = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))
"""Characters without a meaning, of which every text lacks some."""


@final
@dataclass(frozen=True)
class StandIns:
    """Text with a stand-in for each of some spans."""

    text: str
    mark: str
    """Character that stands for each span; the text had none."""
    spans: tuple[str, ...]
    """Characters of the spans, in order."""

    @classmethod
    def of(cls, text: str, spans: Sequence[Span]) -> "StandIns":
        """Put a stand-in in place of each span.

        Args:
            spans: spans in any order; empty ones, and those that begin within another, are left out.

        Example:
            >>> one = StandIns.of("a = b. Ja", [(0, 6)])
            >>> one.text[1:], one.spans
            (' Ja', ('a = b.',))
        """
        letters = {*text}
        mark = next(chr(code) for code in chain(*_PRIVATE) if chr(code) not in letters)
        parts: list[str] = []
        replaced_spans: list[str] = []
        last = 0
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            if last <= start < end:
                parts += [text[last:start], mark]
                replaced_spans.append(text[start:end])
                last = end
        return cls("".join([*parts, text[last:]]), mark, tuple(replaced_spans))

    def find(self, text: str, others: Callable[[str], Sequence[Kept]]) -> list[Kept]:
        """Find the kept spans of a part of the text: the stand-ins, and spans found by rules, which may have some.

        Args:
            others: finds the spans of the rules.
        """
        ruled = others(text)
        inner = {index for one in ruled for index in range(one.start, one.end)} if self.mark in text else ()
        own = [index for index, letter in enumerate(text) if letter == self.mark and index not in inner]
        return sorted([*ruled, *(Kept(index, index + 1, MARKUP) for index in own)])

    def restored(self, parts: Text) -> Text:
        """Put the spans back into the segments of the text and the layout between them.

        Args:
            parts: segments of the text with stand-ins.
        """
        spans = iter(self.spans)
        layout = [self._filled(parts.layout[0], spans)]
        segments: list[Segment] = []
        offset = len(layout[0])
        for segment, after in zip(parts.segments, parts.layout[1:], strict=True):
            own = [next(spans) for _ in range(segment.source.count(self.mark))]
            source = self._filled(segment.source, iter(own))
            one = replace(segment, source=source, start=offset, end=offset + len(source), kept=())
            segments.append(self._with_kept(one, segment, own))
            layout.append(self._filled(after, spans))
            offset = one.end + len(layout[-1])
        return Text(tuple(segments), tuple(layout))

    def _with_kept(self, one: Segment, marked: Segment, spans: Sequence[str]) -> Segment:
        """Segment with the kept spans of the same with stand-ins; none where a span is over several lines."""
        reading = marked.reading
        if self._filled(reading, iter(spans)) != one.reading:
            return one
        marks = [index for index, letter in enumerate(reading) if letter == self.mark]
        added = [*accumulate((len(span) - 1 for span in spans), initial=0)]

        def moved(offset: int) -> int:
            return offset + added[bisect_left(marks, offset)]

        spans_kept = [Kept(moved(each.start), moved(each.end), each.kind) for each in marked.kept]
        return replace(one, kept=tuple(spans_kept))

    def _filled(self, text: str, spans: Iterator[str]) -> str:
        first, *others = text.split(self.mark)
        return "".join([first, *(next(spans) + part for part in others)])
