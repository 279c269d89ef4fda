import math
from fractions import Fraction
from itertools import combinations
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.regression import smoothing
from heedful.regression.smoothing import (
    KERNELS,
    FloatArray,
    LeaveOneOut,
    blocks,
    kernel_weights,
    learn_bandwidth,
    search_bandwidth,
    squared_distances,
)
from tests.thorough import sampled

SMOOTH = ["gaussian", "laplacian"]


def slow_kernel(kernel: str, u: float) -> float:
    """The kernels as statistics writes them."""
    return {
        "gaussian": math.exp(-u * u / 2.0) / math.sqrt(2.0 * math.pi),
        "laplacian": math.exp(-u) / 2.0,
        "boxcar": 0.5 if u < 1.0 else 0.0,
        "triangular": max(0.0, 1.0 - u),
        "epanechnikov": 0.75 * max(0.0, 1.0 - u * u),
        "constant": 1.0,
    }[kernel]


def slow_estimate(kernel: str, bandwidth: float, x: FloatArray, keys: FloatArray, values: FloatArray) -> FloatArray:
    """sum_i K(x - x_i) y_i / sum_i K(x - x_i), or the mean where that is 0 / 0."""
    kernels = [slow_kernel(kernel, math.dist(x, key) / bandwidth) for key in keys]
    total = math.fsum(kernels)
    return values.mean(axis=0) if total == 0.0 else np.array(kernels) @ values / total


def slow_errors(kernel: str, bandwidth: float, keys: FloatArray, values: FloatArray) -> float:
    """Every point predicted by an estimator that was never shown it."""
    error = 0.0
    for i in range(len(keys)):
        others, targets = np.delete(keys, i, axis=0), np.delete(values, i, axis=0)
        error += float(np.sum((slow_estimate(kernel, bandwidth, keys[i], others, targets) - values[i]) ** 2))
    return error


def wave(num_points: int = 40, num_features: int = 1, num_outputs: int = 1) -> tuple[FloatArray, FloatArray]:
    generator = np.random.default_rng(7)
    keys = 5.0 * generator.random((num_points, num_features))
    values = np.sin(2.0 * keys[:, :1] + np.arange(num_outputs)) + 0.3 * generator.standard_normal((num_points, 1))
    return keys, values


@given(st.integers(0, 50), st.integers(1, 50), st.integers(1, 100))
def test_blocks_cover_all_queries_in_few_pairs(num_queries: int, num_keys: int, size: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smoothing, "BLOCK_SIZE", size)
        found = list(blocks(num_queries, num_keys))
    assert [row for rows in found for row in range(rows.start, rows.stop)] == list(range(num_queries))
    assert all(rows.stop - rows.start == 1 or (rows.stop - rows.start) * num_keys <= size for rows in found)


def test_few_features_cancel_nothing():
    # Far from the origin, close together: |q|^2 + |k|^2 - 2 q.k has no digit left.
    queries = np.array([[1e9, -1e9], [1e9 + 1.0, 3.0]])
    keys = queries + np.array([[1e-3, 2e-3], [0.0, 0.0]])
    found = squared_distances(queries, keys)
    for i, j in np.ndindex(2, 2):
        pairs = zip(queries[i], keys[j], strict=True)
        exact = sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in pairs)
        assert found[i, j] == pytest.approx(float(exact), rel=1e-15, abs=0.0)
    assert found[1, 1] == 0.0


def test_many_features_are_centred():
    generator = np.random.default_rng(0)
    queries, keys = 1e6 + generator.random((4, 40)), 1e6 + generator.random((5, 40))
    exact = [[math.dist(query, key) ** 2 for key in keys] for query in queries]
    np.testing.assert_allclose(squared_distances(queries, keys), exact, rtol=1e-12)
    many = generator.normal(size=(300, 40))
    squared = squared_distances(many, many)
    assert 0.0 <= squared.min() < 1e-12 < squared[0, 1]


@pytest.mark.parametrize("kernel", KERNELS)
def test_weights_are_normalized_kernels(kernel: str):
    distances = np.array([[0.0, 0.5, 0.9, 1.0, 1.7], [0.3, 0.3, 2.0, 0.1, 0.0]])
    for bandwidth in (1.0, 1.5):
        weights, _ = kernel_weights(distances**2, KERNELS[kernel], bandwidth)
        kernels = np.array([[slow_kernel(kernel, u / bandwidth) for u in row] for row in distances])
        np.testing.assert_allclose(weights, kernels / kernels.sum(axis=1, keepdims=True), rtol=1e-14, atol=1e-16)


def test_a_query_nothing_reaches_weighs_all_alike():
    squared = np.array([[4.0, 9.0, 4.0, 1.0], [0.0, 9.0, 9.0, 9.0]])
    weights, _ = kernel_weights(squared, KERNELS["triangular"], 1.0)
    assert weights.tolist() == [[0.25] * 4, [1.0, 0.0, 0.0, 0.0]]
    weights, _ = kernel_weights(squared, KERNELS["triangular"], 1.0, own=np.array([1, 0]))
    third = pytest.approx(1.0 / 3.0)
    assert weights.tolist() == [[third, 0.0, third, third], [0.0, third, third, third]]


