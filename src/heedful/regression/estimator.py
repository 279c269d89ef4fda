"""Nadaraya-Watson kernel regression, the attention of 1964, in scikit-learn's conventions; needs only NumPy.

scikit-learn is not needed: the regressor implements its conventions itself. Only two of its objects are used, estimator
tags and NotFittedError, and only where the caller has loaded scikit-learn.
"""

import sys
from collections.abc import Iterator
from numbers import Real
from typing import Any, Literal, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.errors import UsageError, did_you_mean
from heedful.regression.smoothing import (
    KERNELS,
    LARGEST_BANDWIDTH,
    SMALLEST_BANDWIDTH,
    FloatArray,
    LeaveOneOut,
    Profile,
    blocks,
    kernel_weights,
    learn_bandwidth,
    search_bandwidth,
    squared_distances,
)


class RegressionError(UsageError, ValueError):
    """Invalid parameter or array of the regressor."""


@final
class NadarayaWatsonRegressor:
    """Regressor that predicts averages of the training targets, weighted by the distance of their points.

    f(x) = sum_i weights[i] y[i],  weights = softmax_i(log K(|x - x[i]| / bandwidth)): attention with x as query, the
    training points as keys and their targets as values. Nadaraya 1964, doi:10.1137/1109020; Watson 1964, Sankhya A 26;
    with a learned bandwidth as in Zhang et al., Dive into Deep Learning, d2l.ai, where w = 1 / bandwidth.

    Distances are Euclidean, so features should have one scale. With a kernel of finite reach (boxcar, triangular,
    epanechnikov), a query without any point within the bandwidth gets the mean of all targets. With a Gaussian, a query
    far from all points gets the target of the nearest one, because the softmax subtracts the maximum first.

    Args:
        kernel: "gaussian", "laplacian", "boxcar", "triangular", "epanechnikov", or "constant" (average pooling).
        bandwidth: unit of distance, above 1e-100 and below 1e100, in the unit of X; or a method that minimises the
            leave-one-out error, the sum of squared errors of predicting every training point from all others:
            "learned", gradient descent to the nearest minimum (`learn_bandwidth`; gaussian and laplacian only), or
            "leave-one-out", a search over all sizes (`search_bandwidth`).

    Attributes:
        keys_: [key, feature] training points, float64.
        values_: [key] or [key, output] their targets, float64.
        kernel_: kernel of the last `fit`.
        bandwidth_: bandwidth of the last `fit`.
        search_: [step, 2] the bandwidths tried and the error of each; no rows where the bandwidth was a number.
        n_features_in_: number of features.
        feature_names_in_: [feature] the columns' names; present only if X had names (a data frame).

    Cost: time queries * keys * features; finding the bandwidth costs about as much as predicting the training points 20
    times (learned) or 100 times (leave-one-out; up to 2,000 times for kernels of finite reach and few points). Memory
    is linear, because pairs are computed in blocks.

    Example:
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 2.0, 1.0, 4.0])
        >>> model.predict([[1.2]]).round(4).tolist()
        [1.6924]
        >>> model.weights([[1.2]]).round(3).tolist()
        [[0.045, 0.733, 0.221, 0.001]]
    """

    def __init__(self, kernel: str = "gaussian", bandwidth: float | Literal["learned", "leave-one-out"] = 1.0) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Store the training points and targets, and find the bandwidth if the parameter names a method.

        Args:
            X: [key, feature] points.
            y: [key] or [key, output] targets.

        Raises:
            RegressionError: a parameter is unknown or does not fit the kernel; X or y are not finite numbers of that
                shape; a bandwidth has to be found from a single point.
            TypeError: X or y hold objects that float() refuses.
        """
        keys, values = _to_points(X), _to_targets(y)
        if len(keys) != len(values):
            raise RegressionError(f"X has {len(keys)} points and y has {len(values)} targets: give one for each")
        self.search_ = self._find_bandwidth(keys, values)
        bandwidth = self.search_[np.argmin(self.search_[:, 1]), 0] if len(self.search_) else self.bandwidth
        self.kernel_, self.bandwidth_ = self.kernel, float(bandwidth)
        self.keys_, self.values_ = keys, values
        self.n_features_in_ = keys.shape[1]
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if (names := _column_names(X)) is not None:
            self.feature_names_in_ = names
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return the weighted average of the training targets for each query.

        Args:
            X: [query, feature] points.

        Returns:
            [query] or [query, output] predictions, between the smallest and the largest target.

        Raises:
            RegressionError: X is not a table of finite numbers with the features of `fit`, or `fit` was never called;
                the latter is scikit-learn's NotFittedError where scikit-learn is loaded.
        """
        queries = self._to_queries(X)
        predicted = np.empty((len(queries), *self.values_.shape[1:]))
        for rows, weights in self._weights_in_blocks(queries):
            predicted[rows] = weights @ self.values_
        return predicted

    def weights(self, X: ArrayLike) -> FloatArray:
        """Return the attention weights of the training points for each query.

        Args:
            X: [query, feature] points.

        Returns:
            [query, key] weights of at least 0; each row sums to 1.

        Raises:
            RegressionError: as in `predict`.
        """
        queries = self._to_queries(X)
        result = np.empty((len(queries), len(self.keys_)))
        for rows, weights in self._weights_in_blocks(queries):
            result[rows] = weights
        return result

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the coefficient of determination R^2 of the predictions.

        R^2 = 1 - sum of squared errors / sum of squared deviations from the mean; where the targets are constant, 1 if
        there is no error and 0 otherwise.

        Args:
            X: [query, feature] points.
            y: [query] or [query, output] true targets.

        Returns:
            At most 1, the mean over outputs.

        Raises:
            RegressionError: as in `predict`, or y does not have the shape of the predictions.
        """
        predicted, truth = self.predict(X), _to_targets(y)
        if predicted.shape != truth.shape:
            raise RegressionError(f"y: expected shape {predicted.shape}, got {truth.shape}")
        errors = np.atleast_1d(np.sum((truth - predicted) ** 2, axis=0))
        deviations = np.atleast_1d(np.sum((truth - truth.mean(axis=0)) ** 2, axis=0))
        unexplained = (errors > 0.0).astype(np.float64)
        np.divide(errors, deviations, out=unexplained, where=deviations > 0.0)
        return float(np.mean(1.0 - unexplained))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Args:
            deep: accepted for scikit-learn, without effect: no parameter has parameters of its own.
        """
        return {"kernel": self.kernel, "bandwidth": self.bandwidth}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name; they are checked by `fit`.

        Raises:
            RegressionError: there is no such parameter.
        """
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise RegressionError(f"{type(self).__name__} has no parameter {name!r}{did_you_mean(name, known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}(kernel={self.kernel!r}, bandwidth={self.bandwidth!r})"

    def __sklearn_tags__(self) -> Any:
        """Describe the regressor to scikit-learn, the only caller."""
        from sklearn.utils import RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True, multi_output=True),
            regressor_tags=RegressorTags(poor_score=self.kernel == "constant"),
        )

    def _find_bandwidth(self, keys: FloatArray, values: FloatArray) -> FloatArray:
        """Bandwidths and their errors, as in `search_`.

        Raises:
            RegressionError: as in `fit`.
        """
        profile = _find_profile(self.kernel)
        bandwidth: object = self.bandwidth
        if not isinstance(bandwidth, bool) and isinstance(bandwidth, Real):
            if SMALLEST_BANDWIDTH < float(bandwidth) < LARGEST_BANDWIDTH:
                return np.empty((0, 2))
            raise RegressionError(
                f"bandwidth {bandwidth!r}: expected a number between {SMALLEST_BANDWIDTH:g} and {LARGEST_BANDWIDTH:g}"
            )
        if not isinstance(bandwidth, str) or bandwidth not in {"learned", "leave-one-out"}:
            raise RegressionError(f"bandwidth {bandwidth!r}: expected a positive number, 'learned' or 'leave-one-out'")
        if bandwidth == "learned" and profile.degree is None:
            smooth = [name for name, other in KERNELS.items() if other.degree is not None]
            raise RegressionError(
                f"bandwidth 'learned' needs a smooth kernel ({', '.join(smooth)}), not {self.kernel!r}: "
                "use 'leave-one-out'"
            )
        if len(keys) == 1:
            raise RegressionError(f"bandwidth {bandwidth!r} needs two points or more, got n_samples = 1")
        loss = LeaveOneOut(keys, values.reshape(len(values), -1), profile)
        return learn_bandwidth(loss) if bandwidth == "learned" else search_bandwidth(loss)

    def _to_queries(self, X: ArrayLike) -> FloatArray:
        """Query points, checked against the training points.

        Raises:
            RegressionError: as in `predict`.
        """
        if not hasattr(self, "keys_"):
            # A caller that catches scikit-learn's class has loaded scikit-learn.
            loaded = sys.modules.get("sklearn.exceptions")
            kind: type[ValueError] = RegressionError if loaded is None else loaded.NotFittedError
            raise kind(f"this {type(self).__name__} is not fitted yet: call fit first")
        expected, names = getattr(self, "feature_names_in_", None), _column_names(X)
        if expected is not None and names is not None and not np.array_equal(names, expected):
            raise RegressionError(_explain_names(names.tolist(), expected.tolist()))
        queries = _to_points(X)
        if queries.shape[1] != self.n_features_in_:
            raise RegressionError(
                f"X has {queries.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input"
            )
        return queries

    def _weights_in_blocks(self, queries: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Blocks of queries and their weights [query, key]."""
        profile = KERNELS[self.kernel_]
        for rows in blocks(len(queries), len(self.keys_)):
            squared = squared_distances(queries[rows], self.keys_)
            yield rows, kernel_weights(squared, profile, self.bandwidth_)[0]


