import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.evaluation.metrics.edit_distance import edit_distance
from heedful.evaluation.symbol_alignment import align_symbols, symbol_division

WORDS = st.text("aàbß ", max_size=9)


@given(WORDS, WORDS)
def test_alignments_have_the_fewest_edits_and_both_sides(one: str, other: str):
    pairs = align_symbols(one, other)
    assert "".join(said for said, _ in pairs) == one
    assert "".join(written for _, written in pairs) == other
    assert ("", "") not in pairs
    assert sum(said != written for said, written in pairs) == edit_distance(one, other)


@pytest.mark.parametrize(
    ("one", "other", "pairs"),
    [
        ("t ʃ̩ o", "t ʃ i o", "t-t ʃ̩-ʃ -i o-o"),  # not ʃ̩ by i, with a ʃ too many
        ("t ʃ i o", "t ʃ̩ o", "t-t ʃ-ʃ̩ i- o-o"),
        ("AH0 K", "T AH1 K", "-T AH0-AH1 K-K"),
        ("", "A", "-A"),
        ("A", "", "A-"),
        ("", "", ""),
    ],
)
def test_forms_of_one_letter_stand_beside_each_other(one: str, other: str, pairs: str):
    assert align_symbols(one.split(), other.split()) == [tuple(pair.split("-")) for pair in pairs.split()]


@pytest.mark.parametrize(
    ("references", "word", "symbols"),
    [
        (["HH AH0 L OW1", "W ER1 L D"], "S AY1", ["S", "AY1"]),
        (["zhong1 guo2", "ni3 hao3"], "guo2 ni3", ["guo2", "ni3"]),
        (["portbaɡaʒ", "segart͡ʃ̩avale"], "t͡ʃ̩a", ["t͡ʃ̩", "a"]),
        (["2021-03-05", "1999-12-31"], "20 -1", ["2", "0", "-", "1"]),
        (["ging", "gegangen", *["lief"] * 38, "hat an"], "a b", ["a", "b"]),
    ],
)
def test_words_are_divided_into_phones_or_letters(references: list[str], word: str, symbols: list[str]):
    divide = symbol_division(references)
    assert divide is not None
    assert divide(word) == symbols


@pytest.mark.parametrize(
    "references",
    [
        ["a quiet apartment with a view", "the street is noisy"],
        [f"{number:x} {number + 1:x}" for number in range(2500)],
        ["A B C", "A B encyclopedia"],
    ],
)
def test_several_words_are_not_divided(references: list[str]):
    assert symbol_division(references) is None
