"""Selective classification: the largest selection whose labels are right often enough."""

import numpy as np

from heedful.evaluation.selective import (
    MOST_POINTS,
    WANTED,
    select_confident,
    select_most_precise,
    selections,
    shown_confidence,
)


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


def test_the_most_precise_selection_is_the_largest_with_the_largest_share():
    drawn = np.random.default_rng(3)
    for _ in range(50):
        confidences = np.round(drawn.random(40), 1)
        right = drawn.random(40) < 0.7
        best = select_most_precise(confidences.tolist(), right.tolist())
        shares = {float(least): float(100 * right[confidences >= least].mean()) for least in confidences}
        assert best is not None
        assert np.isclose(best.accuracy, max(shares.values()))
        assert best.min_confidence == min(least for least, share in shares.items() if np.isclose(share, best.accuracy))
    assert select_most_precise([0.5, 0.4], [False, False]) is None


def test_points_of_the_curve_are_few_and_far_apart():
    drawn = np.random.default_rng(2)
    confidences = drawn.uniform(0.3, 0.9, 2000)
    right = drawn.random(2000) < confidences
    points = selections(confidences.tolist(), right.tolist())
    coverages = np.array([point.coverage for point in points])
    assert len(points) == MOST_POINTS
    assert coverages[0] == 100.0
    assert np.all(np.diff(coverages) < 0)
    assert np.abs(np.diff(coverages)).max() < 35.0
    assert [point.min_confidence for point in points] == sorted(point.min_confidence for point in points)
    # Behind a selection that is all right, there is nothing to tell.
    assert len(selections([0.9, 0.8, 0.7, 0.6, 0.5], [True] * 5)) == 1


def test_a_least_confidence_is_as_short_as_selects_the_same():
    confidences = [0.99999712, 0.99999611, 0.9123456, 0.51]
    for number, shown in ((1, "0.999997"), (2, "0.999"), (3, "0.912"), (4, "0.510")):
        right = [index < number for index in range(4)]
        chosen = select_confident(confidences, right, 100.0)
        assert chosen is not None
        assert shown_confidence(chosen.min_confidence) == shown
        assert sum(each >= chosen.min_confidence for each in confidences) == number
