"""The data of the page survive JSON: weights to the bit, numbers without infinities."""

import base64
import json
import math

import numpy as np

from heedful.pages.sentence import packed, rounded
from tests.pages.views import sentence_view


def test_packed_weights_are_the_same_bits():
    weights = np.random.default_rng(0).random((2, 3, 4)).astype(np.float32)
    written = packed(weights)
    again = np.frombuffer(base64.b64decode(written["data"]), dtype="<f4").reshape(written["shape"])
    np.testing.assert_array_equal(again, weights)


def test_numbers_that_json_lacks_are_null():
    assert [rounded(value) for value in (0.123456789, math.inf, -math.inf, math.nan)] == [0.12346, None, None, None]


def test_a_view_is_json_with_every_map_output_and_hypothesis():
    view = sentence_view()
    tree = json.loads(json.dumps(view.to_dict(), allow_nan=False))
    assert [one["role"] for one in tree["maps"]] == ["cross", "cross", "encoder", "encoder", "decoder", "decoder"]
    assert tree["outputs"][0]["choices"][0][1]["output"]["text"] == view.outputs[1].text
    assert "output" not in tree["outputs"][0]["choices"][0][0]
    assert [len(one["nodes"]) for one in tree["searches"]] == [len(one.trace.nodes) for one in view.searches]
    assert len(tree["source"]["wordOf"]) == len(tree["source"]["ids"]) == len(tree["source"]["pieces"])
