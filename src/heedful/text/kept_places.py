"""Places of kept spans in outputs of models that do not know marks: beside the words that stood beside them."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple, final

from heedful.text.kept import Kept

_WORD: Final = re.compile(r"\S+")
_END_MARKS: Final = ".,;:!?…)]}\"'”»。，；：！？）」"
_BRACKETS: Final = ("()", "[]", "（）", "「」", "“”", '""', "«»")
_SPACE_BEFORE_MARK: Final = re.compile(r" +(?=[.,;:!?…)\]}。，；：！？）」])")


@final
class Lifted(NamedTuple):
    """Text without its kept spans, and where each stood."""

    text: str
    spans: tuple[str, ...]
    num_words: tuple[int, ...]
    """Number of words of `text` before each span."""
    is_ending: tuple[bool, ...]
    """Whether a mark that ends a clause, or nothing, follows each span."""


def lift(text: str, fixed: Sequence[Kept]) -> Lifted:
    """Take the kept spans out of a text.

    Args:
        fixed: its kept spans, in order.

    Returns:
        The text without them.

    Example:
        >>> lift("Siehe {x}, bitte.", [Kept(6, 9, "braces")])
        Lifted(text='Siehe, bitte.', spans=('{x}',), num_words=(1,), is_ending=(True,))
    """
    parts: list[str] = []
    spans: list[str] = []
    num_words: list[int] = []
    is_ending: list[bool] = []
    last = 0
    for one in fixed:
        start, end = one.start, one.end
        if start > last and text[start - 1] + text[end : end + 1] in _BRACKETS:  # brackets around it go with it
            start, end = start - 1, end + 1
        parts.append(text[last:start])
        last = end
        spans.append(text[start:end])
        num_words.append(len(_WORD.findall(_SPACE_BEFORE_MARK.sub("", "".join(parts)))))
        rest = text[end:].lstrip()
        is_ending.append(not rest or rest[0] in _END_MARKS)
    rest = " ".join("".join([*parts, text[last:]]).split())
    return Lifted(_SPACE_BEFORE_MARK.sub("", rest), tuple(spans), tuple(num_words), tuple(is_ending))


def put_back(lifted: Lifted, output: str, links: Sequence[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """Put kept spans into the output for the text without them.

    Args:
        lifted: result of `lift`.
        links: links (source word, target word) between them; none = only first and last places are known.

    Returns:
        The output, in which each span stands once: behind the word that translates the one before it, else before the
        word that translates the one behind it, and at the beginning or the end where it stood there; and the links
        between the words of both texts with their spans.
    """
    words = [match.span() for match in _WORD.finditer(output)]
    num_source = len(_WORD.findall(lifted.text))
    places = [
        _place(words, output, before, num_source, is_ending, links)
        for before, is_ending in zip(lifted.num_words, lifted.is_ending, strict=True)
    ]
    sizes = [len(span.split()) for span in lifted.spans]
    targets = [sum(size for index, size in zip(places, sizes, strict=True) if index <= start) for start, _ in words]
    sources = [
        sum(size for before, size in zip(lifted.num_words, sizes, strict=True) if before <= word)
        for word in range(num_source)
    ]
    shifted = [
        (left + sources[left], right + targets[right])
        for left, right in links
        if left < len(sources) and right < len(targets)
    ]
    written = output
    for index, span in reversed(sorted(zip(places, lifted.spans, strict=True), key=lambda one: one[0])):
        before, after = written[:index], written[index:]
        left = " " if before and not before[-1].isspace() and before[-1] not in "([{\"'“„«（「" else ""
        right = " " if after and not after[0].isspace() and after[0] not in _END_MARKS else ""
        written = f"{before}{left}{span}{right}{after}"
    return written, shifted


def _place(
    words: Sequence[tuple[int, int]],
    output: str,
    before: int,
    num_source: int,
    is_ending: bool,
    links: Sequence[tuple[int, int]],
) -> int:
    """Index of the character before which a span is put."""
    if not words or before == 0:
        return 0
    if before >= num_source:
        index = len(words) - 1
    else:
        linked = [target for source, target in links if source == before - 1 and target < len(words)]
        following = [target for source, target in links if source == before and target < len(words)]
        if linked:
            index = max(linked)
        elif following:
            return words[min(following)][0]
        else:
            index = min(len(words) - 1, (before * len(words) - 1) // num_source)
    start, end = words[index]
    while is_ending and end - 1 > start and output[end - 1] in _END_MARKS:
        end -= 1
    return end
