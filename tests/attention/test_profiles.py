import math

import pytest
import torch

from heedful.attention.dispatch import attend
from heedful.attention.profiles import PROFILES, unit_of
from heedful.attention.scores import SCORES, Constant, Gaussian
from heedful.regression.estimator import NadarayaWatsonRegressor
from tests.attention.reference import by_row, reference_attention, softmax

# The training data and the query of the paper notes, and what the kernels give for it.
POINTS, TARGETS, QUERY = [0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 1.0, 4.0], 1.2
PREDICTED = {
    "gaussian": 1.454681,
    "boxcar": 1.5,
    "triangular": 1.8,
    "epanechnikov": 1.727273,
    "constant": 1.75,
}
# K(u) as one writes it.
KERNELS = {
    "gaussian": lambda u: math.exp(-u * u / 2),
    "laplacian": lambda u: math.exp(-u),
    "boxcar": lambda u: float(u < 1),
    "triangular": lambda u: max(0.0, 1 - u),
    "epanechnikov": lambda u: max(0.0, 1 - u * u),
    "constant": lambda u: 1.0,
}


def column(numbers: list[float]) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)[:, None]


@pytest.mark.parametrize("profile", PREDICTED)
def test_regression_is_that_of_the_paper_notes(profile: str):
    attended = attend(column([QUERY]), column(POINTS), column(TARGETS), score=SCORES[profile](1, 1).double())
    assert float(attended.context.detach()) == pytest.approx(PREDICTED[profile], abs=5e-7)


def test_weights_of_the_gaussian_are_those_of_the_paper_notes():
    # A learned w multiplies the distance: bandwidth 1 / w.
    for w, weights in (
        (1.0, [0.203577, 0.409954, 0.303701, 0.082768]),
        (2.0, [0.044593, 0.733317, 0.220871, 0.001218]),
    ):
        score = Gaussian(1, 1, bandwidth=1 / w).double()
        attended = attend(column([QUERY]), column(POINTS), torch.eye(4).double(), score=score)
        assert attended.context[0].tolist() == pytest.approx(weights, abs=1e-6)
    context = attend(column([QUERY]), column(POINTS), column(TARGETS), score=score).context
    assert float(context.detach()) == pytest.approx(1.692380, abs=1e-6)


@pytest.mark.parametrize("profile", PROFILES)
def test_weights_are_kernels_divided_by_their_sum(profile: str):
    score = SCORES[profile](1, 1, bandwidth=1.7).double()  # type: ignore[call-arg]
    bandwidth = float(score.bandwidth.detach())  # type: ignore[operator]
    weights = attend(column([QUERY, -0.4]), column(POINTS), torch.eye(4).double(), score=score).context
    for row, query in enumerate((QUERY, -0.4)):
        kernels = [KERNELS[profile](abs(query - point) / bandwidth) for point in POINTS]
        assert weights[row].tolist() == pytest.approx([kernel / sum(kernels) for kernel in kernels], abs=1e-12)


@pytest.mark.parametrize("profile", PROFILES)
def test_scores_beyond_the_reach_are_finite_and_inside_they_are_the_logarithm(profile: str):
    squared = torch.tensor([0.0, 0.25, 0.81, 1.0, 4.0, 1e6], dtype=torch.float64, requires_grad=True)
    scores = PROFILES[profile].log_kernel(squared)
    assert bool(torch.isfinite(scores).all())
    for place, value in enumerate(squared.tolist()):
        if math.sqrt(value) < PROFILES[profile].reach and value < 1e5:
            assert scores[place].tolist() == pytest.approx(math.log(KERNELS[profile](math.sqrt(value))))
    if scores.requires_grad:
        (slopes,) = torch.autograd.grad(scores.sum(), squared)
        assert bool(torch.isfinite(slopes).all())


def test_at_no_distance_the_slope_is_taken_as_zero():
    for profile in ("laplacian", "triangular"):
        squared = torch.zeros(1, requires_grad=True)
        assert torch.autograd.grad(PROFILES[profile].log_kernel(squared).sum(), squared)[0].tolist() == [0.0]


def test_narrow_kernels_leave_rows_without_a_key():
    for profile in ("boxcar", "triangular", "epanechnikov"):
        score = SCORES[profile](1, 1, bandwidth=0.1).double()  # type: ignore[call-arg]
        context = attend(column([0.5, 1.05]), column(POINTS), column(TARGETS), score=score).context
        assert context[:, 0].tolist() == [0.0, 2.0]


