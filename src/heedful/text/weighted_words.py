"""Words of a document with the weights of their pieces."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final

from heedful.text.token_labels import WORD_MARK, readable_labels

EOS_PIECES: Final = ("</s>", "<eos>")
"""Texts of EOS, which ends a sentence, in the tokenizers of pieces and of words."""
_BYTE: Final = re.compile("<0x[0-9A-F]{2}>")


def weighted_sentences(pieces: Sequence[str], weights: Sequence[float], text: str) -> Iterator[list[tuple[str, float]]]:
    """Join the pieces of a document to words, and add up their weights.

    Args:
        pieces: tokens of the document; EOS ends a sentence.
        weights: weight of each piece.
        text: the document, which shows whether words have spaces between them.

    Yields:
        Words of each sentence, with the space before them, and their weights; last the weight of EOS, with an empty
        word.
    """
    pieces, weights = _with_characters(pieces, weights)
    has_marks = any(piece.startswith(WORD_MARK) for piece in pieces)
    # Whole words are tokens without marks; characters and Chinese words follow each other without a space.
    is_spaced = not has_marks and " " not in pieces and any(f"{one} {other}" in text for one, other in pairwise(pieces))
    space = " " if is_spaced else ""
    words: list[tuple[str, float]] = []
    for piece, label, weight in zip(pieces, readable_labels(pieces), weights, strict=True):
        if piece in EOS_PIECES:
            # The weight of the end of a sentence is part of the sentence's.
            yield [*words, ("", weight)]
            words = []
        elif words and label.startswith("-") and not piece.startswith("-"):
            before, own = words[-1]
            words[-1] = (before + piece, own + weight)
        else:
            bare = piece.replace(WORD_MARK, " ")
            words.append(((bare if words else bare.lstrip()) if has_marks else (space if words else "") + bare, weight))
    if words:
        yield words


def _with_characters(pieces: Sequence[str], weights: Sequence[float]) -> tuple[list[str], list[float]]:
    """Join the bytes of characters that the vocabulary does not have, and add up their weights."""
    joined: list[tuple[str, float]] = []
    for is_byte, group in groupby(zip(pieces, weights, strict=True), lambda one: _BYTE.fullmatch(one[0]) is not None):
        parts = [*group]
        if is_byte:
            text = bytes(int(piece[3:5], 16) for piece, _ in parts).decode("utf-8", errors="replace")
            parts = [(text, sum(weight for _, weight in parts))]
        joined += parts
    return [piece for piece, _ in joined], [weight for _, weight in joined]
