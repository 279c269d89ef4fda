"""Splits of pieces into shorter ones: the same text, and the most probable way."""

from itertools import pairwise, product

import pytest
import sentencepiece

from heedful.text.piece_splits import piece_splits
from heedful.text.tokenizer import PieceTokenizer
from tests.text.test_tokenizer import LINES


@pytest.fixture(scope="module")
def tokenizer() -> PieceTokenizer:
    return PieceTokenizer.train(LINES, 400, "NFC")


def test_parts_joined_are_the_piece(tokenizer: PieceTokenizer):
    splits = piece_splits(tokenizer)
    names = tokenizer.pieces(range(len(tokenizer)))
    num_split = 0
    for name, row in zip(names, splits, strict=True):
        parts = row[row > 0].tolist()
        assert (row[len(parts) :] == 0).all()
        if parts:
            num_split += 1
            assert len(parts) > 1
            assert "".join(tokenizer.pieces(parts)) == name
    assert num_split > 10
    assert not splits[:260].any()  # special tokens and bytes


def test_the_split_is_the_most_probable_one(tokenizer: PieceTokenizer):
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    names = tokenizer.pieces(range(len(tokenizer)))
    scores = {name: processor.get_score(i) for i, name in enumerate(names) if not processor.is_byte(i) and i > 3}
    for name, row in zip(names, piece_splits(tokenizer), strict=True):
        if name not in scores or not 1 < len(name) <= 8:
            continue
        sums = []
        for cuts in product((False, True), repeat=len(name) - 1):
            ends = [i + 1 for i, cut in enumerate(cuts) if cut] + [len(name)]
            parts = [name[a:b] for a, b in pairwise([0, *ends])]
            if len(parts) > 1 and all(part in scores for part in parts):
                sums.append(sum(scores[part] for part in parts))
        parts = tokenizer.pieces(row[row > 0].tolist())
        assert bool(parts) == bool(sums)
        if sums:
            assert sum(scores[part] for part in parts) == pytest.approx(max(sums))
