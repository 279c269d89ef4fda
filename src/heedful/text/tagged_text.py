"""Tagged text: a text without its inline tags, and the spans of characters that they enclose."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, final

OUTERMOST: Final = -1
"""Parent of a tag that stands in no other."""


class Tag(NamedTuple):
    """Span of a text that an inline element encloses; without characters, the place of an element that has none."""

    start: int
    """Index of its first character."""
    end: int
    """Index after its last character."""
    parent: int = OUTERMOST
    """Index of the tag around it, which comes before it."""
    is_kept: bool = False
    """Whether its characters are not to be translated, such as those of an element with ``translate="no"``."""
    is_break: bool = False
    """Whether it is a line break, or the end of a subtitle: it goes where it divides the text as in the source."""


@final
@dataclass(frozen=True)
class TaggedText:
    """Text with its inline tags."""

    text: str
    """Characters without the tags."""
    tags: tuple[Tag, ...] = ()
    """Tags in the order in which they begin, so that each comes after its parent, within whose span it lies."""

    @property
    def kept(self) -> list[tuple[int, int]]:
        """Spans that are not to be translated."""
        return [(tag.start, tag.end) for tag in self.tags if tag.is_kept]


Edge = tuple[Literal["open", "close", "point"], int]
"""Beginning or end of a tag, or a tag that encloses nothing, with the index of the tag."""


def weave(tagged: TaggedText) -> Iterator[str | Edge]:
    """Merge a text and its tags.

    Args:
        tagged: a text, with tags that lie within their parents.

    Yields:
        Pieces of the text, and the edges of the tags between them, always well formed: an element ends before its
        parent, and siblings do not overlap. All pieces together are the text, and each tag has one point, or one
        beginning and one end.

    Example:
        >>> [*weave(TaggedText("a red dog", (Tag(2, 5),)))]
        ['a ', ('open', 0), 'red', ('close', 0), ' dog']
    """
    text, tags = tagged.text, tagged.tags
    if not tags:
        if text:
            yield text
        return
    children: list[list[int]] = [[] for _ in range(len(tags) + 1)]
    for index, tag in enumerate(tags):
        children[tag.parent].append(index)
    for siblings in children:
        siblings.sort(key=lambda index: (tags[index].start, tags[index].end, index), reverse=True)
    offset = 0
    waiting: list[tuple[int, bool]] = [(index, True) for index in children[OUTERMOST]]
    while waiting:
        index, is_begin = waiting.pop()
        tag = tags[index]
        stop = max(offset, min(tag.start if is_begin else tag.end, len(text)))
        if offset < stop:
            yield text[offset:stop]
            offset = stop
        if not is_begin:
            yield "close", index
        elif tag.start == tag.end and not children[index]:
            yield "point", index
        else:
            yield "open", index
            waiting.append((index, False))
            waiting += [(child, True) for child in children[index]]
    if offset < len(text):
        yield text[offset:]
