import copy
import json
import math
import os
import pickle
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from heedful.errors import UsageError
from heedful.regression import smoothing
from heedful.regression.estimator import NadarayaWatsonRegressor, RegressionError, toy_data
from heedful.regression.smoothing import KERNELS, FloatArray
from tests.architecture.package import SOURCE
from tests.thorough import thorough

X = [[0.0], [1.0], [2.0], [3.0]]
Y = [0.0, 2.0, 1.0, 4.0]

# Runs `code` where importing `blocked` raises, and prints what it left in `result`.
PROGRAM = """
import json, sys
code, blocked = json.loads(sys.argv[1])

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ImportError(f"blocked: {name}")

sys.meta_path.insert(0, Blocker())
scope = {}
exec(code, scope)
print()
print(json.dumps(scope["result"]))
"""


def run(code: str, *blocked: str, **environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([code, blocked])],
        env=os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.rpartition("\n\n")[2])


@pytest.mark.parametrize(
    ("kernel", "w", "expected", "weights"),
    [
        ("gaussian", 1.0, 1.454681, [0.203577, 0.409954, 0.303701, 0.082768]),
        ("gaussian", 2.0, 1.692380, [0.044593, 0.733317, 0.220871, 0.001218]),
        ("boxcar", 1.0, 1.5, [0.0, 0.5, 0.5, 0.0]),
        ("triangular", 1.0, 1.8, [0.0, 0.8, 0.2, 0.0]),
        ("epanechnikov", 1.0, 1.727273, [0.0, 0.727273, 0.272727, 0.0]),
        ("constant", 1.0, 1.75, [0.25, 0.25, 0.25, 0.25]),
    ],
)
def test_small_numbers(kernel: str, w: float, expected: float, weights: list[float]):
    model = NadarayaWatsonRegressor(kernel, bandwidth=1.0 / w).fit(X, Y)
    assert model.predict([[1.2]]) == pytest.approx([expected], abs=6e-7)
    np.testing.assert_allclose(model.weights([[1.2]]), [weights], atol=6e-7)


def slow_prediction(kernel: str, bandwidth: float, query: FloatArray, keys: FloatArray, values: FloatArray) -> Any:
    """The estimator of 1964, one key after the other."""
    above, below = np.zeros(values.shape[1:]), 0.0
    for key, value in zip(keys, values, strict=True):
        u = math.sqrt(math.fsum((q - k) ** 2 for q, k in zip(query, key, strict=True))) / bandwidth
        weight = {
            "gaussian": math.exp(-u * u / 2.0),
            "laplacian": math.exp(-u),
            "boxcar": float(u < 1.0),
            "triangular": max(0.0, 1.0 - u),
            "epanechnikov": 0.75 * max(0.0, 1.0 - u * u),
            "constant": 1.0,
        }[kernel]
        above, below = above + weight * value, below + weight
    return above / below if below else values.mean(axis=0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("num_features", "num_outputs"), [(1, ()), (3, (1,)), (20, (2,))])
def test_predictions_are_the_loop_s(kernel: str, num_features: int, num_outputs: tuple[int, ...]):
    generator = np.random.default_rng(5)
    keys, queries = generator.normal(100.0, 1.0, (30, num_features)), generator.normal(100.0, 1.5, (9, num_features))
    values = generator.normal(size=(30, *num_outputs))
    bandwidth = 0.9 * math.sqrt(num_features)
    model = NadarayaWatsonRegressor(kernel, bandwidth).fit(keys, values)
    expected = [slow_prediction(kernel, bandwidth, query, keys, values) for query in queries]
    found = model.predict(queries)
    assert found.shape == (9, *num_outputs)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    weights = model.weights(queries)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-14)
    assert weights.min() >= 0.0
    np.testing.assert_allclose(weights @ values, found, rtol=1e-12, atol=1e-14)


def test_queries_that_no_point_reaches_get_the_mean():
    for kernel in ("boxcar", "triangular", "epanechnikov"):
        model = NadarayaWatsonRegressor(kernel).fit(X, Y)
        # At distance 1 exactly, these kernels are 0 already.
        assert model.predict([[4.0], [-50.0]]).tolist() == [1.75, 1.75]
        assert model.weights([[4.0]]).tolist() == [[0.25] * 4]
        assert model.predict([[3.5]]) == pytest.approx([4.0])


