"""Splits of subword pieces into shorter ones, from which other segmentations of a text are drawn."""

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.text.marian import MarianTokenizer
from heedful.text.tokenizer import PieceTokenizer, Tokenizer, load_pieces


def piece_splits(tokenizer: Tokenizer) -> NDArray[np.int32]:
    """Find the most probable segmentation of each piece into shorter ones.

    Args:
        tokenizer: any tokenizer; only those of pieces have splits.

    Returns:
        [token, part] ids of the parts of each token, whose texts joined are that of the token, padded with 0; all are 0
        for a token that cannot be split.

    Cost: a look-up for each substring of each piece.

    Example:
        >>> from heedful.text.vocabulary import Vocabulary
        >>> from heedful.text.tokenizer import UnitTokenizer
        >>> piece_splits(UnitTokenizer(Vocabulary.build([["cat"]]), "words", "NFC")).any()
        np.False_
    """
    if not isinstance(tokenizer, PieceTokenizer | MarianTokenizer):
        return np.zeros((len(tokenizer), 1), dtype=np.int32)
    scores = _scores(tokenizer.model)
    names = tokenizer.pieces(range(len(tokenizer)))
    ids = {name: index for index, name in enumerate(names) if name in scores}
    known = {name: scores[name] for name in ids}
    parts = {index: [ids[part] for part in _shorter(name, known)] for name, index in ids.items()}
    splits = np.zeros((len(tokenizer), max(1, *map(len, parts.values()))), dtype=np.int32)
    for index, row in parts.items():
        splits[index, : len(row)] = row
    return splits


def _shorter(name: str, scores: Mapping[str, float]) -> list[str]:
    """Most probable segmentation of a piece into others, by dynamic programming; empty if there is none."""
    best = [(0.0, 0)] + [(-inf, 0)] * len(name)
    for end in range(1, len(name) + 1):
        starts = range(1 if end == len(name) else 0, end)
        sums = ((best[i][0] + scores.get(name[i:end], -inf), i) for i in starts)
        best[end] = max(sums, default=(-inf, 0))
    if best[-1][0] == -inf:
        return []
    parts: list[str] = []
    end = len(name)
    while end:
        start = best[end][1]
        parts.insert(0, name[start:end])
        end = start
    return parts


def _scores(model: bytes) -> dict[str, float]:
    """Log probabilities of the pieces that are text, not bytes or special tokens."""
    processor: Any = load_pieces(model)
    special = (processor.is_control, processor.is_unknown, processor.is_byte, processor.is_unused)
    indices = (i for i in range(processor.get_piece_size()) if not any(test(i) for test in special))
    return {processor.id_to_piece(i): processor.get_score(i) for i in indices}
