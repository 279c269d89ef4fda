"""Kernel smoothing in NumPy: kernels of the distance as attention scores, and search for the best bandwidth.

A kernel K enters as the attention score log K(distance / bandwidth), so that all of them share one stable softmax.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

BLOCK_SIZE: Final = 1 << 20
"""Query-key pairs computed at once: a few arrays of 8 MiB, whatever the number of queries."""
DIRECT_FEATURES: Final = 16
"""Largest number of features for which squared differences are summed directly, without cancellation."""
SMALLEST_BANDWIDTH: Final = 1e-100
LARGEST_BANDWIDTH: Final = 1e100
"""Largest bandwidth whose square, divided by another square, stays within float64."""
GRID_RATIO: Final = 1.25
"""Ratio of neighbouring bandwidths in the coarse search."""
MAX_EDGES: Final = 2000
"""Most intervals between distances that are searched for a kernel of finite reach."""
EDGE_PAIRS: Final = 400_000_000
"""Most pairs of points that the search of these intervals computes, in all."""
TOLERANCE: Final = 1e-6
"""Tolerance of the logarithm of the bandwidth."""
LARGEST_STEP: Final = 1.0
FIRST_STEP: Final = 0.5
SUFFICIENT_FALL: Final = 1e-4
MAX_STEPS: Final = 200
"""Gradient descent on log(bandwidth): largest step, first step, required share of the predicted decrease, and limit of
the number of steps (about ten are usual)."""


@final
@dataclass(frozen=True)
class Profile:
    """Shape of a kernel K(u), u = distance / bandwidth, as an attention score.

    Attributes:
        score: from u squared to log K(u) up to a constant; -inf where K(u) = 0.
        degree: p where log K(c u) = c^p log K(u), which makes the derivative by log(bandwidth) -p log K;
            None where the error has no useful gradient.
    """

    score: Callable[[FloatArray], FloatArray]
    degree: float | None


KERNELS: Final[Mapping[str, Profile]] = {
    "gaussian": Profile(lambda squared: -0.5 * squared, degree=2.0),
    "laplacian": Profile(lambda squared: -np.sqrt(squared), degree=1.0),
    "boxcar": Profile(lambda squared: np.where(squared < 1.0, 0.0, -np.inf), degree=None),
    "triangular": Profile(lambda squared: np.log1p(-np.sqrt(np.minimum(squared, 1.0))), degree=None),
    "epanechnikov": Profile(lambda squared: np.log1p(-np.minimum(squared, 1.0)), degree=None),
    "constant": Profile(np.zeros_like, degree=None),
}
"""K(u) = exp(-u^2 / 2), exp(-u), 1 where u < 1, max(0, 1 - u), max(0, 1 - u^2), 1; constant factors cancel."""


def blocks(num_queries: int, num_keys: int) -> Iterator[slice]:
    """Divide the queries into blocks of at most `BLOCK_SIZE` pairs, at least one query each.

    Args:
        num_queries: at least 0.
        num_keys: at least 1.

    Yields:
        Slices of the queries, in order, that cover them all.
    """
    length = max(1, BLOCK_SIZE // num_keys)
    for start in range(0, num_queries, length):
        yield slice(start, min(start + length, num_queries))


def squared_distances(queries: FloatArray, keys: FloatArray) -> FloatArray:
    """Return |query - key|^2 of all pairs.

    Up to `DIRECT_FEATURES` features, differences are squared and summed, and only these operations round. With more,
    the formula is |q|^2 + |k|^2 - 2 q.k after subtracting the mean of the keys; its error is about 1e-15 of the squared
    distances from that mean, which matters only for bandwidths of a millionth of the points' spread.

    Args:
        queries: [query, feature] in -1e100..1e100, so that no square overflows.
        keys: [key, feature] in the same range, at least one.

    Returns:
        [query, key] at least 0, in the square of the features' unit.
    """
    if keys.shape[1] > DIRECT_FEATURES:
        centre = keys.mean(axis=0)
        queries, keys = queries - centre, keys - centre
        squared = np.sum(queries**2, axis=1)[:, None] + np.sum(keys**2, axis=1) - 2.0 * (queries @ keys.T)
        return np.maximum(squared, 0.0)
    squared = np.zeros((len(queries), len(keys)))
    for query_column, key_column in zip(queries.T, keys.T, strict=True):
        squared += np.subtract.outer(query_column, key_column) ** 2
    return squared


def kernel_weights(
    squared: FloatArray, profile: Profile, bandwidth: float, own: NDArray[np.intp] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the attention weights of each query: the softmax of the kernel's scores.

    A query whose scores are all -inf gives all keys, except its own, equal weights.

    Args:
        squared: [query, key] squared distances.
        bandwidth: from `SMALLEST_BANDWIDTH` to `LARGEST_BANDWIDTH`, in the unit of distance.
        own: [query] each query's own key, which gets weight 0; None leaves no key out.

    Returns:
        [query, key] weights, each row of sum 1, and [query, key] the scores less the largest of the row.
    """
    # log(0) = -inf is intended; a distance that overflows in units of the bandwidth counts as infinite.
    with np.errstate(divide="ignore", over="ignore"):
        scores = profile.score(squared / bandwidth**2)
    if own is not None:
        scores[np.arange(len(own)), own] = -np.inf
    largest = scores.max(axis=1, keepdims=True)
    if np.any(unreached := np.isneginf(largest[:, 0])):
        scores[unreached] = 0.0
        largest[unreached] = 0.0
        if own is not None:
            scores[unreached, own[unreached]] = -np.inf
    scores -= largest
    weights = np.exp(scores)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights, scores


