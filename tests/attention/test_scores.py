import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest
import torch

from heedful.attention.kernels.eager import make_scores
from heedful.attention.pairs import AdditivePairs, DotPairs
from heedful.attention.scores import SCORES, Additive, Dot, General, PreparedKey, ScaledDot, Score
from heedful.errors import ShapeError

Vector = list[float]


def dot(query: Vector, key: Vector, _: dict[str, np.ndarray]) -> float:
    return sum(q * k for q, k in zip(query, key, strict=True))


def scaled_dot(query: Vector, key: Vector, parameters: dict[str, np.ndarray]) -> float:
    return dot(query, key, parameters) / math.sqrt(len(query))


def general(query: Vector, key: Vector, parameters: dict[str, np.ndarray]) -> float:
    weight = parameters["weight"]
    return sum(q * weight[i, j] * k for i, q in enumerate(query) for j, k in enumerate(key))


def additive(query: Vector, key: Vector, parameters: dict[str, np.ndarray]) -> float:
    of_query, of_key = parameters["query_projection.weight"], parameters["key_projection.weight"]
    total = 0.0
    for unit, v in enumerate(parameters["vector"]):
        inner = sum(of_query[unit, i] * q for i, q in enumerate(query))
        inner += sum(of_key[unit, j] * k for j, k in enumerate(key))
        total += v * math.tanh(inner)
    return total


# The formulas of the papers, a second time and with loops.
FORMULAS: Mapping[str, Callable[[Vector, Vector, dict[str, np.ndarray]], float]] = {
    "dot": dot,
    "scaled_dot": scaled_dot,
    "general": general,
    "additive": additive,
}


def make(name: str, query_size: int, key_size: int) -> Score:
    torch.manual_seed(3)
    return SCORES[name](query_size, key_size, 5).double()


@pytest.mark.parametrize("inverse_temperature", [1.0, 0.5])
@pytest.mark.parametrize("name", FORMULAS)
def test_a_score_is_its_formula(name: str, inverse_temperature: float):
    key_size = 4 if "dot" in name else 3
    score = make(name, 4, key_size)
    query, key = torch.randn(2, 3, 4).double(), torch.randn(2, 5, key_size).double()
    given = make_scores(score.lower(query, score.prepare(key), inverse_temperature))
    parameters = {name: parameter.detach().numpy() for name, parameter in score.named_parameters()}
    for item in range(2):
        for i in range(3):
            for j in range(5):
                wanted = FORMULAS[name](query[item, i].tolist(), key[item, j].tolist(), parameters)
                assert float(given[item, i, j].detach()) == pytest.approx(wanted * inverse_temperature, abs=1e-12)


def test_each_score_lowers_to_pairs_that_kernels_know():
    kinds = {"dot": DotPairs, "scaled_dot": DotPairs, "general": DotPairs, "additive": AdditivePairs}
    for name, kind in kinds.items():
        score = make(name, 4, 4)
        assert type(score.lower(torch.zeros(1, 4).double(), score.prepare(torch.zeros(2, 4).double()))) is kind


@pytest.mark.parametrize("score", [Dot, ScaledDot])
def test_dot_scores_need_equal_sizes(score: type[Score]):
    with pytest.raises(ShapeError, match=r"query size 3 and key size 4 .* General"):
        score(3, 4)


def test_additive_and_general_map_between_sizes():
    assert General(3, 4).weight.shape == (3, 4)
    assert Additive(3, 4).hidden_size == 3  # the query's, where none is given
    assert Additive(3, 4, 7).vector.shape == (7,)


def test_the_scaling_keeps_the_variance_of_random_scores():
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(2000, 64, generator=generator) for _ in range(2))
    score = ScaledDot(64, 64)
    scores = make_scores(score.lower(query, score.prepare(key)))
    assert float(scores.var()) == pytest.approx(1.0, abs=0.05)


def test_prepared_keys_can_be_selected():
    prepared = PreparedKey(torch.arange(12.0).reshape(3, 2, 2))
    assert torch.equal(prepared.select(torch.tensor([2, 0])).key, prepared.key[[2, 0]])