def _find_profile(kernel: object) -> Profile:
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise RegressionError(f"kernel {kernel!r}: no such kernel{did_you_mean(str(kernel), KERNELS)}")
    return KERNELS[kernel]


def _to_numbers(values: ArrayLike, name: str) -> FloatArray:
    """Copy of real numbers in float64.

    Raises:
        RegressionError: the values are not real numbers.
    """
    if hasattr(values, "toarray"):
        raise RegressionError(f"{name}: sparse matrices are not supported: pass {name}.toarray()")
    try:
        array = np.asarray(values)
        numbers = array if np.iscomplexobj(array) else array.astype(np.float64)
    except ValueError as error:
        raise RegressionError(f"{name}: expected an array of numbers: {error}") from error
    if np.iscomplexobj(numbers):
        raise RegressionError(f"{name}: Complex data not supported: give real numbers")
    return numbers


def _refuse_extremes(array: FloatArray, name: str) -> None:
    """Refuse values whose distances or averages would overflow.

    Raises:
        RegressionError: there is such a value.
    """
    if not np.all(np.abs(array) < LARGEST_BANDWIDTH):
        raise RegressionError(
            f"{name} contains NaN, infinity or a number beyond {LARGEST_BANDWIDTH:g}: leave out or fill in such rows"
        )


