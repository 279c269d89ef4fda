import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch

from heedful.attention.dispatch import attend
from heedful.attention.interface import PreparedKey, Score
from heedful.attention.kernels.plain import PlainScores
from heedful.attention.lowered import GivenScores, LoweredAdditive, LoweredDistance, LoweredDot, LoweredScore
from heedful.attention.scores import SCORES, Additive, Dot, Function, Gaussian, General, Location, ScaledDot
from heedful.errors import ShapeError, UsageError
from tests.attention.cases import make_score

Vector = list[float]
Parameters = Mapping[str, Any]
Formula = Callable[[Vector, Vector, int, Parameters], float | None]
"""From a query, a key, the place of the key, and the parameters."""


def dot(query: Vector, key: Vector, place: int, parameters: Parameters) -> float:
    return sum(q * k for q, k in zip(query, key, strict=True))


def scaled_dot(query: Vector, key: Vector, place: int, parameters: Parameters) -> float:
    return dot(query, key, place, parameters) / math.sqrt(len(query))


def cosine(query: Vector, key: Vector, place: int, parameters: Parameters) -> float:
    return dot(query, key, place, parameters) / (math.hypot(*query) * math.hypot(*key))


def general(query: Vector, key: Vector, place: int, parameters: Parameters) -> float:
    weight = parameters["weight"]
    return sum(q * weight[i, j] * k for i, q in enumerate(query) for j, k in enumerate(key))


def trilinear(query: Vector, key: Vector, place: int, parameters: Parameters) -> float:
    first, second, third = parameters["weight"]
    total = 0.0
    for i, (q, k) in enumerate(zip(query, key, strict=True)):
        total += first[i] * q + second[i] * k + third[i] * q * k
    return total


def tanh_of(of_query: Any, of_key: Any, query: Vector, key: Vector, vector: Vector) -> float:
    total = 0.0
    for unit, v in enumerate(vector):
        inner = sum(of_query[unit, i] * q for i, q in enumerate(query))
        inner += sum(of_key[unit, j] * k for j, k in enumerate(key))
        total += v * math.tanh(inner)
    return total


def additive(query: Vector, key: Vector, place: int, parameters: Parameters) -> float:
    maps = (parameters["query_projection.weight"], parameters["key_projection.weight"])
    return tanh_of(*maps, query, key, parameters["vector"])


def concat(query: Vector, key: Vector, place: int, parameters: Parameters) -> float:
    weight = parameters["weight"]
    return tanh_of(weight[:, : len(query)], weight[:, len(query) :], query, key, parameters["vector"])


def location(query: Vector, key: Vector, place: int, parameters: Parameters) -> float | None:
    weight = parameters["weight"]
    return sum(w * q for w, q in zip(weight[place], query, strict=True)) if place < len(weight) else None


def kernel(log_kernel: Callable[[float], float]) -> Formula:
    def score(query: Vector, key: Vector, place: int, parameters: Parameters) -> float | None:
        return log_kernel(math.dist(query, key) / math.exp(parameters["log_bandwidth"]))

    return score


def compact(kernel_of: Callable[[float], float]) -> Formula:
    def score(query: Vector, key: Vector, place: int, parameters: Parameters) -> float | None:
        u = math.dist(query, key) / math.exp(parameters["log_bandwidth"])
        return math.log(kernel_of(u)) if u < 1 else None

    return score


# The formulas of the papers, a second time and with loops.
FORMULAS: Mapping[str, Formula] = {
    "dot": dot,
    "scaled_dot": scaled_dot,
    "general": general,
    "trilinear": trilinear,
    "cosine": cosine,
    "additive": additive,
    "concat": concat,
    "location": location,
    "uniform": lambda query, key, place, parameters: 0.0,
    "gaussian": kernel(lambda u: -u * u / 2),
    "laplacian": kernel(lambda u: -u),
    "boxcar": compact(lambda u: 1.0),
    "triangular": compact(lambda u: 1 - u),
    "epanechnikov": compact(lambda u: 1 - u * u),
    "constant": lambda query, key, place, parameters: 0.0,
}


def scores_of(pairs: LoweredScore) -> tuple[torch.Tensor, torch.Tensor | None]:
    with torch.no_grad():
        return PlainScores().scores(pairs)


def randomized(name: str) -> Score:
    torch.manual_seed(3)
    score = make_score(name, 4)
    with torch.no_grad():
        for parameter in score.parameters():
            parameter.copy_(torch.randn_like(parameter) if parameter.dim() else torch.tensor(1.1))
    return score


@pytest.mark.parametrize("inverse_temperature", [1.0, 0.5, torch.tensor(0.5, dtype=torch.float64)])
@pytest.mark.parametrize("name", FORMULAS)
def test_a_score_is_its_formula(name: str, inverse_temperature: float):
    score = randomized(name)
    query, key = torch.randn(2, 3, 4).double(), torch.randn(2, 8, score.key_size).double()
    given, exists = scores_of(score.lower(query, score.prepare(key), inverse_temperature))
    parameters = {name: parameter.detach().numpy() for name, parameter in score.named_parameters()}
    for item, i, j in np.ndindex(2, 3, 8):
        wanted = FORMULAS[name](query[item, i].tolist(), key[item, j].tolist(), j, parameters)
        if wanted is None:
            is_out_of_reach = exists is not None and not exists[item, i, j]
            assert is_out_of_reach or (score.max_keys is not None and j >= score.max_keys)
        else:
            assert exists is None or bool(exists[item, i, j])
            assert float(given[item, i, j]) == pytest.approx(wanted * float(inverse_temperature), abs=1e-12)


