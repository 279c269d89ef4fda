"""Texts with the weights of their words."""

import io

import numpy as np
import pytest
from rich.console import Console

from heedful.cli.attention_text import weighted_text
from heedful.predictors.classifier import Classification


def result(text: str, pieces: str, weights: list[float]) -> Classification:
    return Classification(text, "x", 1.0, {"x": 1.0}, tuple(pieces.split()), np.array(weights, dtype=np.float32))


PIECES = result(
    "A room. Not moul dy.", "▁A ▁room . </s> ▁Not ▁moul dy . </s>", [0.05, 0.05, 0, 0.1, 0, 0.2, 0.5, 0, 0.1]
)


def plain(one: Classification) -> str:
    return weighted_text(one, Console(color_system=None, file=io.StringIO(), width=20))


def test_elsewhere_weights_are_numbers_behind_words_whose_pieces_are_joined():
    assert plain(PIECES) == "  0.20  A (0.05) room (0.05).\n  0.80  Not mouldy (0.70).\n"


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (result("a b c", "a b c <eos>", [0.5, 0.5, 0, 0]), "  1.00  a (0.50) b (0.50) c\n"),
        (result("房间脏", "▁ 房间 脏 </s>", [0, 0, 1, 0]), "  1.00  房间脏 (1.00)\n"),
        (result("ab", "a b <eos>", [1, 0, 0]), "  1.00  a (1.00)b\n"),
        (result("a", "▁a", [1]), "  1.00  a (1.00)\n"),
        (result("", "</s>", [1]), "  1.00  \n"),
        (result("a", "▁a </s>", [0, 0]), "  0.00  a\n"),
    ],
)
def test_words_characters_and_scripts_without_spaces(one: Classification, line: str):
    assert plain(one) == line


def test_on_a_terminal_words_are_coloured_by_weight():
    console = Console(force_terminal=True, color_system="truecolor", file=io.StringIO(), width=20)
    lines = weighted_text(PIECES, console).splitlines()
    assert lines[1].startswith("  0.80  Not \x1b[")
    assert "48;2;8;81;156" in lines[1]  # the largest weight is darkest
    assert "(" not in lines[1]
    assert "\x1b" in lines[0]
    assert "48;2;8;81;156" not in lines[0]


def test_without_attention_there_is_nothing_to_write():
    one = Classification("a", "x", 1.0, {"x": 1.0})
    assert plain(one) == ""
