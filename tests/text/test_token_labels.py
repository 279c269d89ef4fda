"""Labels can be read one by one: nothing invisible, nothing that is two things, widths as a terminal has them."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from heedful.text.token_labels import pad, readable_labels, shorten


@pytest.mark.parametrize(
    ("pieces", "labels"),
    [
        (["▁Ein", "▁Haus", "tür", "schlüssel", "."], ["Ein", "Haus", "-tür", "-schlüssel", "."]),
        (["▁don", "'", "t"], ["don", "'", "t"]),  # only letters after letters are one word
        (["▁", "我", "想", "学习"], ["␣", "我", "想", "学习"]),  # no spaces, no hyphens
        (["▁GPU", "很", "快"], ["GPU", "很", "快"]),
        (["a", " ", "b", "\u3000"], ["a", "␣", "b", "␣"]),  # characters: no word marks, so no hyphens
        (["▁of▁the"], ["of␣the"]),
        (["step 1", " a b "], ["step 1", "␣a b␣"]),
        (["▁2", "0", "</s>"], ["2", "0", "</s>"]),
        (["\u200b", "\n", "\ud800", "\u202ex"], ["U+200B", "U+000A", "U+D800", "U+202Ex"]),
        (["می\u200cخواهم"], ["می\u200cخواهم"]),  # a joiner within a word is part of its spelling
        (["\u0301", "e\u0301"], ["◌\u0301", "e\u0301"]),
        ([""], [""]),
        ([], []),
    ],
)
def test_labels(pieces: list[str], labels: list[str]):
    assert readable_labels(pieces) == labels


@given(st.lists(st.text()))
def test_no_label_breaks_a_line_or_hides(pieces: list[str]):
    labels = readable_labels(pieces)
    assert len(labels) == len(pieces)
    hidden = {"Cc", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"}
    characters = {character for label in labels for character in label}
    assert not [one for one in characters - {" "} if unicodedata.category(one) in hidden]
    assert not [label for label in labels if label != label.strip(" ")]


@given(st.text(alphabet="ab中文é\u0301ｱ"), st.integers(1, 9))
def test_a_shortened_label_fits_and_says_that_it_was_cut(label: str, most: int):
    short = shorten(label, most)
    assert cell_len(short) <= most
    assert short == label or (short.endswith("…") and label.startswith(short[:-1]) and cell_len(label) > most)


def test_padding_counts_wide_characters_twice():
    assert [pad(label, 5) for label in ("ab", "中文", "a中b1")] == ["ab   ", "中文 ", "a中b1"]
