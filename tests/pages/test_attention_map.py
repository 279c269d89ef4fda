"""Attention maps as SVG: every large weight is a cell at its place, and nothing of the data is taken for HTML."""

import re

import pytest

from heedful.pages.attention_map import MOST_TOKENS, AttentionMap
from tests.pages.read import Read

WEIGHTS = [[0.9, 0.1], [0.005, 0.995], [0.5, 0.5]]


def tips(drawn: str) -> list[str]:
    return re.findall(r"<title>(.*?)</title>", drawn)


def test_every_weight_has_its_cell():
    drawn = AttentionMap("x → y", ["▁the", "▁cat"], ["▁die", "▁Katze", "</s>"], WEIGHTS).draw()
    assert tips(drawn) == [
        "die from the: 0.90",
        "die from cat: 0.10",
        "Katze from cat: 0.99",
        "&lt;/s&gt; from the: 0.50",
        "&lt;/s&gt; from cat: 0.50",
    ]
    cells = re.findall(r'<rect x="(\d+)" y="(\d+)" width="17"[^>]*fill-opacity="([\d.]+)"', drawn)
    columns, rows = sorted({x for x, _, _ in cells}, key=int), sorted({y for _, y, _ in cells}, key=int)
    places = [(rows.index(y), columns.index(x), share) for x, y, share in cells]
    assert places == [(0, 0, "0.90"), (0, 1, "0.10"), (1, 1, "0.99"), (2, 0, "0.50"), (2, 1, "0.50")]
    Read(drawn)


def test_nothing_of_the_data_is_taken_for_html():
    drawn = AttentionMap('<i>"', ["<b>", "&"], ['"><script>'], [[1.0, 1.0]]).draw()
    assert not {"b", "i", "script"} & {*Read(drawn).tags}


def test_single_characters_stay_upright_and_words_are_turned():
    assert AttentionMap("", ["日", "本", "<eos>"], ["a"], [[1.0, 0.0, 0.0]]).draw().count("rotate(") == 1
    assert AttentionMap("", ["▁good", "▁day"], ["a"], [[1.0, 0.0]]).draw().count("rotate(") == 2


@pytest.mark.parametrize(("source", "target"), [(0, 1), (1, 0), (MOST_TOKENS + 1, 1), (1, MOST_TOKENS + 1)])
def test_empty_and_large_maps_are_left_out(source: int, target: int):
    assert AttentionMap("", ["a"] * source, ["b"] * target, [[1.0] * source] * target).draw() == ""
    assert AttentionMap("", ["a"] * MOST_TOKENS, ["b"], [[1.0] * MOST_TOKENS]).draw() != ""
