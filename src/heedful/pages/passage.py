"""Passage: a text of several segments or with kept spans, as the page shows it beside the view of one segment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final


@final
@dataclass(frozen=True)
class PassagePart:
    """Segment of a passage with its output."""

    source: str
    """Segment on one line."""
    output: str
    kept: tuple[tuple[int, int, str], ...] = ()
    """Start, end and kind of each span of the source that stays as it is."""
    output_kept: tuple[tuple[int, int, str], ...] = ()
    """The same spans in the output."""
    reading: str = ""
    """Text that the model reads in place of the segment: without its kept spans, in usual case; empty where nothing is
    translated."""
    fault: str = ""
    """Fault for which the source stands in place of the output; empty = none."""

    def to_dict(self) -> dict[str, Any]:
        """List the fields for JSON.

        Returns:
            Values that JSON can hold.
        """
        return {
            "source": self.source,
            "output": self.output,
            "kept": [list(one) for one in self.kept],
            "outputKept": [list(one) for one in self.output_kept],
            "reading": self.reading,
            "fault": self.fault,
        }


@final
@dataclass(frozen=True)
class Passage:
    """Text and its translation, segment by segment."""

    parts: tuple[PassagePart, ...]
    source_layout: tuple[str, ...]
    """Characters before the first segment, between two, and after the last one."""
    output_layout: tuple[str, ...]
    """The same in the translation."""

    def is_plain(self, text: str, output: str | None) -> bool:
        """Tell whether the passage says no more than the view of a sentence.

        Args:
            text: source of the view.
            output: its best output; None where that was forced to be another one.
        """
        part = self.parts[0]
        return len(self.parts) == 1 and part.reading == text and output in (None, part.output)

    def to_dict(self) -> dict[str, Any]:
        """List the fields for JSON.

        Returns:
            Values that JSON can hold.
        """
        return {
            "parts": [one.to_dict() for one in self.parts],
            "sourceLayout": list(self.source_layout),
            "outputLayout": list(self.output_layout),
        }


def spans_in(output: str, spans: Sequence[tuple[str, str]]) -> tuple[tuple[int, int, str], ...]:
    """Find kept spans in an output.

    Args:
        spans: text and kind of each.

    Returns:
        Start, end and kind of each span that is there, in order; two equal spans are two places.
    """
    places: list[tuple[int, int, str]] = []
    is_taken = bytearray(len(output))
    after: dict[str, int] = {}
    for text, kind in sorted(spans, key=lambda span: -len(span[0])):  # "12.5" before "2"
        start = output.find(text, after.get(text, 0))
        while start >= 0 and (last := is_taken.rfind(1, start, start + len(text))) >= 0:
            start = output.find(text, last + 1)
        after[text] = len(output) if start < 0 else start + len(text)
        if start >= 0:
            is_taken[start : start + len(text)] = b"\1" * len(text)
            places.append((start, start + len(text), kind))
    return tuple(sorted(places))
