"""Characters that words and tokens cover in a text without its spaces, so that words are found however they are cut."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from heedful.text.tokenizer import SPACE_MARK, Tokenizer

Span = tuple[int, int]
"""First character, and the character after the last, among those that are no spaces."""


def spell(pieces: Sequence[str]) -> tuple[str, list[Span]]:
    """Join pieces of a text, without spaces.

    Args:
        pieces: the pieces, in order.

    Returns:
        The text, and the span of each piece.

    Example:
        >>> spell(["\u2581two", "\u2581", "rows"])
        ('tworows', [(0, 3), (3, 3), (3, 7)])
    """
    texts = ["".join(piece.replace(SPACE_MARK, " ").split()) for piece in pieces]
    return "".join(texts), [*pairwise(accumulate(map(len, texts), initial=0))]


def spell_words(words: str, tokenizer: Tokenizer) -> tuple[str, list[Span]]:
    """Spell words as the pieces of a tokenizer do.

    Args:
        tokenizer: of the texts in which they are looked for.

    Returns:
        The text without spaces, and the span of each word.
    """
    return spell(["".join(tokenizer.pieces(tokenizer.encode(word))) for word in words.split()])


def tokens_of(word: Span, tokens: Sequence[Span]) -> list[int]:
    """Find the tokens of a word: those that share a character with it.

    Args:
        tokens: span of each token; one without characters is the space before a word, and belongs to it.

    Returns:
        Positions of the tokens.

    Example:
        >>> tokens_of((3, 7), [(0, 3), (3, 3), (3, 5), (5, 7)])
        [1, 2, 3]
    """
    begin, end = word
    return [position for position, (first, last) in enumerate(tokens) if first < end and begin < max(last, first + 1)]
