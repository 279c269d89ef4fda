"""Parts of a SentencePiece model: what the library says of it, and damaged files."""

import contextlib
import io
import random

import pytest
import sentencepiece

from heedful.errors import FileRefused
from heedful.text.sentencepiece_file import PieceKind, read_pieces


def trained(**settings: object) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(["a b c ab abc cab", "bb ca d b a", "ab ab d d cc"] * 5),
        model_writer=model,
        vocab_size=300 if settings.get("byte_fallback") else 14,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
        **settings,
    )
    return model.getvalue()


def test_pieces_scores_and_kinds_are_those_of_the_library():
    model = trained(byte_fallback=True, user_defined_symbols=["xy"])
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    for index, (piece, score, kind) in enumerate(read_pieces(model).pieces):
        assert piece == processor.id_to_piece(index)
        assert score == processor.get_score(index)
        assert (kind is PieceKind.BYTE) == processor.is_byte(index)
        assert (kind is PieceKind.CONTROL) == processor.is_control(index)
        assert (kind is PieceKind.UNKNOWN) == processor.is_unknown(index)
    assert (PieceKind.USER_DEFINED in {kind for _, _, kind in read_pieces(model).pieces}) is True


def test_settings_of_the_normalization_are_read():
    usual = read_pieces(trained())
    assert (usual.kind, usual.has_prefix, usual.merges_spaces, usual.marks_spaces, usual.is_suffix) == (1, 1, 1, 1, 0)
    assert len(usual.charsmap) > 100_000
    other = read_pieces(
        trained(
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            normalization_rule_name="identity",
            model_type="bpe",
            treat_whitespace_as_suffix=True,
        )
    )
    assert (other.kind, other.has_prefix, other.merges_spaces, other.is_suffix, other.charsmap) == (2, 0, 0, 1, b"")


def test_a_damaged_model_is_refused_or_read():
    model, draw = trained(normalization_rule_name="identity"), random.Random(0)
    for _ in range(200):
        place = draw.randrange(len(model))
        damaged = model[:place] + bytes([draw.randrange(256)]) + model[place + 1 :]
        for content in (damaged, model[:place]):
            with contextlib.suppress(FileRefused):  # nothing else
                read_pieces(content)
    with pytest.raises(FileRefused, match="SentencePiece"):
        read_pieces(b"\x0a\xff\xff")