def test_a_gaussian_far_out_says_what_the_nearest_says():
    model = NadarayaWatsonRegressor(bandwidth=1e-3).fit(X, Y)
    assert model.predict([[1e9], [-1e9], [1.4]]).tolist() == [4.0, 0.0, 2.0]


@pytest.mark.parametrize("bandwidth", [0.7, "learned", "leave-one-out"])
def test_blocks_change_nothing(bandwidth: Any, monkeypatch: pytest.MonkeyPatch):
    data = toy_data(seed=4, num_points=23)
    whole = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(data.x, data.y)
    predicted, weights = whole.predict(data.grid), whole.weights(data.grid)
    monkeypatch.setattr(smoothing, "BLOCK_SIZE", 100)
    cut = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(data.x, data.y)
    np.testing.assert_allclose(cut.predict(data.grid), predicted, rtol=1e-6)
    np.testing.assert_allclose(cut.weights(data.grid), weights, rtol=1e-4, atol=1e-12)


def test_no_block_is_larger_than_it_may_be(monkeypatch: pytest.MonkeyPatch):
    sizes: list[int] = []

    def watch(queries: FloatArray, keys: FloatArray) -> FloatArray:
        sizes.append(len(queries) * len(keys))
        return smoothing.squared_distances(queries, keys)

    monkeypatch.setattr("heedful.regression.estimator.squared_distances", watch)
    data = toy_data(seed=4, num_points=2000)
    NadarayaWatsonRegressor().fit(data.x, data.y).predict(np.repeat(data.grid, 25, axis=0))
    assert sum(sizes) == 2000 * 1250
    assert max(sizes) <= smoothing.BLOCK_SIZE


def roughness(model: NadarayaWatsonRegressor) -> float:
    """How much the slope of the fitted curve changes, all told."""
    grid = np.linspace(0.5, 4.5, 401)[:, None]
    return float(np.abs(np.diff(model.predict(grid), n=2)).sum())


@pytest.mark.parametrize("edition", ["first", "newer"])
@pytest.mark.parametrize("seed", range(3))
def test_the_learned_w_is_larger_and_the_curve_less_smooth(seed: int, edition: Any):
    data = toy_data(seed, edition=edition)
    learned = NadarayaWatsonRegressor(bandwidth="learned").fit(data.x, data.y)
    first = learned.search_[0, 0]
    assert 0.0 < 1.0 / first < 1.0 < 1.0 / learned.bandwidth_  # the book draws the first w from [0, 1)
    fixed = NadarayaWatsonRegressor(bandwidth=first).fit(data.x, data.y)
    assert roughness(learned) > 2.0 * roughness(fixed)
    assert learned.weights(data.grid).max() > 2.0 * fixed.weights(data.grid).max()
    assert learned.score(data.grid, data.truth) > fixed.score(data.grid, data.truth)


def test_learning_does_not_end_in_copying_the_points():
    data = toy_data(seed=0)
    for bandwidth in ("learned", "leave-one-out"):
        model = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(data.x, data.y)
        # A point that sees itself is predicted best by a bandwidth of 0.
        assert model.bandwidth_ > 0.05
        assert model.score(data.x, data.y) < 0.99
        assert model.bandwidth_ == model.search_[np.argmin(model.search_[:, 1]), 0]


def test_the_error_searched_for_is_that_of_models_that_never_saw_the_point():
    data = toy_data(seed=6, num_points=15)
    searched = NadarayaWatsonRegressor("epanechnikov", "leave-one-out").fit(data.x, data.y)
    for bandwidth, error in searched.search_[::9]:
        others = NadarayaWatsonRegressor("epanechnikov", bandwidth)
        expected = 0.0
        for i in range(15):
            others.fit(np.delete(data.x, i, axis=0), np.delete(data.y, i))
            expected += (others.predict(data.x[i : i + 1])[0] - data.y[i]) ** 2
        assert error == pytest.approx(expected)


def test_more_data_come_nearer_to_the_truth():
    errors = []
    for num_points in (20, 100, 500):
        squares = []
        for seed in range(5):
            data = toy_data(seed, num_points)
            model = NadarayaWatsonRegressor(bandwidth="learned").fit(data.x, data.y)
            inner = slice(5, 45)  # at the ends, neighbours stand on one side only
            squares.append(np.mean((model.predict(data.grid) - data.truth)[inner] ** 2))
        errors.append(float(np.mean(squares)))
    assert all(fewer > 1.5 * more for fewer, more in pairwise(errors))


