"""Pieces merge into the words that a reader sees."""

import pytest

from heedful.pages.words import END_SIGN, Words
from heedful.text.vocabulary import EOS


def words_of(*pieces: str) -> tuple[str, ...]:
    return Words.of([5] * len(pieces), pieces).words


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (("▁Haus", "tür", "▁ist", "."), ("Haustür", "ist", ".")),
        (("今天", "天气", "。"), ("今天", "天气", "。")),
        (("▁don", "'", "t"), ("don't",)),
        (("2", "0", "4", "-", "0", "9"), ("204", "-", "09")),
        (("F", "r", "i", " ", "8"), ("Fri", "8")),
        (("▁क", "\u093f", "ताब"), ("क\u093fताब",)),
        (("▁", "word"), ("word",)),
        (("▁",), ("␣",)),
        ((), ()),
    ],
)
def test_pieces_merge_into_words(pieces: tuple[str, ...], words: tuple[str, ...]):
    assert words_of(*pieces) == words


def test_eos_is_a_word_of_its_own_whatever_its_piece():
    found = Words.of([5, 6, EOS], ["▁ab", "c", "</s>"])
    assert (found.words, found.word_of, found.pieces) == (("abc", END_SIGN), (0, 0, 1), ("ab", "c", END_SIGN))
    assert Words.of([5, 6], ["▁a", "</s>"]).words[-1] == "</s>"


def test_word_indices_never_decrease_and_name_every_word():
    found = Words.of([5] * 6, ["▁a", "b", " ", "1", "2", "x"])
    assert sorted(set(found.word_of)) == list(range(len(found.words)))
    assert list(found.word_of) == sorted(found.word_of)


def test_a_root_is_a_word_before_the_others():
    found = Words.of([5, 6, EOS], ["▁ab", "c", "</s>"]).after("root")
    assert (found.words, found.word_of) == (("root", "abc", END_SIGN), (0, 1, 1, 2))
    assert found.pieces == ("root", "ab", "c", END_SIGN)


def test_tokens_that_are_words_stand_alone():
    assert words_of("das", "Haus", "steht") == ("das", "Haus", "steht")
    assert words_of("19", "*", "7") == ("19", "*", "7")
    assert words_of("d", "a", "s", " ", "H") == ("das", "H")  # letters
    assert Words.of([5, 6, EOS], ["a", "b", "</s>"]).words == ("ab", END_SIGN)