def test_a_gaussian_far_away_weighs_the_nearest():
    # exp(-1e12) is 0 for each of them.
    weights, scores = kernel_weights(np.array([[2e12, 2e12 + 1.0, 2e12 + 1e6]]), KERNELS["gaussian"], 1.0)
    np.testing.assert_allclose(weights, [[1.0 / (1.0 + math.exp(-0.5)), 1.0 / (1.0 + math.exp(0.5)), 0.0]], rtol=1e-12)
    assert scores.max() == 0.0


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("num_features", [1, 20])
def test_leave_one_out_leaves_out(kernel: str, num_features: int):
    keys, values = wave(num_points=12, num_features=num_features, num_outputs=2)
    bandwidths = np.array([0.2, 1.0, 6.0]) * np.sqrt(num_features)
    found = LeaveOneOut(keys, values, KERNELS[kernel]).errors(bandwidths)
    expected = [slow_errors(kernel, bandwidth, keys, values) for bandwidth in bandwidths]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("kernel", SMOOTH)
def test_errors_and_slopes_do_not_depend_on_blocks(kernel: str, monkeypatch: pytest.MonkeyPatch):
    keys, values = wave(num_points=11, num_features=2)

    def findings() -> list[float]:
        loss = LeaveOneOut(keys, values, KERNELS[kernel])
        few = loss.errors(np.array([0.4, 2.0])).tolist()
        return [loss.smallest, loss.largest, loss.spread, *few, *loss.error_and_slope(0.4)]

    whole = findings()
    monkeypatch.setattr(smoothing, "BLOCK_SIZE", 30)
    assert findings() == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("kernel", SMOOTH)
@pytest.mark.parametrize("bandwidth", [0.05, 0.4, 3.0])
def test_slope_is_the_derivative(kernel: str, bandwidth: float):
    loss = LeaveOneOut(*wave(num_outputs=3), KERNELS[kernel])
    error, slope = loss.error_and_slope(bandwidth)
    ahead, behind = loss.errors(bandwidth * np.exp([1e-5, -1e-5]))
    assert error == pytest.approx(loss.errors(np.array([bandwidth]))[0], rel=1e-13)
    assert slope == pytest.approx((ahead - behind) / 2e-5, rel=1e-6, abs=1e-8 * error)


def test_a_constant_added_to_the_targets_changes_no_error():
    keys, values = wave()
    errors = LeaveOneOut(keys, values, KERNELS["gaussian"]).error_and_slope(0.3)
    shifted = LeaveOneOut(keys, values + 1e7, KERNELS["gaussian"]).error_and_slope(0.3)
    np.testing.assert_allclose(shifted, errors, rtol=1e-6)


@pytest.mark.parametrize("kernel", [*SMOOTH, "triangular", "epanechnikov"])
def test_the_search_misses_no_better_bandwidth(kernel: str):
    loss = LeaveOneOut(*wave(), KERNELS[kernel])
    tried = search_bandwidth(loss)
    scan = np.geomspace(loss.smallest, loss.largest, 1000)
    assert tried[:, 1].min() <= loss.errors(scan).min() * (1.0 + 1e-12)
    np.testing.assert_allclose(tried[:, 1], loss.errors(tried[:, 0]), rtol=1e-12)


def test_the_search_finds_the_deeper_of_two_valleys():
    # A fast wave on a slow one, sampled tightly enough to be seen: descent from the spread stops in the slow one's.
    keys = np.linspace(0.0, 40.0, 120)[:, None]
    values = np.sin(keys / 6.0) + 1.5 * np.sin(4.0 * keys)
    loss = LeaveOneOut(keys, values, KERNELS["gaussian"])
    searched, learned = search_bandwidth(loss), learn_bandwidth(loss)
    assert searched[:, 1].min() < 0.6 * learned[-1, 1]
    assert abs(loss.error_and_slope(learned[-1, 0])[1]) < 1e-4 * learned[-1, 1]


def test_of_equals_the_search_takes_the_smoothest():
    keys, values = wave()
    loss = LeaveOneOut(keys, np.ones_like(values), KERNELS["gaussian"])
    tried = search_bandwidth(loss)
    assert tried[np.argmin(tried[:, 1]), 0] == pytest.approx(loss.largest)


@pytest.mark.parametrize("kernel", SMOOTH)
def test_descent_falls_to_where_it_is_flat(kernel: str):
    loss = LeaveOneOut(*wave(), KERNELS[kernel])
    taken = learn_bandwidth(loss)
    assert taken[0, 0] == pytest.approx(loss.spread)
    assert np.all(np.diff(taken[:, 1]) < 0.0)
    assert np.all(np.abs(np.diff(np.log(taken[:, 0]))) <= smoothing.LARGEST_STEP + 1e-12)
    assert abs(loss.error_and_slope(taken[-1, 0])[1]) < 1e-4 * taken[-1, 1]
    assert 3 < len(taken) < 30
    assert taken[-1, 0] == pytest.approx(search_bandwidth(loss)[-1, 0], rel=1e-4)


