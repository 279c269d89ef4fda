"""Places of spans that each stand once in a text."""

from collections import deque
from collections.abc import Sequence


def span_places(spans: Sequence[str], text: str, others: Sequence[int] = ()) -> dict[int, tuple[int, int]]:
    """Find the characters of spans that stand once each in a text.

    Args:
        others: indices of the characters of the text that are of no span.

    Returns:
        First character and the one after the last, by the index of the span; none for a span that is missing.

    Example:
        >>> span_places(["{a}", "{b}"], "see {b}")
        {1: (4, 7)}
    """
    waiting: dict[str, deque[int]] = {}
    for number, span in enumerate(spans):
        waiting.setdefault(span, deque()).append(number)
    sizes, outside = sorted({*map(len, spans)}, reverse=True), {*others}
    places: dict[int, tuple[int, int]] = {}
    start = 0
    while start < len(text):
        parts = () if start in outside else (text[start : start + size] for size in sizes)
        span = next((part for part in parts if waiting.get(part)), "")
        if span:
            places[waiting[span].popleft()] = start, start + len(span)
        start += len(span) or 1
    return places
