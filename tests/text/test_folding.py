"""Folding of texts."""

from hypothesis import given
from hypothesis import strategies as st

from heedful.text.folding import fold


def test_texts_that_say_the_same_are_folded_to_the_same():
    text = "It's \"really\" good - isn't it?"
    folded = fold(text)
    for other in (
        text.upper(),
        f"\t{text}\r\n",
        text.replace(" ", "\u00a0"),
        text.replace(" ", " \n\t "),
        text.replace("'", "\u2019").replace(' "', " \u201c").replace('"', "\u201d"),
        text.replace(" - ", " \u2014 "),
        f"\ufeff{text}\u200b",
        "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text),  # full-width forms
    ):
        assert fold(other) == folded, other
    assert fold("not") != fold("hot")


@given(st.text())
def test_a_folded_text_is_its_own_folding(text: str):
    once = fold(text)
    assert fold(once) == once
    assert once == " ".join(once.split())
