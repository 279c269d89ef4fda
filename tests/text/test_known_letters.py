"""Letters that a model does not know are read in forms that it knows, or named."""

import pytest

from heedful.text.column_tokenizer import ColumnTokenizer
from heedful.text.known_letters import KnownLetters
from heedful.text.tokenizer import UnitTokenizer
from heedful.text.vocabulary import SPECIAL_TOKENS, UNK, Vocabulary

LOWER = KnownLetters("abcdefghijklmnopqrstuvwxyz'- ")
UPPER = KnownLetters("ABCDEFGHIJKLMNOPQRSTUVWXYZ'É")


@pytest.mark.parametrize(
    ("letters", "text", "folded", "unknown"),
    [
        (LOWER, "hello", "hello", ()),
        (LOWER, "HELLO Hello hello", "hello hello hello", ()),
        (LOWER, "don’t co‐op ﬁsh Ｆｉｓｈ", "don't co-op fish fish", ()),
        (LOWER, "ÉTÉ naïve", "ete naive", ()),
        (LOWER, "北京 Hi", "北京 hi", ("北", "京")),
        (LOWER, "He2lo", "he2lo", ("2",)),
        (LOWER, "Жa", "Жa", ("Ж",)),
        (LOWER, "ЖA", "жa", ("Ж",)),
        (LOWER, "", "", ()),
        (LOWER, " \t", " \t", ()),
        (LOWER, "a\tb", "a\tb", ("\t",)),
        (LOWER, "a\xa0b", "a\xa0b", ("\xa0",)),
        (KnownLetters("aB"), "Ab", "ab", ("b",)),
        (UPPER, "hello", "HELLO", ()),
        (UPPER, "été", "ÉTÉ", ()),
        (UPPER, "àé", "AE", ()),
        (UPPER, "a b", "A B", (" ",)),
        (KnownLetters("ذهب"), "ذَهَبَ", "ذهب", ()),
        (KnownLetters("がか"), "ぎ", "ぎ", ("ぎ",)),
        (KnownLetters("हनद"), "हिन", "हिन", ("ि",)),
    ],
)
def test_words_are_read_in_the_nearest_known_form(
    letters: KnownLetters, text: str, folded: str, unknown: tuple[str, ...]
):
    assert letters.fold(text) == folded
    assert letters.fold(folded) == folded
    assert letters.unknown(text) == unknown


def test_a_long_text_takes_time_in_proportion():
    assert LOWER.fold("É" * 300_000) == "e" * 300_000


def vocabulary(letters: str) -> Vocabulary:
    return Vocabulary([*SPECIAL_TOKENS, *letters])


def test_sources_alone_are_read_in_other_forms():
    target = UnitTokenizer(vocabulary("abc"), "characters", "NFC")
    source = UnitTokenizer(vocabulary("abc"), "characters", "NFC", reads_forms=True)
    words = UnitTokenizer(vocabulary("abc"), "words", "NFC", reads_forms=True)
    assert (target.encode("AB"), source.encode("AB"), words.encode("A b")) == ([UNK, UNK], [4, 5], [UNK, 5])
    assert (target.unknown_letters("A1"), source.unknown_letters("A1"), words.unknown_letters("1")) == ((), ("1",), ())


def test_features_keep_their_letters():
    text = UnitTokenizer(vocabulary("abc"), "characters", "NFC", reads_forms=True)
    columns = ColumnTokenizer(text, ("text", "features"), ("N", "PL"))
    assert columns.normalize("AB | N;PL") == "ab | N;PL"
    assert columns.encode("AB | N;PL") == columns.encode("ab | N;PL")
    assert columns.unknown_letters("AX | N;V") == ("X",)
    assert columns.normalize("AB") == "ab"
