"""Shaded documents."""

import re

from heedful.pages.attention_text import TextView

SENTENCES = [
    [("A", 0.0), (" <dull>", 0.01), (" plot", 0.09), ("", 0.0)],
    [("but", 0.1), (" wonderful", 0.8), ("", 0.0)],
]


def test_words_are_the_darker_the_larger_their_weights():
    drawn = TextView("a → good", SENTENCES).draw()
    shades = {word: int(share) for share, word in re.findall(r"first\) (\d+)%.*?>([^<]+)</mark>", drawn)}
    assert list(shades) == ["plot", "but", "wonderful"]  # the others have next to no weight
    assert shades["plot"] < shades["but"] < shades["wonderful"] == 65
    assert re.sub("<[^>]+>", "", drawn).split() == ["A", "&lt;dull&gt;", "plot", "but", "wonderful"]


def test_the_bar_of_a_sentence_is_the_sum_of_its_words():
    drawn = TextView("", SENTENCES).draw()
    assert re.findall(r'title="([\d.]+)"><span style="width:(\d+)%"', drawn) == [("0.100", "11"), ("0.900", "100")]


def test_a_document_without_weights_is_not_drawn():
    assert TextView("", [[("a", 0.0)]]).draw() == ""
    assert TextView("", []).draw() == ""
