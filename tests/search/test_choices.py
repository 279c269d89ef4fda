"""The choices of a step are the most probable tokens of the engine, given the tokens before."""

import numpy as np

from heedful.search.choices import token_choices
from heedful.text.vocabulary import BOS, EOS, PAD
from tests.search.engines import Toy


def test_choices_are_the_engine_s_own_log_probabilities_best_first():
    engine, source, output = Toy(seed=3, vocab_size=12), (5, 6, EOS), (7, 4, EOS)
    found = token_choices(engine, [np.array(source)], output, 4)
    assert found.ids.shape == found.log_probs.shape == (3, 4)
    for step in range(3):
        expected = engine.log_probs(source, output[:step]).copy()
        expected[[PAD, BOS]] = -np.inf
        order = np.argsort(-expected, kind="stable")[:4]
        assert found.ids[step].tolist() == order.tolist()
        np.testing.assert_allclose(found.log_probs[step], expected[order])
