from pathlib import Path

import pytest

from heedful.errors import FileRefused
from heedful.export.marian import read_marian
from heedful.text.marian import MarianTokenizer
from heedful.text.tokenizer_files import load_tokenizer
from heedful.text.vocabulary import BOS, EOS, PAD, UNK
from tests.export.marian_folder import write_folder


@pytest.fixture
def tokenizer(tmp_path: Path) -> MarianTokenizer:
    return read_marian(write_folder(tmp_path)).source_tokenizer


def test_pieces_are_numbered_by_the_vocabulary(tokenizer: MarianTokenizer):
    ids = tokenizer.encode("a ☃ d")
    assert len(tokenizer) == 13
    assert UNK in ids
    assert not {PAD, BOS, EOS} & set(ids)
    assert "".join(tokenizer.pieces(tokenizer.encode("b b"))) == "▁b▁b"
    assert tokenizer.encode("") == []


def test_the_mark_of_a_space_in_a_text_begins_no_word(tokenizer: MarianTokenizer):
    for text, num_words in (("a\u2581b", 1), ("a\u2581b d", 2), ("a \u2581 d", 3), ("a\u2581b \u2581 d", 3)):
        assert max(tokenizer.word_indices(tokenizer.encode(text))) + 1 == num_words, text


def test_special_tokens_in_a_text_are_unknown(tokenizer: MarianTokenizer):
    assert not {PAD, BOS, EOS} & set(tokenizer.encode("</s> <pad> <eos> a"))


def test_a_language_mark_at_the_beginning_is_one_token(tokenizer: MarianTokenizer):
    mark = tokenizer.vocabulary.tokens.index(">>x<<")
    assert tokenizer.encode(">>x<< a") == [mark, *tokenizer.encode("a")]
    assert tokenizer.encode(">>nn<<a") == [UNK, *tokenizer.encode("a")]
    assert mark not in tokenizer.encode(">>x")


def test_text_comes_back_without_what_marks_ends(tokenizer: MarianTokenizer):
    ids = tokenizer.encode("a b b")
    assert tokenizer.decode([BOS, *ids, EOS, PAD]) == "a b b"
    assert tokenizer.word_indices(tokenizer.encode("ab b")) == sorted(tokenizer.word_indices(tokenizer.encode("ab b")))
    assert max(tokenizer.word_indices(tokenizer.encode("ab b"))) == 1


def test_what_is_saved_is_loaded_again(tokenizer: MarianTokenizer, tmp_path: Path):
    name = tokenizer.save(tmp_path, "source")
    again = load_tokenizer(tmp_path / name, "pieces", "none")
    assert isinstance(again, MarianTokenizer)
    assert again.vocabulary.tokens == tokenizer.vocabulary.tokens
    assert again.encode("a b ab d") == tokenizer.encode("a b ab d")


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"tokens": []}', '{"tokens": [1], "model": ""}', '{"tokens": [], "model": "%"}', "[" * 99_999],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: str):
    path = tmp_path / "x.marian"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FileRefused, match="not a tokenizer"):
        load_tokenizer(path, "pieces", "none")
    with pytest.raises(FileRefused, match="not a tokenizer"):
        load_tokenizer(tmp_path / "none.marian", "pieces", "none")
