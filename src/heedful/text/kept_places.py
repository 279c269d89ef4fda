"""Places of kept spans in outputs of models that do not know marks: beside the words that stood beside them."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple, final

from heedful.text.kept import Kept
from heedful.text.scripts import UNSPACED, script_of
from heedful.text.tag_placement import CharacterLink, words

_WORD: Final = re.compile(r"\S+")
_END_MARKS: Final = ".,;:!?…)]}\"'”»。，；：！？）」"
_TAG: Final = re.compile(r"</?[^<>%?!][^<>]*>")
_OPENING_TAG: Final = re.compile(r"<[^/!?%][^>]*(?<!/)>\Z")
_CLOSING: Final = ("</", "™", "®")
"""Beginnings of spans that touch the word before them."""
_WITHIN_WORD: Final = re.compile(r"<(?!br\b)[^<>]*>|&shy;|\d+")
_FOLLOWING: Final = 0.5
"""Weight of the links of the word behind a span against those of the word before it."""
_BRACKETS: Final = ("()", "[]", "（）", "「」", "“”", '""', "«»", "<>")
_SPACE_BEFORE_MARK: Final = re.compile(r"(?<! ) ++(?=[.,;:!?…)\]}。，；：！？）」])")


@final
class Lifted(NamedTuple):
    """Text without its kept spans, and where each stood."""

    text: str
    spans: tuple[str, ...]
    places: tuple[int, ...]
    """Number of characters of `text` before each span."""
    origins: tuple[int, ...]
    """Index in the whole text of each character of `text`."""


def lift(text: str, fixed: Sequence[Kept]) -> Lifted:
    """Take the kept spans out of a text.

    Args:
        fixed: its kept spans, in order.

    Returns:
        The text without them, and without the spaces and the brackets around them.

    Example:
        >>> lift("Siehe {x}, bitte.", [Kept(6, 9, "braces")])[:3]
        ('Siehe, bitte.', ('{x}',), (5,))
    """
    parts: list[str] = []
    left: list[int] = []  # indices of the characters that stay
    starts: list[int] = []
    spans: list[str] = []
    last = 0
    for one in fixed:
        start, end = one.start, one.end
        if start > last and text[start - 1] + text[end : end + 1] in _BRACKETS:  # brackets around it go with it
            start, end = start - 1, end + 1
        parts.append(text[last:start])
        if _parts_words(text, start, end):
            parts.append(" ")
        left += range(last, start)
        starts.append(start)
        spans.append(text[start:end])
        last = end
    rest = " ".join("".join([*parts, text[last:]]).split())
    rest = _SPACE_BEFORE_MARK.sub("", rest)
    left = [index for index in [*left, *range(last, len(text))] if not text[index].isspace()]
    letters = iter(left)
    origins: list[int] = []
    for letter in rest:
        origins.append(next(letters) if letter != " " else origins[-1] + 1)
    return Lifted(rest, tuple(spans), tuple(bisect_left(origins, start) for start in starts), tuple(origins))


def _parts_words(text: str, start: int, end: int) -> bool:
    """Tell whether a span is all that stands between two words; a tag may stand within one."""
    is_between = text[start - 1 : start].isalnum() and text[end : end + 1].isalnum()
    return is_between and not _WITHIN_WORD.fullmatch(text, start, end)


def put_back(lifted: Lifted, output: str, links: Sequence[CharacterLink]) -> tuple[str, list[int]]:
    """Put kept spans into the output for the text without them.

    A span goes between the two words that are most strongly linked with the words before and behind it, where there is
    a space or a mark that ends a clause; at the beginning and at the end it stays there. An opening tag touches the
    word behind it, and a closing tag or a sign of a trade mark the word before it.

    Args:
        lifted: result of `lift`.
        links: links between the text and the output; none = spans go to the same share of the length.

    Returns:
        The output, in which each span stands once, and the index in it of each character of `output`.

    Cost: number of spans times the number of links, plus the output.
    """
    gaps = _gaps(output)
    offsets = [_offset(lifted, offset, output, gaps, links) for offset in lifted.places]
    # Tags stand in the order of the source, so that those which were well formed still are.
    tags = [index for index, span in enumerate(lifted.spans) if _TAG.fullmatch(span)]
    for index, offset in zip(tags, sorted(offsets[index] for index in tags), strict=True):
        offsets[index] = offset
    for index, (offset, span) in enumerate(zip(offsets, lifted.spans, strict=True)):
        # The space of a gap goes before an opening tag, unless another span stands behind the tag in the gap.
        is_last = offset not in offsets[index + 1 :]
        if _OPENING_TAG.match(span) and is_last and output[offset : offset + 1].isspace():
            offsets[index] = offset + 1
    parts: list[str] = []
    targets: list[int] = []
    last, size, follows_opening = 0, 0, False
    for index in sorted(range(len(offsets)), key=lambda index: (offsets[index], index)):
        offset, span = offsets[index], lifted.spans[index]
        before = output[last:offset][-1:] or "".join(parts[-1:])[-1:]
        after = output[offset : offset + 1]
        is_opening, touches = bool(_OPENING_TAG.match(span)), follows_opening and offset == last
        left = " " if before and not (before.isspace() or before in "([{\"'“„«（「") else ""
        left = "" if touches or span.startswith(_CLOSING) else left
        right = " " if after and not (is_opening or after.isspace() or after in _END_MARKS) else ""
        parts += [output[last:offset], f"{left}{span}{right}"]
        targets += range(size, size + offset - last)
        size += offset - last + len(parts[-1])
        last, follows_opening = offset, is_opening
    targets += range(size, size + len(output) - last)
    return "".join([*parts, output[last:]]), targets


def word_places(text: str, whole: str, places: Sequence[int]) -> list[int]:
    """Number the words of a text by their places in a longer one; words are separated by spaces.

    Args:
        places: index in `whole` of each character of `text`.

    Returns:
        Index among the words of `whole` for each word of `text`.

    Example:
        >>> word_places("a c", "a b c", [0, 1, 4])
        [0, 2]
    """
    starts = [match.start() for match in _WORD.finditer(whole)]
    return [bisect_right(starts, places[match.start()]) - 1 for match in _WORD.finditer(text)]


def _gaps(output: str) -> list[int]:
    """Places for spans: the beginning, and behind words with a space, an end mark or no spaces in the script."""
    ends = [end for _, end in words(output, 0, len(output))]
    inner = [
        end
        for end in ends
        if output[end : end + 1].isspace()
        or output[end : end + 1] in _END_MARKS
        or script_of(output[end - 1]) in UNSPACED
    ]
    return [0, *inner]


def _offset(lifted: Lifted, offset: int, output: str, gaps: Sequence[int], links: Sequence[CharacterLink]) -> int:
    """Index of the character before which a span is put."""
    before, after = lifted.text[:offset].rstrip(), lifted.text[offset:].lstrip()
    if not before or not output.strip():
        return 0
    if not after:
        ending = output.rstrip()
        return len(ending if before[-1] in _END_MARKS else ending.rstrip(_END_MARKS)) or len(ending)
    left, right = len(before) - 1, len(lifted.text) - len(after)
    expected = offset * len(output) / len(lifted.text)
    strengths = dict.fromkeys(gaps, 0.0)
    for link in links:
        if link.source_start <= left < link.source_end:
            gap, weight = link.target_end, link.weight
        elif link.source_start <= right < link.source_end:
            gap, weight = len(output[: link.target_start].rstrip()), _FOLLOWING * link.weight
        else:
            continue
        if gap in strengths:
            strengths[gap] += weight
    return max(strengths, key=lambda gap: (strengths[gap], -abs(gap - expected)), default=len(output))