def _to_points(array: ArrayLike) -> FloatArray:
    """Finite points [point, feature], at least one of each.

    Raises:
        RegressionError: the array is not of this form.
    """
    points = _to_numbers(array, "X")
    if points.ndim != 2:
        raise RegressionError(
            f"X: expected shape [point, feature], got {points.shape}. Reshape your data: X.reshape(-1, 1) for a single "
            "feature, X.reshape(1, -1) for a single point"
        )
    for size, what in zip(points.shape, ("sample(s)", "feature(s)"), strict=True):
        if size == 0:
            raise RegressionError(f"X: 0 {what} (shape={points.shape}) while a minimum of 1 is required.")
    _refuse_extremes(points, "X")
    return points


def _to_targets(array: ArrayLike) -> FloatArray:
    """Finite targets [point] or [point, output], at least one of each.

    Raises:
        RegressionError: the array is not of this form.
    """
    targets = _to_numbers(array, "y")
    if targets.ndim not in {1, 2} or 0 in targets.shape:
        raise RegressionError(f"y should be a 1d array [point] or 2d [point, output], got shape {targets.shape}")
    _refuse_extremes(targets, "y")
    return targets


def _column_names(array: ArrayLike) -> NDArray[np.object_] | None:
    """Column names of a data frame; None for other arrays, or where a name is not text."""
    names: list[object] = list(getattr(array, "columns", ()))
    return np.array(names, dtype=object) if names and all(isinstance(name, str) for name in names) else None


def _explain_names(present: list[str], expected: list[str]) -> str:
    """Difference of the columns from those of fit, in scikit-learn's words, which its checks expect."""
    lines = ["The feature names should match those that were passed during fit."]
    for complaint, names in (
        ("Feature names unseen at fit time:", sorted(set(present) - set(expected))),
        ("Feature names seen at fit time, yet now missing:", sorted(set(expected) - set(present))),
    ):
        lines += [complaint, *(f"- {name}" for name in names)] if names else []
    if len(lines) == 1:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join([*lines, ""])


class ToyData(NamedTuple):
    """Noisy curve for demonstrations: points to fit, and the curve itself on a grid.

    Example:
        >>> data = toy_data(seed=0)
        >>> data.x.shape, data.grid.shape
        ((50, 1), (50, 1))
    """

    x: FloatArray
    """[point, 1] in [0, 5), ascending."""
    y: FloatArray
    """[point] noisy targets."""
    grid: FloatArray
    """[50, 1] queries 0, 0.1, ... 4.9."""
    truth: FloatArray
    """[50] the curve at the queries, without noise."""


def toy_data(seed: int, num_points: int = 50, edition: Literal["first", "newer"] = "first") -> ToyData:
    """Draw the toy data of Dive into Deep Learning, d2l.ai.

    first: y = 2 sin(x) + x^0.8 + N(0, 0.5^2), 50 points in the book.  newer: y = 2 sin(x) + x + N(0, 1), 40 points.

    Args:
        seed: seed of points and noise, at least 0.
        num_points: number of points to fit, at least 1.
        edition: edition of the book, "first" or "newer".

    Raises:
        RegressionError: there is no such edition.

    Example:
        >>> toy_data(0).truth[:2].round(4).tolist()
        [0.0, 0.3582]
    """
    editions = {"first": (0.8, 0.5), "newer": (1.0, 1.0)}
    if edition not in editions:
        raise RegressionError(f"edition {edition!r}: no such toy data{did_you_mean(edition, editions)}")
    power, noise = editions[edition]
    generator = np.random.default_rng(seed)
    x = np.sort(5.0 * generator.random(num_points))
    grid = np.arange(50) / 10.0
    y = 2.0 * np.sin(x) + x**power + noise * generator.standard_normal(num_points)
    return ToyData(x[:, None], y, grid[:, None], 2.0 * np.sin(grid) + grid**power)
