from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import FileRefused
from heedful.text.vocabulary import BOS, EOS, PAD, SPECIAL_TOKENS, UNK, Vocabulary


def test_the_ids_that_everything_else_counts_on():
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    assert SPECIAL_TOKENS == ("<pad>", "<unk>", "<bos>", "<eos>")


def test_the_most_frequent_come_first_and_ties_in_order():
    vocabulary = Vocabulary.build(["b a b".split(), "c a d".split()])
    assert vocabulary.tokens == (*SPECIAL_TOKENS, "a", "b", "c", "d")
    assert vocabulary.ids(["d", "x", "a"]) == [7, UNK, 4]
    assert len(vocabulary) == 8
    assert "a" in vocabulary
    assert "x" not in vocabulary


@pytest.mark.parametrize(("max_size", "kept"), [(0, 4), (8, 4), (7, 3), (5, 1), (4, 0), (3, 0), (1, 0)])
def test_the_size_counts_the_special_ones(max_size: int, kept: int):
    assert len(Vocabulary.build([list("abcd")], max_size=max_size)) == 4 + kept


@pytest.mark.parametrize("token", SPECIAL_TOKENS)
def test_a_word_in_a_text_is_never_a_special_token(token: str):
    vocabulary = Vocabulary.build([[token, token, "a"]])
    assert vocabulary.tokens == (*SPECIAL_TOKENS, "a")
    assert vocabulary.ids([token, "a"]) == [UNK, 4]


@given(tokens=st.lists(st.text(), unique=True))
def test_any_tokens_survive_the_file(tmp_path_factory: pytest.TempPathFactory, tokens: list[str]):
    path = tmp_path_factory.mktemp("v") / "v.json"
    vocabulary = Vocabulary.build([tokens])
    vocabulary.save(path)
    assert Vocabulary.load(path).tokens == vocabulary.tokens


@pytest.mark.parametrize("token", [" ", "\n", "\r\n", "\t", "", "\u2028", "\0", '"', "\\", "<s>", "天"])
def test_tokens_that_break_other_formats(token: str, tmp_path: Path):
    vocabulary = Vocabulary([*SPECIAL_TOKENS, token, "a"])
    vocabulary.save(tmp_path / "v.json")
    loaded = Vocabulary.load(tmp_path / "v.json")
    assert loaded.ids([token, "a"]) == [4, 5]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('["<pad>", "<unk>", "<bos>", "<eos>", "a", "a"]', "'a' is listed twice"),
        ('["<pad>", "<unk>", "<bos>", "<eos>", "<pad>"]', "'<pad>' is listed twice"),
        ('["<unk>", "<pad>", "<bos>", "<eos>"]', "must start with"),
        ("[]", "must start with"),
        ('["<pad>", "<unk>", "<bos>", "<eos>", 5]', "expected its tokens as a list of strings"),
        ('{"a": 1}', "expected its tokens as a list of strings"),
        ("[" * 100_000, "not a vocabulary"),
        ("not JSON", "not a vocabulary"),
        ("\ufeff[]", "not a vocabulary"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused_by_name(content: str, complaint: str, tmp_path: Path):
    path = tmp_path / "v.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FileRefused, match=complaint) as caught:
        Vocabulary.load(path)
    assert "v.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path):
    (tmp_path / "v.json").write_bytes(b'["\xff"]')
    with pytest.raises(FileRefused, match="not a vocabulary"):
        Vocabulary.load(tmp_path / "v.json")
    with pytest.raises(FileRefused, match="not a vocabulary"):
        Vocabulary.load(tmp_path / "missing.json")
