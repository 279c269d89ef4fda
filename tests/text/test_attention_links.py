"""Links between words from attention."""

import numpy as np
import pytest

from heedful.text.attention_links import attention_links


def strongest(*arguments: object) -> dict[str, str]:
    links = attention_links(*arguments)  # type: ignore[arg-type]
    source, target = str(arguments[0]), str(arguments[1])
    best: dict[str, tuple[float, str]] = {}
    for link in links:
        word = target[link.target_start : link.target_end]
        best[word] = max(best.get(word, (0.0, "")), (link.weight, source[link.source_start : link.source_end]))
    return {word: other for word, (_, other) in best.items()}


def test_pieces_are_joined_to_words_and_eos_is_left_out():
    weights = np.array([[0.2, 0.1, 0.1, 0.6], [0.1, 0.3, 0.3, 0.3], [0.1, 0.1, 0.1, 0.7]])
    links = strongest("ein Hund", "a dog", ["▁ein", "▁Hu", "nd", "</s>"], ["▁a", "▁dog", "</s>"], weights)
    assert links == {"a": "ein", "dog": "Hund"}


def test_characters_of_unspaced_scripts_are_words():
    assert strongest(
        "房间好", "good room", ["▁房间", "好"], ["▁good", "▁room"], np.array([[0.1, 0.9], [0.9, 0.1]])
    ) == {
        "good": "好",
        "room": "房",
    }


def test_a_word_that_all_attend_to_links_to_none_of_them_alone():
    weights = np.array([[0.6, 0.4, 0.0], [0.6, 0.0, 0.4], [0.9, 0.05, 0.05]])
    assert strongest("a b c", "x y z", [*"abc"], [*"xyz"], weights) == {"x": "b", "y": "c", "z": "a"}


@pytest.mark.parametrize(("source", "target"), [("", "a"), ("a", ""), (" ", "")])
def test_blank_texts_have_no_links(source: str, target: str):
    assert attention_links(source, target, ["</s>"], ["</s>"], np.ones((1, 1))) == []