def test_every_profile_has_a_score_and_every_score_a_profile():
    kinds = {kind.profile for kind in SCORES.values() if hasattr(kind, "profile")}  # type: ignore[attr-defined]
    assert kinds == set(PROFILES)
    assert Constant.profile == "constant"


@pytest.mark.parametrize("profile", PROFILES)
def test_points_far_from_the_origin_keep_their_digits(profile: str):
    score = SCORES[profile](1, 1, bandwidth=2.0)  # type: ignore[call-arg]
    near, far = ([point + shift for point in [QUERY, *POINTS]] for shift in (0.0, 4096.0))
    contexts = [
        attend(column(p[:1]).float(), column(p[1:]).float(), column(TARGETS).float(), score=score).context
        for p in (near, far)
    ]
    torch.testing.assert_close(contexts[0], contexts[1], rtol=0, atol=1e-3)
    pairs = score.lower(column(near[:1]), score.prepare(column(near[1:])))
    wanted = reference_attention(pairs, column(TARGETS), by_row(softmax))[0]
    torch.testing.assert_close(contexts[0].double(), wanted, rtol=0, atol=1e-6)


COMPACT = [name for name, profile in PROFILES.items() if profile.reach < math.inf]
EDGE_KERNELS = ["plain", "distance_cpu"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kernel", EDGE_KERNELS)
@pytest.mark.parametrize("profile", COMPACT)
def test_points_at_the_bandwidth_are_beyond_it(profile: str, kernel: str, dtype: torch.dtype):
    for bandwidth in range(1, 60):
        score = SCORES[profile](2, 2, bandwidth=bandwidth).to(dtype)  # type: ignore[call-arg]
        # At the bandwidth along an axis and, for multiples of 5, across both; just within; at no distance.
        points = [[bandwidth, 0.0], [0.6 * bandwidth, 0.8 * bandwidth], [bandwidth * (1 - 2**-20), 0.0], [0.0, 0.0]]
        keys = torch.tensor(points if bandwidth % 5 == 0 else [points[0], *points[2:]], dtype=dtype)
        value = torch.eye(len(keys), dtype=dtype)
        weights = attend(torch.zeros(1, 2, dtype=dtype), keys, value, score=score, kernel=kernel).context[0]
        assert [weight > 0 for weight in weights.tolist()] == [False] * (len(keys) - 2) + [True, True], bandwidth
        regressor = NadarayaWatsonRegressor(kernel=profile, bandwidth=bandwidth).fit(keys.numpy(), value.numpy())
        assert regressor.weights([[0.0, 0.0]])[0] == pytest.approx(weights.tolist(), abs=1e-6)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_bandwidth_is_the_number_given_in_every_dtype(profile: str):
    for bandwidth in (3.0, 0.3, 1e-3, 17.7):
        score = SCORES[profile](2, 2, bandwidth=bandwidth)  # type: ignore[call-arg]
        assert score.bandwidth.item() == torch.tensor(bandwidth).item()  # type: ignore[operator]
        assert score.double().bandwidth.item() == bandwidth  # type: ignore[operator]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_unit_of_a_bandwidth_is_a_power_of_two_that_rounds_nothing(dtype: torch.dtype):
    for exponent in range(-14, 15):
        for factor in (1.0, 1.5, 1.9921875):
            bandwidth = torch.tensor(factor * 2.0**exponent, dtype=dtype)
            unit = unit_of(bandwidth)
            assert math.frexp(unit.item())[0] == 0.5
            assert (bandwidth * unit).item() in {factor, factor / 2}
    tiny, huge = torch.tensor(torch.finfo(dtype).tiny), torch.tensor(torch.finfo(dtype).max)
    for bandwidth in (tiny, huge):
        assert math.isfinite(unit_of(bandwidth).item())
        assert unit_of(bandwidth) > 0


def test_huge_and_tiny_bandwidths_keep_their_edge():
    for bandwidth in (2.0**100, 2.0**-100):
        keys = torch.tensor([[bandwidth], [bandwidth / 2]])
        for kernel in EDGE_KERNELS:
            score = SCORES["boxcar"](1, 1, bandwidth=bandwidth)  # type: ignore[call-arg]
            assert attend(torch.zeros(1, 1), keys, torch.eye(2), score=score, kernel=kernel).context.tolist() == [
                [0, 1]
            ]