def test_toy_data_are_the_book_s():
    data = toy_data(seed=0)
    assert (data.x.shape, data.y.shape, data.grid.shape, data.truth.shape) == ((50, 1), (50,), (50, 1), (50,))
    assert data.x.min() >= 0.0
    assert data.x.max() < 5.0
    assert np.all(np.diff(data.x[:, 0]) > 0.0)
    np.testing.assert_allclose(data.grid[:, 0], np.arange(0, 5, 0.1))
    # x = 1 and x = 4.9 by hand.
    assert data.truth[10] == pytest.approx(2.0 * 0.8414709848 + 1.0)
    assert data.truth[49] == pytest.approx(2.0 * math.sin(4.9) + math.exp(0.8 * math.log(4.9)))
    assert toy_data(0, edition="newer").truth[49] == pytest.approx(2.0 * math.sin(4.9) + 4.9)
    np.testing.assert_array_equal(toy_data(0).y, data.y)
    assert not np.array_equal(toy_data(1).y, data.y)


@pytest.mark.parametrize(("edition", "power", "noise"), [("first", 0.8, 0.5), ("newer", 1.0, 1.0)])
def test_toy_noise_has_the_book_s_size(edition: Any, power: float, noise: float):
    data = toy_data(seed=0, num_points=20_000, edition=edition)
    rest = data.y - 2.0 * np.sin(data.x[:, 0]) - data.x[:, 0] ** power
    assert abs(rest.mean()) < 0.03 * noise
    assert rest.std() == pytest.approx(noise, rel=0.02)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "gausian"}, "kernel 'gausian': no such kernel; did you mean 'gaussian'"),
        ({"kernel": None}, "kernel None: no such kernel"),
        ({"bandwidth": 0.0}, "bandwidth 0.0: expected a number between"),
        ({"bandwidth": -1}, "bandwidth -1: expected"),
        ({"bandwidth": math.nan}, "bandwidth nan: expected"),
        ({"bandwidth": math.inf}, "bandwidth inf: expected"),
        ({"bandwidth": True}, "bandwidth True: expected a positive number"),
        ({"bandwidth": "loo"}, "bandwidth 'loo': expected a positive number, 'learned' or 'leave-one-out'"),
        ({"kernel": "boxcar", "bandwidth": "learned"}, r"needs a smooth kernel \(gaussian, laplacian\), not 'boxcar'"),
        ({"kernel": "constant", "bandwidth": "learned"}, "needs a smooth kernel"),
    ],
)
def test_bad_parameters_are_refused_when_fitting(parameters: dict[str, Any], message: str):
    model = NadarayaWatsonRegressor(**parameters)
    with pytest.raises(RegressionError, match=message):
        model.fit(X, Y)
    assert not hasattr(model, "bandwidth_")


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([0.0, 1.0], [0.0, 1.0], "Reshape your data"),
        ([[[0.0]]], [0.0], "Reshape your data"),
        (X, [0.0, 1.0], "X has 4 points and y has 2 targets"),
        (X, None, "y should be a 1d array"),
        (X, 3.0, "y should be a 1d array"),
        (X, [[[1.0]]] * 4, "y should be a 1d array"),
        ([], [], "Reshape your data"),
        (np.empty((0, 2)), [], r"0 sample\(s\)"),
        (np.empty((2, 0)), [1.0, 2.0], r"0 feature\(s\)"),
        ([[0.0], [math.nan]], [0.0, 1.0], "X contains NaN"),
        ([[0.0], [1.0]], [0.0, math.inf], "y contains NaN, infinity"),
        ([[0.0], [1e101]], [0.0, 1.0], "a number beyond 1e"),
        ([[1j], [0.0]], [0.0, 1.0], "X: Complex data not supported"),
        ([["a"], ["b"]], [0.0, 1.0], "X: expected an array of numbers: could not convert"),
        ([[1.0], [1.0, 2.0]], [0.0, 1.0], "X: expected an array of numbers"),
    ],
)
def test_bad_data_are_refused(x: Any, y: Any, message: str):
    with pytest.raises(RegressionError, match=message) as caught:
        NadarayaWatsonRegressor().fit(x, y)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, UsageError)
    assert isinstance(caught.value, ValueError)  # as scikit-learn's users expect


