"""Sentences of a text: the parts that models translate, and the layout between them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

from heedful.text.sentences import sentence_spans

_WIDE: Final = "\N{CJK RADICAL REPEAT}"
"""First character of the scripts that are written without spaces."""
_WIDE_ENDS: Final = ("。", "！", "？", "」", "』")


@final
@dataclass(frozen=True)
class Part:
    """Piece of a text: a sentence to translate, or layout that stays."""

    text: str
    is_sentence: bool


def split(text: str, fits: Callable[[str], bool] = lambda _: True) -> list[Part]:
    r"""Split a text into sentences and what lies between them; joined, the parts are the text.

    Args:
        text: any text; a line feed always ends a sentence.
        fits: whether a sentence is short enough for the model; a longer one is split at spaces, else anywhere.

    Returns:
        The parts in order.

    Example:
        >>> [part.text for part in split("Good day, Dr. Brown. How are you?\nFine.") if part.is_sentence]
        ['Good day, Dr. Brown.', 'How are you?', 'Fine.']
    """
    return [part for start, end in sentence_spans(text) for part in _sentence_parts(text[start:end], fits)]


def join(parts: Sequence[Part], outputs: Sequence[str]) -> str:
    """Put translated sentences into the layout of their text.

    Sentences without a space between them, as in Chinese, get one in scripts that use spaces; a space after a
    full-width end mark is left out.

    Args:
        parts: parts of the source.
        outputs: translation of each sentence.

    Returns:
        The translated text.
    """
    remaining = iter(outputs)
    text = ""
    for index, part in enumerate(parts):
        follows_sentence = index > 0 and parts[index - 1].is_sentence
        if not part.is_sentence:
            joins = part.text == " " and follows_sentence and text.endswith(_WIDE_ENDS) and index + 1 < len(parts)
            text += "" if joins else part.text
            continue
        output = next(remaining)
        text += f" {output}" if follows_sentence and output and text and text[-1] < _WIDE else output
    return text


def _sentence_parts(text: str, fits: Callable[[str], bool]) -> Iterator[Part]:
    """One sentence with the spaces around it, or its pieces where it is too long."""
    stripped = text.strip()
    before = len(text) - len(text.lstrip())
    yield from _layout(text[:before])
    if stripped and not fits(stripped) and len(stripped) > 1:
        middle = len(stripped) // 2
        space = stripped.rfind(" ", 1, middle + 1)
        cut = space if space > 0 else middle
        yield from _sentence_parts(stripped[:cut], fits)
        yield from _sentence_parts(stripped[cut:], fits)
    elif stripped:
        yield Part(stripped, is_sentence=True)
    if stripped:
        yield from _layout(text[before + len(stripped) :])


def _layout(text: str) -> Iterator[Part]:
    if text:
        yield Part(text, is_sentence=False)
