import numpy as np
import pytest

from heedful.errors import ConfigError
from heedful.search.config import SearchConfig
from heedful.search.penalties import coverage_penalty, length_penalty, length_score, repetition_charges


@pytest.mark.parametrize(
    ("length", "alpha", "expected"),
    [
        (1, 0.2, 1.0),
        (1, 0.6, 1.0),
        (1, 1.0, 1.0),
        (7, 0.2, 1.148698),
        (7, 0.6, 1.515717),
        (7, 1.0, 2.0),
        (20, 0.2, 1.330325),
        (20, 0.6, 2.354362),
        (20, 1.0, 4.166667),
        (40, 0.2, 1.496278),
        (40, 0.6, 3.349938),
        (40, 1.0, 7.5),
    ],
)
def test_gnmt_length_penalty_equals_the_table(length: int, alpha: float, expected: float) -> None:
    assert length_penalty(length, "gnmt", alpha) == pytest.approx(expected, abs=5e-7)


def test_power_length_penalty() -> None:
    np.testing.assert_allclose(length_penalty([1, 2, 9], "power", 0.5), [1.0, 2**0.5, 3.0], rtol=1e-15)
    np.testing.assert_array_equal(length_penalty([1, 2, 9], "power", 1.0), [1.0, 2.0, 9.0])


@pytest.mark.parametrize("kind", ["power", "gnmt"])
def test_alpha_0_is_no_penalty_and_length_0_counts_as_1(kind: str) -> None:
    np.testing.assert_array_equal(length_penalty([0, 1, 50], kind, 0.0), [1.0, 1.0, 1.0])  # type: ignore[arg-type]
    np.testing.assert_array_equal(length_penalty([0, 1], kind, 1.5), [1.0, 1.0])  # type: ignore[arg-type]


def test_an_unknown_penalty_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'gnmt'"):
        length_penalty(3, "gmnt", 1.0)  # type: ignore[arg-type]


def test_coverage_penalty_sums_over_positions_the_log_of_what_they_got_up_to_1() -> None:
    weights = np.array([[0.7, 0.2, 0.1], [0.6, 0.1, 0.3]], dtype=np.float32)
    expected = 0.2 * (np.log(1.0) + np.log(0.3) + np.log(0.4))
    assert coverage_penalty(weights, 0.2) == pytest.approx(expected, rel=1e-6)


def test_coverage_penalty_is_0_when_all_is_covered_or_it_is_off() -> None:
    assert coverage_penalty(np.eye(4), 1.0) == pytest.approx(0.0, abs=0)
    assert coverage_penalty(np.zeros((2, 3)), 0.0) == pytest.approx(0.0, abs=0)


def test_a_position_never_attended_costs_much_but_not_everything() -> None:
    penalty = coverage_penalty(np.array([[1.0, 0.0]]), 1.0)
    assert -30 < penalty < -20
    assert np.isfinite(coverage_penalty(np.zeros((0, 3)), 1.0))


@pytest.mark.parametrize("penalty", ["power", "gnmt"])
@pytest.mark.parametrize("reward", [0.0, 0.3])
def test_scores_divide_and_reward(penalty: str, reward: float) -> None:
    config = SearchConfig(length_penalty=penalty, alpha=0.7, length_reward=reward)  # type: ignore[arg-type]
    lengths = np.arange(1, 30)
    scores = length_score(-6.0, lengths, config)
    expected = [-6.0 / length_penalty(length, penalty, 0.7) + reward * length for length in lengths]  # type: ignore[arg-type]
    np.testing.assert_allclose(scores, expected, rtol=1e-15)
    assert (np.diff(scores) > 0).all()  # what the certain rule of stopping rests on
    assert length_score(-np.inf, 3, config) == -np.inf


def test_repetition_costs_where_the_token_is_held() -> None:
    log_probs = np.array([[[-1.0, -2.0, -np.inf], [-3.0, -4.0, -5.0]]])
    ids = np.array([[[4, 5, 6], [4, 5, 6]]])
    held = np.array([[[4, 6, 4], [7, 7, 5]]])
    charges = repetition_charges(log_probs, ids, held, 1.25)
    assert charges.tolist() == [[[0.25, 0.0, np.inf], [0.0, 1.0, 0.0]]]
    assert repetition_charges(log_probs, ids, held[:, :, :0], 1.25).tolist() == [[[0.0] * 3] * 2]
