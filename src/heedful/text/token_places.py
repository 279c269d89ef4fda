"""Places of tokens in a text: their characters, and their words."""

from collections.abc import Sequence
from itertools import accumulate, pairwise


def byte_ranges(text: str, sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Find the characters of tokens that follow each other in a text.

    Args:
        sizes: number of UTF-8 bytes of each token; together those of the text and of a space before it.

    Returns:
        The first character and the one after the last of each token; of tokens that are bytes of one character, only
        the last has a range that is not empty.

    Example:
        >>> byte_ranges("über", [3, 3])
        [(0, 1), (1, 4)]
    """
    ends = [max(0, end - 1) for end in accumulate(sizes)]
    encoded = text.encode()
    # Number of whole characters before each byte.
    counts = [0, *accumulate(int(following & 0xC0 != 0x80) for following in (*encoded[1:], 0))]
    return [*pairwise([0, *(counts[end] for end in ends)])]


def count_words(pieces: Sequence[str], space: str) -> list[int]:
    """Compute the word index of each piece; consecutive spaces make no empty words.

    A new word starts at the first space after a word.

    Args:
        space: character that stands for a space in the pieces.

    Returns:
        The 0-based word index of each piece.

    Example:
        >>> count_words(["_a", "b", "_c"], "_")
        [0, 0, 1]
    """
    indices: list[int] = []
    word, has_begun = 0, False
    for piece in pieces:
        if has_begun and piece.startswith(space):
            word, has_begun = word + 1, False
        has_begun = has_begun or piece.strip(space) != ""
        indices.append(word)
    last = word if has_begun or word == 0 else word - 1  # spaces at the end belong to the last word
    return [min(index, last) for index in indices]
