"""Maps between words are those of the highest layer, with a root or a beginning before the words."""

from dataclasses import replace

import numpy as np
import pytest

from heedful.errors import UsageError
from heedful.pages.sentence import WeightMap
from heedful.pages.word_map import map_within
from heedful.pages.words import END_SIGN, ROOT_SIGN, START_SIGN
from tests.pages.views import sentence_view, weights_of


def test_the_highest_layer_is_averaged_over_its_heads_and_merged_into_words():
    view = sentence_view()
    drawn = map_within(view, "encoder")
    assert (drawn.rows, drawn.columns, drawn.tree) == (view.source.words, view.source.words, ())
    highest = [one for one in view.maps if one.role == "encoder"][-1]
    np.testing.assert_allclose(drawn.weights, highest.weights.mean(axis=0), atol=1e-6)  # each piece is a word
    decoder = map_within(replace(view, maps=(WeightMap("decoder", 0, weights_of(2, 6, 6, 1)),)), "decoder")
    # Each row attends to the beginning and to the tokens before its own.
    assert decoder.rows == ("The", "weather", "is", "good", END_SIGN)
    assert decoder.columns == (START_SIGN, "The", "weather", "is", "good")
    np.testing.assert_allclose(decoder.weights.sum(axis=1), 1.0, atol=1e-5)


def test_a_root_stands_before_the_words_and_a_tree_has_no_arcs_within_them():
    view = sentence_view(source=("▁He", "▁sle", "pt", "</s>"))
    heads = WeightMap("encoder", 0, weights_of(1, 4, 5, 3), has_root=True, tree=np.array([[2, 0, 2, 2]]))
    drawn = map_within(replace(view, maps=(heads,)), "encoder")
    assert (drawn.rows, drawn.columns) == (("He", "slept", END_SIGN), (ROOT_SIGN, "He", "slept", END_SIGN))
    assert drawn.tree == ((0, 2), (1, 0), (2, 2))
    np.testing.assert_allclose(drawn.weights.sum(axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize(
    ("missing", "message"),
    [({}, "no attention within the output"), ({"layers": "export it"}, "--attention decoder: export it")],
)
def test_a_model_without_such_attention_is_named(missing: dict[str, str], message: str):
    with pytest.raises(UsageError, match=message):
        map_within(replace(sentence_view(), maps=(), missing=missing), "decoder")
