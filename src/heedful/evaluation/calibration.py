"""Calibration: the probability that an output is right, from numbers about it, and how far to trust it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import ShapeError
from heedful.evaluation.interface import Matrix

Flags = NDArray[np.bool_]
PENALTIES: Final = (1.0, 10.0, 100.0, 1000.0)
"""Strengths of the penalty on weights that `fit_calibrator` tries."""
NUM_FOLDS: Final = 5
NUM_BINS: Final = 10
"""Bins of equal width in the expected calibration error."""
_MOST_STEPS: Final = 50
_LARGEST_LOGIT: Final = 30.0


@final
@dataclass(frozen=True)
class Calibrator:
    """P(right) = sigmoid(bias + sum_i weights_i (x_i - mean_i) / scale_i) of the features x of an output."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    """Standard deviations; 1 where a feature is constant."""
    weights: tuple[float, ...]
    bias: float

    def probabilities(self, features: Matrix) -> Matrix:
        """Compute the probability that each output is right.

        Args:
            features: [item, feature].

        Returns:
            [item] in (0, 1).
        """
        standardised = _standardised(features, np.array(self.mean), np.array(self.scale))
        # Summed row by row, because a product of matrices rounds by the number of rows.
        return _sigmoid((standardised * np.array(self.weights)).sum(axis=-1) + self.bias)


def fit_calibrator(features: Matrix, right: Flags) -> tuple[Calibrator, Matrix]:
    """Fit a logistic regression whose penalty is chosen by cross-validation (Platt 1999, with several features).

    The penalty is that of the smallest log loss over `NUM_FOLDS` folds, of the items i modulo `NUM_FOLDS`.

    Args:
        features: [item, feature], finite.
        right: [item] whether each output is right.

    Returns:
        The calibrator of all items, and the [item] probabilities from calibrators of the other folds.

    Raises:
        ShapeError: there are fewer items than folds, or the shapes do not agree.

    Cost: a few dozen solutions of a [feature, feature] system.
    """
    if len(features) != len(right) or len(features) < NUM_FOLDS:
        raise ShapeError(f"calibration: {len(features)} rows of features for {len(right)} items, at least {NUM_FOLDS}")
    trials = [_cross_validated(features, right, penalty) for penalty in PENALTIES]
    best = int(np.argmin([_log_loss(each, right) for each in trials]))
    return _fit(features, right, PENALTIES[best]), trials[best]


def _cross_validated(features: Matrix, right: Flags, penalty: float) -> Matrix:
    """Probability of each item by the calibrator of the other folds."""
    probabilities = np.empty(len(right))
    folds = np.arange(len(right)) % NUM_FOLDS
    for fold in range(NUM_FOLDS):
        calibrator = _fit(features[folds != fold], right[folds != fold], penalty)
        probabilities[folds == fold] = calibrator.probabilities(features[folds == fold])
    return probabilities


def _fit(features: Matrix, right: Flags, penalty: float) -> Calibrator:
    """Newton's method on the log loss + penalty / 2 |weights|^2; the bias has no penalty.

    Targets are those of Platt, (n_right + 1) / (n_right + 2) and 1 / (n_wrong + 2), so that outputs that are all right,
    or all wrong, give no infinite bias.
    """
    mean, scale = features.mean(axis=0), features.std(axis=0)
    scale = np.where(scale > 1e-9 * (1.0 + np.abs(mean)), scale, 1.0)
    inputs = np.column_stack((_standardised(features, mean, scale), np.ones(len(features))))
    num_right = int(right.sum())
    targets = np.where(right, (num_right + 1) / (num_right + 2), 1 / (len(right) - num_right + 2))
    penalties = np.append(np.full(features.shape[1], penalty), 1e-9)
    weights = np.zeros(inputs.shape[1])
    loss = _penalised(inputs, weights, targets, penalties)
    for _ in range(_MOST_STEPS):
        probabilities = _sigmoid(inputs @ weights)
        gradient = inputs.T @ (probabilities - targets) + penalties * weights
        curvature = (inputs * (probabilities * (1 - probabilities))[:, None]).T @ inputs + np.diag(penalties)
        step = np.linalg.solve(curvature, gradient)
        share = 1.0
        # Shorter steps where a whole one overshoots.
        while (after := _penalised(inputs, weights - share * step, targets, penalties)) > loss and share > 1e-6:
            share /= 2
        weights = weights - share * step
        if loss - after <= 1e-10 * (1.0 + abs(loss)):
            break
        loss = after
    return Calibrator(tuple(mean.tolist()), tuple(scale.tolist()), tuple(weights[:-1].tolist()), float(weights[-1]))


def _standardised(features: Matrix, mean: Matrix, scale: Matrix) -> Matrix:
    return (features - mean) / scale


def _sigmoid(logits: Matrix) -> Matrix:
    return 1.0 / (1.0 + np.exp(-np.clip(logits, -_LARGEST_LOGIT, _LARGEST_LOGIT)))


def _penalised(inputs: Matrix, weights: Matrix, targets: Matrix, penalties: Matrix) -> float:
    logits = np.clip(inputs @ weights, -_LARGEST_LOGIT, _LARGEST_LOGIT)
    return float((np.logaddexp(0.0, logits) - targets * logits).sum() + 0.5 * (penalties * weights**2).sum())


def _log_loss(probabilities: Matrix, right: Flags) -> float:
    return float(-np.log(np.where(right, probabilities, 1.0 - probabilities)).mean())


def expected_calibration_error(probabilities: Matrix, right: Flags) -> float:
    """Compute the mean distance between probability and share of right outputs, over bins of equal width.

    ECE = sum_b n_b / n |mean probability in b - share right in b|; Naeini et al. 2015, Guo et al. 2017,
    arXiv:1706.04599, eq. 3, with `NUM_BINS` bins.

    Args:
        probabilities: [item] in [0, 1].
        right: [item].

    Returns:
        A number in [0, 1]; 0 is best.

    Example:
        >>> expected_calibration_error(np.array([0.95, 0.95, 0.05]), np.array([True, False, False])).__round__(6)
        0.316667
    """
    bins = np.minimum((probabilities * NUM_BINS).astype(np.int64), NUM_BINS - 1)
    sums = np.bincount(bins, probabilities - right, minlength=NUM_BINS)
    return float(np.abs(sums).sum() / len(right))


def perfect_calibration_errors(probabilities: Matrix, num_samples: int, seed: int) -> Matrix:
    """Draw expected calibration errors of perfectly calibrated probabilities, which are not 0 on few items.

    Args:
        probabilities: [item] in [0, 1].
        num_samples: number of draws, 1 or more.

    Returns:
        [sample] errors where each item is right with exactly its probability.

    Example:
        >>> perfect_calibration_errors(np.array([0.0, 1.0]), 3, 1).tolist()
        [0.0, 0.0, 0.0]
    """
    generator = np.random.default_rng(seed)
    draws = (generator.random(len(probabilities)) < probabilities for _ in range(num_samples))
    return np.array([expected_calibration_error(probabilities, drawn) for drawn in draws])


def area_under_curve(scores: Matrix, right: Flags) -> float:
    """Compute the area under the ROC curve: the probability that a right output has a higher score than a wrong one.

    Args:
        scores: [item], any numbers; equal ones count half.
        right: [item].

    Returns:
        A number in [0, 1]; 0.5 is chance, and the result where all outputs are right, or all wrong.

    Example:
        >>> area_under_curve(np.array([3.0, 1.0, 2.0]), np.array([True, False, True]))
        1.0
    """
    num_right = int(right.sum())
    num_pairs = num_right * (len(right) - num_right)
    if not num_pairs:
        return 0.5
    values, places = np.unique(scores, return_inverse=True)
    counts = np.bincount(places, minlength=len(values))
    ranks = np.cumsum(counts) - (counts - 1) / 2  # mean rank of equal scores, from 1
    return float((ranks[places][right].sum() - num_right * (num_right + 1) / 2) / num_pairs)


def risk_by_coverage(probabilities: Matrix, right: Flags) -> Matrix:
    """Compute the share of wrong outputs among the most confident ones, for each number of outputs that are answered.

    El-Yaniv and Wiener 2010, JMLR 11, section 2.

    Args:
        probabilities: [item].
        right: [item].

    Returns:
        [item] risk of the 1, 2, 3 ... most confident outputs; equal ones in the order of the items.

    Example:
        >>> risk_by_coverage(np.array([0.2, 0.9]), np.array([False, True])).tolist()
        [0.0, 0.5]
    """
    order = np.argsort(-probabilities, kind="stable")
    return np.cumsum(~right[order]) / np.arange(1, len(right) + 1)


def area_gain(scores: Matrix, baseline: Matrix, right: Flags, num_resamples: int, seed: int) -> tuple[float, float]:
    """Compare two scores by the areas under their curves, by paired bootstrap resampling.

    Args:
        scores: [item].
        baseline: [item].
        right: [item].
        num_resamples: number of resamples, 1 or more.

    Returns:
        The gain in area, and its two-sided p-value in (0, 1]; resamples without any difference count half.
    """
    gain = area_under_curve(scores, right) - area_under_curve(baseline, right)
    signs = sum(
        np.sign(area_under_curve(scores[rows], right[rows]) - area_under_curve(baseline[rows], right[rows]))
        for rows in _resamples(len(right), num_resamples, seed)
    )
    share = ((num_resamples - float(signs)) / 2 + 1) / (num_resamples + 2)
    return gain, 2 * min(share, 1 - share)


def _resamples(num_items: int, number: int, seed: int) -> Iterator[NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    for _ in range(number):
        yield generator.integers(0, num_items, num_items)
