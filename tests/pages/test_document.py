import re

from heedful.pages.attention_map import AttentionMap
from heedful.pages.document import STYLE, document, folded, listed, table, texts
from tests.pages.read import Read


def test_nothing_of_the_data_is_taken_for_html():
    odd = "<b>&\"'"
    page = document(
        odd, [table([[odd, odd], [odd, odd]], odd), texts([(odd, odd)], odd), listed([odd]), folded(odd, "")]
    )
    read = Read(page)
    assert page.startswith("<!DOCTYPE html>\n")
    assert read.cells == [odd] * 6
    assert "b" not in read.tags
    assert read.attributes.count(("class", "marked")) == 2


def test_nothing_is_marked_without_a_name():
    assert "marked" not in table([["a"], [""]]) + texts([("", "")])
    assert listed([]) == ""


def test_pictures_drawn_on_white_are_turned_dark_with_the_page():
    rules = STYLE.partition("img {")[2]
    dark = rules[rules.index("@media (prefers-color-scheme: dark)") :].split("\n}")[0]
    assert "img { filter: invert(1)" in dark


def test_nothing_is_wider_than_a_narrow_window():
    # A track of a grid, a long word of a heading or a list would widen the page; tables scroll by themselves.
    assert "minmax(min(21rem, 100%), 1fr)" in STYLE
    for selector in ("h1", "li", "pre", "table.texts th, table.texts td"):
        declared = re.search(rf"^{re.escape(selector)} \{{(.*?)\}}", STYLE, re.MULTILINE | re.DOTALL)
        assert declared, selector
        assert "overflow-wrap: anywhere" in declared[1], selector
    assert table([["a"], ["b"]]).startswith('<div class="wide">')
    assert ".wide { overflow-x: auto; }" in STYLE
    assert AttentionMap("", ["a"], ["b"], [[1.0]]).draw().startswith('<div class="wide">')
