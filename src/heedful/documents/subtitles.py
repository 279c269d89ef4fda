"""Subtitles, SubRip and WebVTT: times, numbers, settings, notes and styles stay to the character.

A sentence that runs over several subtitles is translated as a whole, and divided as it was in the source.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Final, final

from heedful.documents.encoded_text import EncodedText
from heedful.documents.inline import Passage, PassageBuilder
from heedful.documents.interface import DocumentFile
from heedful.documents.lines import goes_on
from heedful.text.tagged_text import TaggedText

_TAG: Final = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z]++)?[^<>]*+>|\{[^{}]*+\}")
_LINE: Final = re.compile(r"[^\n]*+\n|[^\n]++")
_SPEAKER: Final = re.compile(r"[ \t]*[-–—]")
_REFERENCE: Final = re.compile(r"&(?:amp|lt|gt|nbsp|lrm|rlm|#[0-9]{1,7});")
_REFERENCES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_TAG_START: Final = re.compile(r"[A-Za-z/!?]")
_WORD_JOINER: Final = "\u2060"
"""Invisible character, behind which no tag begins."""
_NEXT_CUE: Final = "\n"
"""Mark of the boundary of two subtitles; all other marks are tags."""


@dataclass
class _Cue:
    """Lines of the text of one subtitle, or of one of its speakers."""

    lines: list[str]
    indices: list[int] = field(default_factory=list[int])
    """Indices of the lines in the file."""


@final
class SubtitleFile(DocumentFile):
    """Subtitles of either format."""

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Read the file.

        Args:
            most_bytes: bound of its unpacked size.
        """
        self._encoded: Final = EncodedText.of(content)
        self.encoding = self._encoded.encoding
        self._lines: Final = _LINE.findall(self._encoded.text)
        self._has_references: Final = bool(self._lines) and self._lines[0].startswith("WEBVTT")
        self._groups: Final = [*self._joined(self._cues())]
        self._built: Final[list[Passage[str]]] = [self._passage(cues) for cues in self._groups]

    @property
    def passages(self) -> list[TaggedText]:
        return [passage.source for passage in self._built]

    def write(self, outputs: Sequence[TaggedText]) -> bytes:
        lines = [*self._lines]
        for cues, passage, output in zip(self._groups, self._built, outputs, strict=True):
            if output == passage.source:
                continue
            texts: list[list[str | tuple[str]]] = [[]]
            for piece in passage.woven(output):
                if piece == (_NEXT_CUE,):
                    texts.append([])
                else:
                    texts[-1].append(piece)
            for cue, pieces in zip(cues, texts, strict=True):
                written = self._wrapped(pieces, len(cue.lines))
                for index, line in zip(cue.indices, written, strict=True):
                    ending = lines[index][len(lines[index].rstrip("\r\n")) :]
                    lines[index] = line + ending if line or len(cue.lines) == 1 else ""
        return self._encoded.write("".join(lines))

    def _cues(self) -> Iterator[_Cue]:
        """Texts in order; a line that begins with a dash is another speaker's."""
        cue: _Cue | None = None
        is_text = False
        for index, line in enumerate(self._lines):
            plain = line.rstrip("\r\n")
            if not plain.strip():
                is_text = False
            elif "-->" in plain and not is_text:
                is_text, cue = True, None
            elif is_text:
                if cue is None or _SPEAKER.match(plain):
                    if cue is not None:
                        yield cue
                    cue = _Cue([])
                cue.lines.append(plain)
                cue.indices.append(index)
                continue
            if cue is not None:
                yield cue
                cue = None
        if cue is not None:
            yield cue

    def _joined(self, cues: Iterator[_Cue]) -> Iterator[list[_Cue]]:
        """Subtitles through which one sentence runs."""
        group: list[_Cue] = []
        for cue in cues:
            if group and not goes_on(self._plain(group[-1].lines[-1]), self._plain(cue.lines[0])):
                yield group
                group = []
            group.append(cue)
        if group:
            yield group

    def _plain(self, line: str) -> str:
        return self._text(_TAG.sub("", line))

    def _text(self, written: str) -> str:
        return _REFERENCE.sub(lambda match: unescape(match[0]), written) if self._has_references else written

    def _passage(self, cues: Sequence[_Cue]) -> Passage[str]:
        builder: PassageBuilder[str] = PassageBuilder()
        for number, cue in enumerate(cues):
            if number:
                builder.point(_NEXT_CUE, is_break=True)
                builder.add(" ")
            text = " ".join(line.strip() for line in cue.lines)
            offset = 0
            for match in _TAG.finditer(text):
                builder.add(self._text(text[offset : match.start()]))
                offset = match.end()
                if not match["name"]:
                    builder.point(match[0])
                elif match["close"]:
                    builder.end(match["name"], match[0])
                else:
                    builder.begin(match["name"], match[0])
            builder.add(self._text(text[offset:]))
        return builder.passage()

    def _wrapped(self, pieces: Sequence[str | tuple[str]], number: int) -> list[str]:
        """Text of a subtitle in a number of lines of about the same length; the last ones may be empty."""
        text = "".join(piece for piece in pieces if isinstance(piece, str)).strip()
        spaces = [match.start() for match in re.finditer(" ", text)]
        breaks: set[int] = set()
        first = 0  # index of the first space that is left
        for line in range(1, number):
            wanted = line * len(text) / number
            index = max(first, bisect_left(spaces, wanted))
            if index > first and (index == len(spaces) or wanted - spaces[index - 1] < spaces[index] - wanted):
                index -= 1
            if index < len(spaces):
                breaks.add(spaces[index])
                first = index + 1
        written: list[str] = []
        offset = 0
        is_first = True
        for piece in pieces:
            if not isinstance(piece, str):
                written.append(piece[0])
                continue
            shown = piece.lstrip() if is_first else piece
            is_first = is_first and not shown
            for index, character in enumerate(shown, 1):
                written.append("\n" if offset in breaks else self._escaped(character, shown[index : index + 1]))
                offset += 1
        lines = "".join(written).rstrip().split("\n")
        return [*lines, *[""] * (number - len(lines))]

    def _escaped(self, character: str, following: str) -> str:
        if self._has_references:
            return _REFERENCES.get(character, character)
        # SubRip has no escapes, and players take whatever they know for a tag, in browsers all of HTML.
        return f"<{_WORD_JOINER}" if character == "<" and _TAG_START.match(following) else character
