"""Readable labels for tokens: visible spaces and control characters, recognisable words."""

import unicodedata
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size

WORD_MARK: Final = "\u2581"  # ▁, how SentencePiece writes the space before a word
SPACE_SIGN: Final = "\u2423"  # ␣
DOTTED_CIRCLE: Final = "\u25cc"  # ◌, base of a combining mark that stands alone
# The zero-width joiner and non-joiner shape adjacent letters and belong to the spelling of Persian and Indic words.
_JOINERS: Final = "\u200c\u200d"
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def readable_labels(pieces: Sequence[str]) -> list[str]:
    """Make labels of tokens, each readable by itself.

    Where pieces mark the space before a word with ``▁``, the first piece of a word is shown without the mark, and a
    piece that goes on with a word of letters begins with a hyphen; scripts without spaces have no hyphens. A space that
    is a token of its own is ``␣``, and an invisible character its code point.

    Args:
        pieces: the tokens of one sequence, in order.

    Returns:
        One label for each.

    Example:
        >>> readable_labels(["▁Haus", "tür", ".", "</s>"]), readable_labels(["a", " ", "中"])
        (['Haus', '-tür', '.', '</s>'], ['a', '␣', '中'])
    """
    has_marks = any(piece.startswith(WORD_MARK) for piece in pieces)
    labels: list[str] = []
    for index, piece in enumerate(pieces):
        is_inside = has_marks and index > 0 and _goes_on(pieces[index - 1], piece)
        bare = piece.removeprefix(WORD_MARK) or piece
        labels.append(("-" if is_inside else "") + _visible(bare.replace(WORD_MARK, SPACE_SIGN)))
    return labels


def shorten(label: str, most: int, sign: str = "…") -> str:
    """Cut a label to a width in columns.

    Args:
        most: largest width in terminal columns, at least 1.
        sign: text of one column that marks where the label was cut.

    Returns:
        The label, or its beginning and the sign.

    Example:
        >>> shorten("Donaudampfschiff", 6), shorten("注意力机制", 6)
        ('Donau…', '注意…')
    """
    if cell_len(label) <= most:
        return label
    beginning = label
    while cell_len(beginning) > most - 1:
        beginning = beginning[:-1]
    return beginning + sign


def pad(label: str, width: int) -> str:
    """Pad a label with spaces to a width, counting wide characters as two columns.

    Args:
        label: a label of at most that width.

    Returns:
        The label with spaces after it.

    Example:
        >>> pad("注意", 5) + "|"
        '注意 |'
    """
    return set_cell_size(label, width)


def _visible(text: str) -> str:
    inner = range(1, len(text) - 1)
    # Between two characters a space needs no sign: the label is a text, such as a sentence.
    shown = "".join(
        character if character == " " and index in inner else _sign(character, len(text) > 1)
        for index, character in enumerate(text)
    )
    starts_with_mark = bool(text) and unicodedata.category(text[0]).startswith("M")
    return DOTTED_CIRCLE + shown if starts_with_mark else shown


def _sign(character: str, is_within: bool) -> str:
    category = unicodedata.category(character)
    if category == "Zs":
        return SPACE_SIGN
    if category in _INVISIBLE and not (is_within and character in _JOINERS):
        return f"U+{ord(character):04X}"
    return character


def _goes_on(before: str, piece: str) -> bool:
    """Whether a piece continues the word of the piece before it, in a script that puts spaces between words."""
    return bool(before and piece) and _is_spaced_letter(before[-1]) and _is_spaced_letter(piece[0])


def _is_spaced_letter(character: str) -> bool:
    return character.isalpha() and unicodedata.east_asian_width(character) not in "WF"