@pytest.mark.parametrize("start", [-2.9, -0.3, 0.01, 2.0])
def test_descent_never_climbs(start: float):
    class Edge:
        """|log(bandwidth)| with a round tip: the slope says nothing of how far it is."""

        smallest, largest, spread = math.exp(-3.0), math.exp(3.0), math.exp(start)

        def error_and_slope(self, bandwidth: float) -> tuple[float, float]:
            error = math.hypot(1e-2, math.log(bandwidth))
            return error, math.log(bandwidth) / error

    taken = learn_bandwidth(cast(LeaveOneOut, Edge()))
    assert np.all(np.diff(taken[:, 1]) < 0.0)
    assert taken[-1, 0] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("num_features", [1, 20])
def test_the_bounds_are_those_of_the_distances(num_features: int):
    keys, values = wave(num_points=10, num_features=num_features)
    loss = LeaveOneOut(keys, values, KERNELS["gaussian"])
    distances = [math.dist(first, second) for first, second in combinations(keys, 2)]
    assert loss.smallest == pytest.approx(0.1 * min(distances))
    assert 10.0 * max(distances) <= loss.largest * (1.0 + 1e-12)
    assert loss.largest < 30.0 * max(distances)
    # sum of variances = half the mean squared distance of all pairs, each point with itself included
    squares = [distance**2 for distance in distances]
    assert loss.spread == pytest.approx(math.sqrt(math.fsum(squares) / 100.0))


@pytest.mark.parametrize("find", [learn_bandwidth, search_bandwidth])
def test_units_change_nothing_but_the_unit(find: type):
    keys, values = wave()
    found = find(LeaveOneOut(keys, values, KERNELS["gaussian"]))
    scaled = find(LeaveOneOut(keys * 1e6, values * 1e-3, KERNELS["gaussian"]))
    assert len(scaled) == len(found)
    np.testing.assert_allclose(scaled, found * [1e6, 1e-6], rtol=1e-5)


@pytest.mark.parametrize("find", [learn_bandwidth, search_bandwidth])
def test_noise_alone_ends_at_a_bound(find: type):
    generator = np.random.default_rng(3)
    # Alternating targets: every neighbour misleads, and the mean of all the others is best.
    keys = np.arange(20.0)[:, None]
    values = np.resize([1.0, -1.0], (20, 1)) + 1e-3 * generator.standard_normal((20, 1))
    loss = LeaveOneOut(keys, values, KERNELS["gaussian"])
    tried = find(loss)
    assert tried[np.argmin(tried[:, 1]), 0] > 0.3 * loss.largest


@pytest.mark.parametrize("num_features", [1, 20])
def test_points_that_are_one_have_no_scale(num_features: int):
    values = np.array([[0.0], [1.0], [5.0]])
    for find in (learn_bandwidth, search_bandwidth):
        tried = find(LeaveOneOut(np.full((3, num_features), 0.1), values, KERNELS["gaussian"]))
        assert tried[:, 0].tolist() == [1.0] * len(tried)
        assert tried[-1, 1] == pytest.approx(3.0**2 + 1.5**2 + 4.5**2)


@sampled(4)
@pytest.mark.parametrize("kernel", [name for name, profile in KERNELS.items() if name != "constant"])
@pytest.mark.parametrize("num_points", [8, 20, 63])
def test_no_fine_grid_finds_a_smaller_error(kernel: str, num_points: int):
    for seed in range(3):
        generator = np.random.default_rng(seed)
        points = generator.normal(size=(num_points, 1))
        targets = np.sin(3.0 * points) + 0.3 * generator.normal(size=(num_points, 1))
        loss = LeaveOneOut(points, targets, KERNELS[kernel])
        grid = np.exp(np.linspace(math.log(loss.smallest), math.log(loss.largest), 1500))
        # A hundredth, for dips of the smoother kernels between two grid points of their own.
        assert search_bandwidth(loss)[:, 1].min() <= 1.01 * loss.errors(grid).min()


def test_intervals_are_those_between_distances():
    points = np.array([[0.0], [1.0], [4.0]])
    loss = LeaveOneOut(points, points, KERNELS["boxcar"])
    assert loss.intervals().tolist() == pytest.approx([math.sqrt(3.0), math.sqrt(12.0), math.sqrt(4.0 * loss.largest)])
    assert len(LeaveOneOut(points, points, KERNELS["gaussian"]).intervals()) == 0


def test_intervals_of_many_points_are_few():
    points = np.random.default_rng(0).normal(size=(3000, 1))
    assert 10 <= len(LeaveOneOut(points, points, KERNELS["triangular"]).intervals()) <= 400_000_000 // 3000**2
