"""Calibration, against scikit-learn and loops."""

import math
from typing import Any

import numpy as np
import pytest

from heedful.errors import ShapeError
from heedful.evaluation import calibration
from heedful.evaluation.calibration import (
    NUM_FOLDS,
    PENALTIES,
    area_gain,
    area_under_curve,
    expected_calibration_error,
    fit_calibrator,
    perfect_calibration_errors,
    risk_by_coverage,
)


def made(number: int = 400, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, flags, and the probabilities that the flags were drawn with."""
    generator = np.random.default_rng(seed)
    features = generator.standard_normal((number, 3)) * (1.0, 50.0, 0.01) + (0.0, 7.0, 3.0)
    wanted = 1.0 / (1.0 + np.exp(-(2.0 * features[:, 0] + 0.03 * (features[:, 1] - 7.0) - 0.5)))
    return features, generator.random(number) < wanted, wanted


def reference(features: np.ndarray, right: np.ndarray, penalty: float) -> tuple[np.ndarray, float]:
    """Weights and bias by scikit-learn, with a row for each side of a soft target."""
    from sklearn.linear_model import LogisticRegression

    inputs = (features - features.mean(axis=0)) / features.std(axis=0)
    num_right = int(right.sum())
    targets = np.where(right, (num_right + 1) / (num_right + 2), 1 / (len(right) - num_right + 2))
    model = LogisticRegression(C=1 / penalty, tol=1e-12, max_iter=10_000)
    sides = np.repeat((1, 0), len(right))
    model.fit(np.concatenate((inputs, inputs)), sides, sample_weight=np.concatenate((targets, 1 - targets)))
    return model.coef_[0], float(model.intercept_[0])


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_fit_is_scikit_learns(penalty: float, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(calibration, "PENALTIES", (penalty,))
    features, right, _ = made()
    calibrator, _ = fit_calibrator(features, right)
    weights, bias = reference(features, right, penalty)
    np.testing.assert_allclose(calibrator.weights, weights, atol=1e-5)
    assert calibrator.bias == pytest.approx(bias, abs=1e-5)


def test_the_comparison_would_see_another_penalty(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(calibration, "PENALTIES", (10.0,))
    features, right, _ = made()
    calibrator, _ = fit_calibrator(features, right)
    assert np.abs(np.array(calibrator.weights) - reference(features, right, 1.0)[0]).max() > 1e-3


def test_known_probabilities_are_found_again():
    features, right, wanted = made(20_000)
    calibrator, apart = fit_calibrator(features, right)
    assert np.abs(calibrator.probabilities(features) - wanted).mean() < 0.01
    assert expected_calibration_error(apart, right) < 0.015


def test_no_item_is_in_the_fit_that_judges_it():
    features, right, _ = made(50)
    _, apart = fit_calibrator(features, right)
    for fold in range(NUM_FOLDS):
        others = right.copy()
        others[fold::NUM_FOLDS] = ~others[fold::NUM_FOLDS]
        # The penalty may change with the flags, so that it is held fixed.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(calibration, "PENALTIES", (10.0,))
            one, other = fit_calibrator(features, right)[1], fit_calibrator(features, others)[1]
        np.testing.assert_array_equal(one[fold::NUM_FOLDS], other[fold::NUM_FOLDS])
        assert not np.array_equal(one, other)
    assert len(apart) == 50


@pytest.mark.parametrize("flag", [True, False])
def test_outputs_that_are_all_alike_give_a_finite_bias(flag: bool):
    features, _, _ = made(200)
    calibrator, apart = fit_calibrator(features, np.full(200, flag))
    assert np.isfinite(calibrator.bias)
    assert 0.9 < (apart if flag else 1 - apart).min() < 1.0


def test_a_constant_feature_counts_nothing():
    features, right, _ = made()
    features[:, 2] = 5.0
    calibrator, _ = fit_calibrator(features, right)
    assert calibrator.weights[2] == 0.0
    features[:, 2] = 9e9
    assert np.isfinite(calibrator.probabilities(features)).all()


@pytest.mark.parametrize(("num_items", "num_flags"), [(4, 4), (10, 9)])
def test_too_few_items_are_refused(num_items: int, num_flags: int):
    with pytest.raises(ShapeError, match="at least 5"):
        fit_calibrator(np.zeros((num_items, 2)), np.zeros(num_flags, dtype=np.bool_))


def test_perfect_calibration_has_the_error_of_chance():
    # One bin of n items with p = 0.5: |mean - 0.5| has the mean sqrt(1 / (2 pi n)) for large n.
    errors = perfect_calibration_errors(np.full(400, 0.5), 4000, 1)
    assert errors.mean() == pytest.approx(math.sqrt(1 / (2 * math.pi * 400)), rel=0.05)
    surer = perfect_calibration_errors(np.full(400, 0.99), 4000, 1)
    assert surer.mean() < errors.mean() / 3
    assert (perfect_calibration_errors(np.full(400, 0.5), 5, 2) == errors[:5]).sum() < 5


def test_the_calibration_error_is_that_of_a_loop_over_bins():
    generator = np.random.default_rng(3)
    probabilities, right = np.append(generator.random(200), (0.0, 1.0)), generator.random(202) < 0.4
    wanted = 0.0
    for low in range(10):
        inside = [i for i, p in enumerate(probabilities) if low <= 10 * p and (10 * p < low + 1 or low == 9)]
        if inside:
            gap = np.mean([probabilities[i] for i in inside]) - np.mean([right[i] for i in inside])
            wanted += len(inside) / 202 * abs(float(gap))
    assert expected_calibration_error(probabilities, right) == pytest.approx(wanted, abs=1e-12)


def test_the_area_is_scikit_learns_with_ties():
    from sklearn.metrics import roc_auc_score

    generator = np.random.default_rng(4)
    scores, right = generator.integers(0, 6, 100).astype(float), generator.random(100) < 0.3
    assert area_under_curve(scores, right) == pytest.approx(float(roc_auc_score(right, scores)), abs=1e-12)
    assert area_under_curve(scores, np.ones(100, dtype=np.bool_)) == 0.5


def test_the_risk_is_that_of_counting():
    probabilities, right = np.array([0.3, 0.9, 0.5, 0.9]), np.array([True, False, True, True])
    assert risk_by_coverage(probabilities, right).tolist() == [1.0, 0.5, 1 / 3, 0.25]


def test_a_real_gain_is_told_from_chance():
    generator = np.random.default_rng(5)
    right = generator.random(400) < 0.5
    noise: Any = generator.standard_normal
    good, same, other = right + noise(400), right + 2 * noise(400), right + 2 * noise(400)
    gain, p_value = area_gain(good, same, right, 500, 1)
    assert gain > 0.05
    assert p_value < 0.01
    assert area_gain(other, same, right, 500, 1)[1] > 0.05
    assert area_gain(same, good, right, 500, 1)[1] < 0.01
    assert area_gain(same, same, right, 500, 1) == (0.0, 1.0)
    assert area_gain(2.0 * good, good, right, 501, 1) == (0.0, 1.0)