def test_a_bandwidth_is_not_found_from_one_point():
    assert NadarayaWatsonRegressor().fit([[3.0]], [7.0]).predict([[9.0]]).tolist() == [7.0]
    for bandwidth in ("learned", "leave-one-out"):
        with pytest.raises(RegressionError, match="n_samples = 1"):
            NadarayaWatsonRegressor(bandwidth=bandwidth).fit([[3.0]], [7.0])


def test_queries_are_checked():
    model = NadarayaWatsonRegressor().fit(X, Y)
    for method in (model.predict, model.weights):
        with pytest.raises(RegressionError, match="X has 2 features, but NadarayaWatsonRegressor is expecting 1"):
            method([[1.0, 2.0]])
        with pytest.raises(RegressionError, match="Reshape your data"):
            method([1.0])
        with pytest.raises(RegressionError, match="NaN"):
            method([[math.nan]])


def test_an_unfitted_model_says_so():
    with pytest.raises(ValueError, match="this NadarayaWatsonRegressor is not fitted yet: call fit first"):
        NadarayaWatsonRegressor().predict(X)


def test_the_largest_numbers_overflow_nowhere():
    keys = [[-9e99], [0.0], [9e99]]
    for kernel in KERNELS:
        for bandwidth in (2e-100, 9e99, "leave-one-out"):
            model = NadarayaWatsonRegressor(kernel, bandwidth).fit(keys, [0.0, 1.0, 9e99])
            assert np.all(np.isfinite(model.predict([[9e99], [1e-99], [-5.0]])))


def test_fitting_again_forgets():
    class Frame(list[Any]):
        columns = ("a", "b")

    model = NadarayaWatsonRegressor(bandwidth="learned")
    model.fit(Frame([[0.0, 1.0], [1.0, 0.5], [3.0, 0.2]]), [1.0, 2.0, 4.0])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.search_.shape[1] == 2
    model.set_params(bandwidth=0.5).fit(X, Y)
    assert not hasattr(model, "feature_names_in_")
    assert (model.n_features_in_, model.bandwidth_, model.search_.shape) == (1, 0.5, (0, 2))


def test_columns_are_known_by_name():
    class Frame(list[Any]):
        def __init__(self, columns: list[Any]) -> None:
            super().__init__([[0.0, 1.0], [1.0, 0.5], [3.0, 0.2]])
            self.columns = columns

    y = [1.0, 2.0, 4.0]
    model = NadarayaWatsonRegressor().fit(Frame(["a", "b"]), y)
    assert model.feature_names_in_.dtype == object
    assert model.score(Frame(["a", "b"]), y) == model.score(list(Frame(["a", "b"])), y)
    for columns, complaint in (
        (["b", "a"], "must be in the same order"),
        (["a", "c"], "unseen at fit time:\n- c\nFeature names seen at fit time, yet now missing:\n- b\n"),
    ):
        with pytest.raises(RegressionError, match=complaint):
            model.predict(Frame(columns))
    assert not hasattr(NadarayaWatsonRegressor().fit(Frame([0, 1]), y), "feature_names_in_")


def test_what_was_fitted_stays():
    x, y = np.array(X), np.array(Y)
    model = NadarayaWatsonRegressor().fit(x, y)
    before = model.predict([[1.2]]).tolist()
    x[:], y[:] = 9.0, 9.0
    model.set_params(kernel="constant", bandwidth=7.0)
    assert model.predict([[1.2]]).tolist() == before


def test_parameters_are_read_and_set_by_name():
    model = NadarayaWatsonRegressor("boxcar", bandwidth=2.0)
    assert model.get_params() == model.get_params(deep=False) == {"kernel": "boxcar", "bandwidth": 2.0}
    assert repr(model) == "NadarayaWatsonRegressor(kernel='boxcar', bandwidth=2.0)"
    assert model.set_params(bandwidth="learned") is model
    assert model.get_params() == {"kernel": "boxcar", "bandwidth": "learned"}
    with pytest.raises(RegressionError, match="has no parameter 'bandwith'; did you mean 'bandwidth'"):
        model.set_params(bandwith=1.0)