@pytest.mark.parametrize("name", SCORES)
def test_each_score_lowers_to_the_pairs_its_signature_names(name: str):
    score = make_score(name, 4)
    query, key = torch.zeros(1, 4).double(), torch.zeros(2, score.key_size).double()
    pairs = score.lower(query, score.prepare(key))
    assert type(pairs) is type(score).lower.__annotations__["return"]
    assert isinstance(pairs, LoweredDot | LoweredAdditive | LoweredDistance)
    function = Function(lambda query, key: query @ key.mT)
    assert type(function.lower(query, function.prepare(query))) is GivenScores


@pytest.mark.parametrize("name", SCORES)
def test_all_are_made_alike_and_take_any_leading_axes(name: str):
    score = make_score(name, 3)
    for leading in ((), (2,), (2, 1, 3)):
        query, key = torch.randn(*leading, 2, 3).double(), torch.randn(*leading, 4, score.key_size).double()
        assert scores_of(score.lower(query, score.prepare(key)))[0].shape == (*leading, 2, 4)


def test_scores_that_compare_need_equal_sizes():
    maps = {name for name in SCORES if make_score(name, 3).key_size == 4}
    assert {"general", "additive", "concat", "location", "uniform"} <= maps
    for name in set(SCORES) - maps:
        with pytest.raises(ShapeError, match="query size 3 and key size 4 differ"):
            SCORES[name](3, 4)


@pytest.mark.parametrize("score", [Dot, ScaledDot])
def test_dot_scores_name_the_one_that_maps(score: type[Score]):
    with pytest.raises(ShapeError, match=r"query size 3 and key size 4 .* General"):
        score(3, 4)


def test_sizes_of_what_maps_between_them():
    assert General(3, 4).weight.shape == (3, 4)
    assert Additive(3, 4).hidden_size == 3  # the query's, where none is given
    assert Additive(3, 4, 7).vector.shape == (7,)
    assert Location(3, 4).max_keys == 50
    assert Location(3, 4, 7).weight.shape == (7, 3)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, math.inf, math.nan])
def test_a_bandwidth_is_above_zero_and_finite(bandwidth: float):
    with pytest.raises(UsageError, match="bandwidth must be above 0 and finite"):
        Gaussian(3, 3, bandwidth=bandwidth)


def test_a_bandwidth_learns_only_if_asked_to():
    assert not Gaussian(3, 3, bandwidth=2.0).log_bandwidth.requires_grad
    learned = Gaussian(3, 3, bandwidth=2.0, has_learned_bandwidth=True)
    assert learned.log_bandwidth.requires_grad
    assert float(learned.log_bandwidth.detach().exp()) == pytest.approx(2.0)


def test_the_scaling_keeps_the_variance_of_random_scores():
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(2000, 64, generator=generator) for _ in range(2))
    score = ScaledDot(64, 64)
    scores = scores_of(score.lower(query, score.prepare(key)))[0]
    assert float(scores.var()) == pytest.approx(1.0, abs=0.05)


def test_first_values_of_additive_scores_have_the_variance_of_one_number():
    torch.manual_seed(0)
    vectors = torch.cat([Additive(4, 4, 256).vector.detach() for _ in range(50)])
    assert float(vectors.var()) * 256 == pytest.approx(1.0, abs=0.05)


def test_prepared_keys_can_be_selected():
    prepared = PreparedKey(torch.arange(12.0).reshape(3, 2, 2))
    assert torch.equal(prepared.select(torch.tensor([2, 0])).key, prepared.key[[2, 0]])


def test_what_is_prepared_of_additive_keys_is_left_out_of_gradients():
    score = make_score("additive", 4)
    key = torch.randn(2, 5).double().requires_grad_()
    pairs = score.lower(torch.randn(3, 4).double(), score.prepare(key))
    assert isinstance(pairs, LoweredAdditive)
    assert pairs.key.requires_grad
    if pairs.exp_key is not None:
        assert not any(value.requires_grad for value in vars(pairs.exp_key).values() if isinstance(value, torch.Tensor))


@pytest.mark.parametrize("name", SCORES)
def test_whether_the_place_of_a_key_counts(name: str):
    score, order = randomized(name), torch.tensor([2, 0, 3, 1])
    query, key = torch.randn(3, 4).double(), torch.randn(4, score.key_size).double()
    one, other = (scores_of(score.lower(query, score.prepare(k)))[0] for k in (key, key[order]))
    assert torch.allclose(one[:, order], other) == (not score.is_positional)


def test_additive_scores_may_have_a_query_bias():
    torch.manual_seed(0)
    score = Additive(3, 4, 5, has_query_bias=True).double()
    query, key = torch.randn(2, 3).double(), torch.randn(6, 4).double()
    bias = score.query_projection.bias
    assert bias is not None
    inner = query @ score.query_projection.weight.mT + bias
    wanted = torch.tanh(inner[:, None] + key @ score.key_projection.weight.mT) @ score.vector
    found = attend(query, key, key, score=score, need="weights").weights
    torch.testing.assert_close(found, torch.softmax(wanted, dim=-1))
    assert Additive(3, 4, 5).query_projection.bias is None
