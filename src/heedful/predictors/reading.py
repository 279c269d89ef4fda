"""Readings of segments: what a model reads in place of text in unusual case, and the way back to the segment."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, final

from heedful.predictors.translation import Alternative, Translation
from heedful.text.attention_links import moved_links
from heedful.text.kept import Kept
from heedful.text.segments import Segment
from heedful.text.tag_placement import CharacterLink
from heedful.text.word_forms import WordForms, case_of, origins_of

_SPAN: Final = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Character that stands for a kept span while words get their usual forms."""


@final
@dataclass(frozen=True)
class Reading:
    """Segment as a model reads it: with the usual forms of its words."""

    source: Segment
    """The segment as it was written."""
    segment: Segment
    """The segment as it is read; the same object where nothing changed."""
    is_upper: bool
    """Whether the source is in upper case, as the output will be."""

    @classmethod
    def of(cls, segment: Segment, forms: WordForms) -> "Reading":
        """Read a segment."""
        text = segment.reading
        spans = [text[one.start : one.end] for one in segment.kept]
        stops = [0, *(edge for one in segment.kept for edge in (one.start, one.end)), len(text)]
        outside = _SPAN.join(text[start:end] for start, end in zip(stops[::2], stops[1::2], strict=True))
        restored = forms.restored(outside) if outside.count(_SPAN) == len(spans) else outside
        if restored == outside:
            return cls(segment, segment, False)
        first, *others = restored.split(_SPAN)
        spans_read: list[Kept] = []
        read = first
        for one, span, part in zip(segment.kept, spans, others, strict=True):
            spans_read.append(Kept(len(read), len(read) + len(span), one.kind))
            read += span + part
        return cls(segment, replace(segment, source=read, kept=tuple(spans_read)), case_of(outside) == "upper")

    def written(self, output: Translation, links: Sequence[CharacterLink]) -> Translation:
        """Write an output for the segment as it was written.

        Args:
            output: output for `segment`.
            links: links between `segment` and its output; none where they are not needed.
        """
        if self.segment is self.source:
            return output
        source, read = self.source.reading, self.segment.reading
        texts = [self._raised(each.text) if self.is_upper else each.text for each in output.alternatives]
        sizes = [len(letter.upper()) if self.is_upper else 1 for letter in output.text]
        targets = [0, *accumulate(sizes)]
        if targets[-1] != len(texts[0]):  # letters of kept spans stay as they are
            targets = list(range(len(output.text) + 1))
        moved = moved_links(links, origins_of(read, source), targets) if links else ()
        decoded = output.decoded or (read, output.unreplaced or output.text)
        return with_texts(replace(output, source=source, links=tuple(moved), decoded=decoded), texts)

    def _raised(self, text: str) -> str:
        """Output in upper case outside its kept spans."""
        whole = self.segment.reading
        spans = sorted({re.escape(whole[one.start : one.end]) for one in self.segment.kept}, key=len, reverse=True)
        if not spans:
            return text.upper()
        parts = re.split(f"({'|'.join(spans)})", text)
        return "".join(part if index % 2 else part.upper() for index, part in enumerate(parts))


def with_texts(output: Translation, texts: Sequence[str]) -> Translation:
    """Replace the texts of the alternatives of an output.

    Args:
        texts: text of each alternative; blank ones are left out.
    """
    others: dict[str, Alternative] = {}
    for each, text in zip(output.alternatives, texts, strict=True):
        if text:
            others.setdefault(text, replace(each, text=text))
    alternatives = tuple(others.values()) or output.alternatives
    return replace(output, text=alternatives[0].text, alternatives=alternatives)