def test_copies_predict_the_same():
    model = NadarayaWatsonRegressor("laplacian", "learned").fit(X, Y)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(twin.predict(X), model.predict(X))


def test_the_score_is_the_mean_r2():
    truth = np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0], [6.0, 5.0]])
    model = NadarayaWatsonRegressor("constant").fit(X, truth)
    queries, targets = [[0.0], [1.0]], [[1.0, 5.0], [5.0, 5.0]]
    # Predicted 3 each: errors 4 + 4 of deviations 4 + 4; the second output is right wherever it is constant.
    assert model.score(queries, targets) == pytest.approx((0.0 + 1.0) / 2.0)
    assert model.score(queries, [[1.0, 4.0], [5.0, 4.0]]) == pytest.approx((0.0 + 0.0) / 2.0)
    with pytest.raises(RegressionError, match=r"y: expected shape \(2, 2\), got \(2,\)"):
        model.score(queries, [1.0, 2.0])


def test_numpy_is_enough():
    code = """
import sys
from heedful.regression.estimator import NadarayaWatsonRegressor, toy_data
data = toy_data(0)
model = NadarayaWatsonRegressor(bandwidth="learned").fit(data.x, data.y)
result = [model.score(data.grid, data.truth), repr(model)]
try:
    NadarayaWatsonRegressor().predict(data.x)
except Exception as error:
    result.append(type(error).__name__)
result.append([name for name in ("torch", "sklearn", "scipy", "pandas") if name in sys.modules])
"""
    score, shown, error, loaded = run(code, "torch", "numba", "sklearn", "scipy", "pandas", "joblib")
    assert score > 0.9
    assert shown == "NadarayaWatsonRegressor(kernel='gaussian', bandwidth='learned')"
    assert error == "RegressionError"
    assert loaded == []


needs_scikit_learn = pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed")


@needs_scikit_learn
def test_scikit_learn_works_with_it():
    code = """
import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from heedful.regression.estimator import NadarayaWatsonRegressor, toy_data
data = toy_data(0)
model = NadarayaWatsonRegressor(bandwidth="learned")
try:
    model.predict(data.x)
    is_not_fitted = False
except NotFittedError:
    is_not_fitted = True
y = np.stack([data.y, data.y ** 2], axis=1)
model.fit(data.x, y)
grid = {"nadarayawatsonregressor__bandwidth": [1e-3, "learned", 5.0]}
best = GridSearchCV(make_pipeline(StandardScaler(), clone(model)), grid, cv=5).fit(data.x, data.y).best_params_
difference = model.score(data.grid, model.predict(data.grid) + 1) - r2_score(
    model.predict(data.grid) + 1, model.predict(data.grid)
)
result = [is_not_fitted, is_regressor(model), list(best.values()), abs(difference)]
"""
    is_not_fitted, is_regressor, best, difference = run(code, "torch")
    assert (is_not_fitted, is_regressor) == (True, True)
    assert best == ["learned"]
    assert difference < 1e-12


@thorough
@needs_scikit_learn
def test_scikit_learn_s_own_checks_pass():
    # In one fresh process: loading scikit-learn takes longer than its checks.
    code = """
import warnings
from sklearn.utils.estimator_checks import check_estimator
from heedful.regression.estimator import NadarayaWatsonRegressor
# The class keeps the conventions without the base class, of which scikit-learn warns.
warnings.filterwarnings("ignore", message=".*does not inherit from `sklearn.base.BaseEstimator`")
result = {}
for parameters in (
    ("triangular", "leave-one-out"), ("laplacian", "learned")
):
    checks = check_estimator(NadarayaWatsonRegressor(*parameters), on_skip=None, on_fail=None)
    result[str(parameters)] = [[check["check_name"], check["status"], str(check["exception"])] for check in checks]
"""
    found = run(code, SCIPY_ARRAY_API="1")  # one check asks for this variable
    assert len(found) == 2
    for parameters, checks in found.items():
        assert len(checks) > 40
        rest = [check for check in checks if check[1] != "passed"]
        # One check is about data frames, and wants to see pandas.
        is_for_pandas = [reason.startswith("pandas is not installed") for _, _, reason in rest] == [True]
        assert rest == [] or (is_for_pandas and find_spec("pandas") is None), (parameters, rest)
