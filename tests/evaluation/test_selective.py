"""Selective classification: the largest selection whose labels are right often enough."""

import numpy as np

from heedful.evaluation.selective import WANTED, select_confident, selections


def test_no_larger_selection_is_right_often_enough():
    drawn = np.random.default_rng(1)
    for _ in range(50):
        confidences = np.round(drawn.random(40), 1).tolist()  # with ties, which are selected together
        right = (drawn.random(40) < np.array(confidences)).tolist()
        for wanted in (60.0, *WANTED):
            shares = {
                least: np.mean([own for own, c in zip(right, confidences, strict=True) if c >= least])
                for least in confidences
            }
            usable = [least for least, share in shares.items() if 100 * share >= wanted]
            chosen = select_confident(confidences, right, wanted)
            assert (chosen is None) == (not usable)
            if chosen is not None:
                assert chosen.min_confidence == min(usable)
                assert np.isclose(chosen.coverage, 100 * np.mean([c >= chosen.min_confidence for c in confidences]))
                assert np.isclose(chosen.accuracy, 100 * shares[chosen.min_confidence])
    assert selections([0.5], [False]) == ()
