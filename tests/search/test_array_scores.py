import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import NeedError, NonFiniteError
from heedful.search.array_scores import ArrayScores, adjusted, best
from heedful.search.interface import Adjust


@given(
    vocab_size=st.sampled_from([1, 2, 63, 64, 65, 129, 400, 1000]),
    k=st.integers(1, 12),
    num_values=st.sampled_from([1, 2, 5, 10**6]),
    seed=st.integers(0, 999),
    banned=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_best_equals_sorting_everything(vocab_size: int, k: int, num_values: int, seed: int, banned: bool) -> None:
    generator = np.random.default_rng(seed)
    log_probs = -generator.integers(0, num_values, size=(2, 3, vocab_size)).astype(np.float32)
    if banned:
        log_probs[generator.random(log_probs.shape) < 0.9] = -np.inf
    values, ids = best(log_probs, k)
    assert values.dtype == np.float64
    assert ids.dtype == np.int64
    for row in np.ndindex(2, 3):
        order = sorted(range(vocab_size), key=lambda token: (-log_probs[row][token], token))[:k]
        assert ids[row].tolist() == order
        assert values[row].tolist() == log_probs[row][order].tolist()


def test_equal_values_far_apart_keep_the_order_of_their_ids() -> None:
    log_probs = np.full(1000, -9.0)
    log_probs[[70, 700, 701]] = [-1.0, 0.0, -1.0]
    assert best(log_probs, 4)[1].tolist() == [700, 70, 701, 0]


@pytest.mark.parametrize("vocab_size", [5, 1000])
def test_nan_is_refused_wherever_it_stands(vocab_size: int) -> None:
    for place in range(0, vocab_size, 3):
        log_probs = np.zeros((1, 1, vocab_size))
        log_probs[0, 0, place] = np.nan
        with pytest.raises(NonFiniteError, match="NaN"):
            best(log_probs, 2)


def test_adjust_bans_and_adds_without_touching_the_scores() -> None:
    log_probs = np.log(np.array([[[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]]]))
    scores = ArrayScores(log_probs)
    before = log_probs.copy()
    adjust = Adjust(
        banned=np.array([0]),
        sources=np.array([0, 0, 0]),
        hypotheses=np.array([0, 1, 1]),
        ids=np.array([3, 3, 3]),
        values=np.array([-np.inf, 1.0, 2.0]),
    )
    values, ids = scores.top(4, adjust)
    assert ids.tolist() == [[[2, 1, 0, 3], [3, 1, 2, 0]]]
    np.testing.assert_allclose(values[0, 0], [np.log(0.3), np.log(0.2), -np.inf, -np.inf])
    np.testing.assert_allclose(values[0, 1], [np.log(0.1) + 3.0, np.log(0.3), np.log(0.2), -np.inf])
    np.testing.assert_array_equal(scores.full(), before)


def test_missing_weights_are_refused() -> None:
    weights = np.ones((1, 1, 3), dtype=np.float32)
    assert ArrayScores(np.zeros((1, 1, 2)), weights).weights is weights
    with pytest.raises(NeedError, match="no attention weights"):
        _ = ArrayScores(np.zeros((1, 1, 2))).weights


def test_adjusted_is_a_changed_copy() -> None:
    log_probs = np.zeros((2, 1, 3), dtype=np.float32)
    adjust = Adjust(np.array([2]), np.array([1, 1]), np.array([0, 0]), np.array([0, 0]), np.array([-1.0, -np.inf]))
    assert adjusted(log_probs, adjust).tolist() == [[[0.0, 0.0, -np.inf]], [[-np.inf, 0.0, -np.inf]]]
    assert not log_probs.any()
