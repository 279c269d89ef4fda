"""Page of the attention in a lesson: its words, its tables, and what it refuses."""

import json
import re
from html import unescape
from typing import Any

import numpy as np
import pytest

from heedful.course import AttentionPage
from heedful.errors import ShapeError, UsageError

SOURCE, OUTPUT = ["my", "cat", "</s>"], ["ma", "chatte", "noire", "</s>"]


def view_of(html: str) -> dict[str, Any]:
    (data,) = re.findall(r'id="view-data">(.*?)</script>', html, re.DOTALL)
    return json.loads(data)


def page() -> AttentionPage:
    numbers = np.random.default_rng(0)
    shapes = {"cross": (2, 4, 3), "encoder": (2, 3, 3), "decoder": (2, 4, 4)}
    return AttentionPage(SOURCE, OUTPUT, {role: [numbers.random(shape)] for role, shape in shapes.items()})


def test_a_page_has_the_words_and_all_tables():
    view = view_of(page().to_html())
    assert (view["source"]["text"], view["outputs"][0]["text"]) == ("my cat", "ma chatte noire")
    assert (view["source"]["words"], view["outputs"][0]["words"]) == (
        ["my", "cat", "⏎"],
        ["ma", "chatte", "noire", "⏎"],
    )
    assert view["outputs"][0]["logProb"] is None  # which is not known
    assert {each["role"]: each["shape"] for each in view["maps"]} == {
        "cross": [2, 4, 3],
        "encoder": [2, 3, 3],
        "decoder": [2, 4, 4],
    }


def test_words_of_one_character_stay_words():
    view = view_of(AttentionPage([*"4711"], [*"1174"], {"cross": [np.eye(4)[None]]}).to_html())
    assert view["source"]["words"] == [*"4711"]


def test_a_notebook_shows_the_page_in_a_frame():
    (frame,) = re.findall(r'<iframe srcdoc="([^"]*)"', page()._repr_html_())  # pyright: ignore[reportPrivateUsage]
    assert unescape(frame) == page().to_html()


def test_a_page_without_weights_between_output_and_source_has_those_of_the_encoder():
    view = view_of(AttentionPage(SOURCE, OUTPUT, {"encoder": [np.ones((1, 3, 3)) / 3]}).to_html())
    assert view["outputs"][0]["weights"] is None


def test_an_unknown_part_is_refused():
    with pytest.raises(UsageError, match="no part 'between'; it is one of cross, encoder, decoder"):
        AttentionPage(SOURCE, OUTPUT, {"between": [np.ones((1, 4, 3))]})


@pytest.mark.parametrize("shape", [(4, 3), (1, 3, 4), (1, 4, 4)])
def test_a_table_of_another_shape_is_refused(shape: tuple[int, ...]):
    with pytest.raises(ShapeError, match=r"its words need \[head, 4, 3\]"):
        AttentionPage(SOURCE, OUTPUT, {"cross": [np.ones(shape)]})
