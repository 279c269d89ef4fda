"""Readings of segments: what a model reads in place of text in unusual case or parts of sentences, and the way back.

A title, an item of a list or a clause of a long sentence is read as the model's sources are written, which begin with a
capital and end in a mark; its output gets neither of what it does not have.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, final

from heedful.predictors.translation import Alternative, Translation
from heedful.predictors.word_tables import WordTables
from heedful.text.attention_links import moved_links
from heedful.text.kept import Kept
from heedful.text.segments import CONJUNCTION, Segment
from heedful.text.tag_placement import CharacterLink
from heedful.text.word_forms import WORD, case_of, origins_of

_SPAN: Final = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Character that stands for a kept span while words get their usual forms."""
_ENDED: Final = re.compile(r"[.!?…:;,。！？：；，、؟।۔॥|][\"'”’“»)\]]*\s*\Z")
_FIRST_PERSON: Final = re.compile(r"I(?:['’]|\Z)")
"""Word that has a capital within sentences, too."""


@final
@dataclass(frozen=True)
class Reading:
    """Segment as a model reads it: with the usual forms of its words, and as a whole sentence."""

    source: Segment
    """The segment as it was written."""
    segment: Segment
    """The segment as it is read; the same object where nothing changed."""
    is_upper: bool = False
    """Whether the source is in upper case, as the output will be."""
    is_lower: bool = False
    """True where the source begins in lower case; its output then does, too."""
    mark: str = ""
    """Mark that the output ends in because the reading does; empty where the source ends in one itself."""
    joint: tuple[str, str] = ("", "")
    """Conjunction at the beginning of the source, which is not read, and its translation, each with a space."""

    @classmethod
    def of(cls, segment: Segment, tables: WordTables, is_free: bool = True) -> "Reading":
        """Read a segment.

        Args:
            tables: tables of words of the model.
            is_free: whether the output may be changed at its ends; False where it has to begin with or contain a text.
        """
        text = segment.reading
        joint = _joint(segment, tables) if is_free else ("", "")
        spans = [text[one.start : one.end] for one in segment.kept]
        stops = [len(joint[0]), *(edge for one in segment.kept for edge in (one.start, one.end)), len(text)]
        outside = _SPAN.join(text[start:end] for start, end in zip(stops[::2], stops[1::2], strict=True))
        if outside.count(_SPAN) != len(spans):
            return cls(segment, segment)
        is_ended = not is_free or _ENDED.search(outside) or not tables.final_marks[0]
        marks = ("", "") if is_ended else tables.final_marks
        restored = tables.forms.restored(outside) + marks[0]
        is_lower = is_free and tables.forms.begins_in_lower_case(outside)
        if is_lower:
            restored = restored[:1].upper() + restored[1:]
            # A whole sentence without capitals was written in a hurry.
            is_lower = segment.is_inner or bool(marks[0] or joint[0]) or case_of(outside) != "lower"
        if restored == outside and not joint[0]:
            return cls(segment, segment)
        first, *others = restored.split(_SPAN)
        spans_read: list[Kept] = []
        read = first
        for one, span, part in zip(segment.kept, spans, others, strict=True):
            spans_read.append(Kept(len(read), len(read) + len(span), one.kind))
            read += span + part
        one = replace(segment, source=read, kept=tuple(spans_read))
        return cls(segment, one, case_of(outside) == "upper", is_lower, marks[1], joint)

    def written(self, output: Translation, links: Sequence[CharacterLink], tables: WordTables) -> Translation:
        """Write an output for the segment as it was written.

        Args:
            output: output for `segment`.
            links: links between `segment` and its output; none where they are not needed.
            tables: tables of words of the model.
        """
        if self.segment is self.source:
            return output
        source, read = self.source.reading, self.segment.reading
        texts = [self._written(each.text, tables) for each in output.alternatives]
        plain = self._unmarked(output.text)
        sizes = [len(letter.upper()) if self.is_upper else 1 for letter in plain]
        before, before_output = map(len, self.joint)
        targets = [*accumulate(sizes, initial=before_output)]
        if targets[-1] != len(texts[0]):  # letters of kept spans stay as they are
            targets = list(range(before_output, before_output + len(plain) + 1))
        origins = [before + index for index in origins_of(read, source[before:])]
        own = [one for one in links if one.source_end <= len(origins) and one.target_end <= len(plain)]
        moved = [*moved_links(own, origins, targets)] if own else []
        aligned = output.alignment
        if before:
            left, right = (len(part.split()) for part in self.joint)
            if links:
                moved.insert(0, CharacterLink(0, len(self.joint[0].rstrip()), 0, len(self.joint[1].rstrip())))
            if aligned is not None:
                own_words = ((source_word + left, target_word + right) for source_word, target_word in aligned)
                aligned = (0, 0), *own_words
        decoded = output.decoded or (read, output.unreplaced or output.text)
        one = replace(output, source=source, alignment=aligned, links=tuple(moved), decoded=decoded)
        return with_texts(one, texts)

    def _written(self, text: str, tables: WordTables) -> str:
        text = self._unmarked(text)
        if self.is_upper:
            text = self._raised(text)
        elif self.is_lower:
            text = lowered(text, self.source.reading, tables)
        return self.joint[1] + text

    def _unmarked(self, text: str) -> str:
        return text.removesuffix(self.mark) if len(text) > len(self.mark) else text

    def _raised(self, text: str) -> str:
        """Output in upper case outside its kept spans."""
        whole = self.segment.reading
        spans = sorted({re.escape(whole[one.start : one.end]) for one in self.segment.kept}, key=len, reverse=True)
        if not spans:
            return text.upper()
        parts = re.split(f"({'|'.join(spans)})", text)
        return "".join(part if index % 2 else part.upper() for index, part in enumerate(parts))


def lowered(text: str, source: str, tables: WordTables) -> str:
    """Write an output so that it begins in lower case, unless its first word has a capital wherever it stands.

    Args:
        source: text that it translates; its words stay as they are.
        tables: tables of words of the model.
    """
    word = WORD.match(text)
    if word is None or _FIRST_PERSON.match(word[0]) or word[0][1:] != word[0][1:].lower():
        return text
    is_name = word[0] in WORD.findall(source) or tables.is_name(word[0])
    return text if is_name or len(text[0].lower()) != 1 else text[0].lower() + text[1:]


def _joint(segment: Segment, tables: WordTables) -> tuple[str, str]:
    """Conjunction at the beginning of a segment and its translation; both empty where it is read with the segment."""
    match = CONJUNCTION.match(segment.reading) if tables.forms.has_capitals else None
    is_kept = match is not None and any(one.start < match.end() for one in segment.kept)
    if match is None or is_kept or tables.lexicon is None:
        return "", ""
    target = tables.lexicon.best(match[0].strip().lower())
    if not target:
        return "", ""
    return match[0], f"{target.upper() if match[0].isupper() else target} "


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
