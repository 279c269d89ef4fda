"""Spans of positions."""

import numpy as np
import pytest

from heedful.engines.spans import best_spans


def draw(size: int) -> np.ndarray:
    return np.log(np.random.default_rng(size).dirichlet(np.ones(size), 2)).astype(np.float32)


@pytest.mark.parametrize("size", [1, 2, 3, 9, 70])
@pytest.mark.parametrize("number", [1, 3, 100])
def test_the_best_of_all_spans_whose_start_is_not_behind_their_end(size: int, number: int):
    log_probs = draw(size)
    start, end = log_probs.astype(np.float64)
    wanted = sorted(
        ((start[i] + end[j], i, j) for i in range(size) for j in range(i, size)), key=lambda one: (-one[0], *one[1:])
    )
    found = best_spans(log_probs, number)
    assert [(one.first, one.last) for one in found] == [(i, j) for _, i, j in wanted[:number]]
    assert [one.log_prob for one in found] == pytest.approx([score for score, *_ in wanted[:number]])


def test_an_end_before_the_start_is_no_span():
    """The best start is behind the best end, which a search for each alone would return."""
    log_probs = np.log(np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]], dtype=np.float32))
    (best,) = best_spans(log_probs, 1)
    assert (int(log_probs[0].argmax()), int(log_probs[1].argmax())) == (2, 0)
    assert best.first <= best.last
    assert best[:2] == (2, 2)


def test_positions_that_are_impossible_or_absent_give_no_span():
    assert best_spans(np.zeros((2, 0), np.float32), 3) == []
    one = best_spans(np.array([[-np.inf, 0.0], [0.0, -np.inf]], dtype=np.float32), 3)
    assert one == []