@final
class LeaveOneOut:
    """Leave-one-out error: the sum of squared errors of predicting each point from all others, by bandwidth.

    E(h) = sum_i |f_-i(x[i]; h) - y[i]|^2, where f_-i is the weighted average without point i. If f included
    point i, h -> 0 would bring every error to 0.

    Args:
        keys: [key, feature] at least two points.
        values: [key, output] their targets.
        profile: the kernel.

    Attributes:
        smallest, largest: range of useful bandwidths: a tenth of the smallest distance above 0 between two points, and
            ten times the diagonal of the box around all points; 1 and 1 where all points are equal.
        spread: sqrt(sum of the features' variances), limited to this range.
    """

    def __init__(self, keys: FloatArray, values: FloatArray, profile: Profile) -> None:
        self._keys = keys
        self._values = values - values.mean(axis=0)  # weights sum to 1: shifting all targets changes no error
        self._profile = profile
        self._only_block: FloatArray | None = None
        nearest = math.inf
        for _, _, squared in self._blocks():
            nearest = min(nearest, float(np.min(squared, where=squared > 0.0, initial=np.inf)))
        if math.isinf(nearest):
            self.smallest = self.largest = self.spread = 1.0
            return
        self.smallest = max(0.1 * math.sqrt(nearest), SMALLEST_BANDWIDTH)
        self.largest = min(10.0 * float(np.linalg.norm(np.ptp(keys, axis=0))), LARGEST_BANDWIDTH)
        self.spread = min(max(math.sqrt(np.sum(np.var(keys, axis=0))), self.smallest), self.largest)

    def intervals(self) -> FloatArray:
        """Return bandwidths between the distances of points, where the error of a kernel of finite reach may dip.

        The error of such a kernel has an edge at every distance between two points, where a point comes within reach.

        Returns:
            [interval] the geometric means of neighbouring distances, for at most `MAX_EDGES` evenly chosen intervals
            and fewer with many points, to stay within `EDGE_PAIRS`. Empty for a kernel of infinite reach.
        """
        with np.errstate(divide="ignore"):
            beyond = self._profile.score(np.array([4.0]))[0]
        if math.isfinite(beyond):
            return np.empty(0)
        count = min(MAX_EDGES, EDGE_PAIRS // len(self._keys) ** 2)
        # With many points, the distances from a few of them are enough to choose from.
        rows = np.linspace(0, len(self._keys) - 1, min(len(self._keys), count)).astype(int)
        distances = np.unique(np.sqrt(squared_distances(self._keys[np.unique(rows)], self._keys)))
        distances = np.append(distances[distances > 0.0], self.largest)
        middles = np.sqrt(distances[:-1] * distances[1:])
        return middles[np.unique(np.linspace(0, len(middles) - 1, min(count, len(middles))).astype(int))]

    def errors(self, bandwidths: FloatArray) -> FloatArray:
        """Return the errors of several bandwidths; distances are computed once.

        Args:
            bandwidths: [bandwidth] above 0.

        Returns:
            [bandwidth] the errors.
        """
        errors = np.zeros(len(bandwidths))
        for rows, own, squared in self._blocks():
            for index, bandwidth in enumerate(bandwidths):
                weights, _ = kernel_weights(squared, self._profile, bandwidth, own)
                errors[index] += np.sum((weights @ self._values - self._values[rows]) ** 2)
        return errors

    def error_and_slope(self, bandwidth: float) -> tuple[float, float]:
        """Return the error and its derivative by log(bandwidth).

        With s the scores: df_i = sum_j weights[i, j] ds[i, j] (y[j] - f_i), ds = -degree s, dE = 2 sum_i error_i df_i.

        Args:
            bandwidth: above 0.

        Returns:
            E and dE / d log(bandwidth), the latter 0 for a kernel without degree.
        """
        error = slope = 0.0
        degree = self._profile.degree or 0.0
        for rows, own, squared in self._blocks():
            weights, scores = kernel_weights(squared, self._profile, bandwidth, own)
            predicted = weights @ self._values
            residual = predicted - self._values[rows]
            # The scores are relative to the row's largest: the derivative is the same, with less cancellation.
            turning = weights * (-degree * np.where(weights > 0.0, scores, 0.0))
            change = turning @ self._values - turning.sum(axis=1, keepdims=True) * predicted
            error += float(np.sum(residual**2))
            slope += float(2.0 * np.sum(residual * change))
        return error, slope

    def _blocks(self) -> Iterator[tuple[slice, NDArray[np.intp], FloatArray]]:
        """Blocks of points, their own keys, and their squared distances from all points; cached if only one."""
        for rows in blocks(len(self._keys), len(self._keys)):
            own = np.arange(rows.start, rows.stop)
            squared = self._only_block
            if squared is None:
                squared = squared_distances(self._keys[rows], self._keys)
                squared[np.arange(len(own)), own] = 0.0  # with many features, it may be merely small
                if len(own) == len(self._keys):
                    self._only_block = squared
            yield rows, own, squared


def search_bandwidth(loss: LeaveOneOut) -> FloatArray:
    """Find the bandwidth of the smallest leave-one-out error.

    The search tries a grid, each bandwidth at most `GRID_RATIO` times the next, and for kernels of finite reach one
    bandwidth in each interval between distances (`LeaveOneOut.intervals`). Golden-section search between the neighbours
    of the best follows, until log(bandwidth) is known to `TOLERANCE`. Among equal errors on the grid, the largest
    bandwidth wins. For boxcar, whose error is a step function, the result is exact up to 63 points. With more
    points, or with triangular and Epanechnikov, a minimum narrower than the grid can be missed.

    Returns:
        [step, 2] bandwidths, in the order tried, and their errors.
    """
    low, high = math.log(loss.smallest), math.log(loss.largest)
    grid = np.linspace(high, low, 1 + math.ceil((high - low) / math.log(GRID_RATIO)))
    grid = np.unique(np.concatenate([grid, np.log(loss.intervals())]))[::-1]
    tried = [*zip(grid.tolist(), loss.errors(np.exp(grid)).tolist(), strict=True)]

    def error_at(log_bandwidth: float) -> float:
        error = float(loss.errors(np.exp([log_bandwidth]))[0])
        tried.append((log_bandwidth, error))
        return error

    best = min(range(len(tried)), key=lambda index: tried[index][1])
    left, right = tried[min(best + 1, len(grid) - 1)][0], tried[max(best - 1, 0)][0]
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    lower, upper = right - golden * (right - left), left + golden * (right - left)
    error_lower, error_upper = error_at(lower), error_at(upper)
    while right - left > TOLERANCE:
        if error_lower < error_upper:
            right, upper, error_upper = upper, lower, error_lower
            lower = right - golden * (right - left)
            error_lower = error_at(lower)
        else:
            left, lower, error_lower = lower, upper, error_upper
            upper = left + golden * (right - left)
            error_upper = error_at(upper)
    return _exponentiated(tried)


def learn_bandwidth(loss: LeaveOneOut) -> FloatArray:
    """Minimise the leave-one-out error by gradient descent on log(bandwidth), from the spread of the points.

    The first step is `FIRST_STEP`. After that the rate is |last step / change of the slope| (Barzilai and Borwein 1988,
    doi:10.1093/imanum/8.1.141), a step is at most `LARGEST_STEP`, ends at the bounds, and is halved until the error
    falls by `SUFFICIENT_FALL` of the decrease that the slope predicts (Armijo), so the error never rises and the slope
    goes to 0.

    Args:
        loss: the error, of a kernel with a degree.

    Returns:
        [step, 2] bandwidths, from the first to the learned one, and their decreasing errors.
    """
    low, high = math.log(loss.smallest), math.log(loss.largest)
    log_bandwidth = math.log(loss.spread)
    error, slope = loss.error_and_slope(math.exp(log_bandwidth))
    steps = [(log_bandwidth, error)]
    step = -math.copysign(FIRST_STEP, slope) if slope else 0.0
    while abs(step) >= TOLERANCE and len(steps) <= MAX_STEPS:
        new_place = min(max(log_bandwidth + step, low), high)
        new_error, new_slope = loss.error_and_slope(math.exp(new_place))
        if new_place == log_bandwidth:
            break
        if new_error > error + SUFFICIENT_FALL * slope * (new_place - log_bandwidth):
            step /= 2.0
            continue
        bend = abs((new_slope - slope) / (new_place - log_bandwidth))
        log_bandwidth, error, slope = new_place, new_error, new_slope
        steps.append((log_bandwidth, error))
        step = -slope / bend if bend else -math.copysign(LARGEST_STEP, slope)
        step = min(max(step, -LARGEST_STEP), LARGEST_STEP)
    return _exponentiated(steps)


def _exponentiated(steps: list[tuple[float, float]]) -> FloatArray:
    pairs = np.array(steps)
    pairs[:, 0] = np.exp(pairs[:, 0])
    return pairs
