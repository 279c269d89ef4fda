"""The score kernel between the driver and the numba kernels, which test_cpu_ops.py tests."""

from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.attention.kernels.additive import score_kernel as additive
from heedful.attention.kernels.additive.cpu_ops import FEW, supports
from heedful.attention.kernels.additive.score_kernel import AdditiveScores
from heedful.attention.kernels.interface import Request
from heedful.attention.lowered import LoweredAdditive, LoweredDistance, LoweredDot
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import Additive
from heedful.attention.tiled_attention import Tiled
from tests.attention.cases import make_case
from tests.contracts.attention import distance
from tests.contracts.errors import plain

REQUEST = Request(LoweredAdditive, torch.float32, "cpu", 10, 10)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The loops' place is taken by the formula, so that this is tested wherever they do not run."""
    seen: list[tuple[Any, ...]] = []

    def formula(query: Tensor, key: Tensor, vector: Tensor, exp_key: object = None) -> Tensor:
        seen.append((query, key, vector, exp_key))
        return torch.tanh(query[..., :, None, :] + key[..., None, :, :]) @ vector

    monkeypatch.setattr(additive, "additive_scores", formula)
    monkeypatch.setattr(additive, "supports_type", lambda dtype, device: "not this" if device != "cpu" else None)
    return seen


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pairs": LoweredDot}, "only additive scores"),
        ({"pairs": LoweredDistance}, "only additive scores"),
        ({"mode": "compile"}, r"cannot be traced (compile)"),
        ({"mode": "export"}, r"cannot be traced (export)"),
        ({"device": "cuda"}, "not this"),
    ],
)
def test_it_says_why_it_refuses(change: dict[str, Any], reason: str, calls: list[Any]):
    assert reason in str(AdditiveScores().supports(REQUEST._replace(**change)))


@pytest.mark.parametrize(
    ("change", "is_declined"),
    [
        ({"num_numbers": FEW}, True),
        ({"num_numbers": FEW, "dtype": torch.float64}, True),
        ({"num_numbers": FEW + 1}, False),
        ({"num_numbers": FEW, "dtype": torch.bfloat16}, False),
        ({}, False),
    ],
)
def test_auto_leaves_few_numbers_to_plain_operations(change: dict[str, Any], is_declined: bool):
    assert ("plain operations" in str(AdditiveScores().declines_auto(REQUEST._replace(**change)))) is is_declined


def test_so_few_keys_are_prepared_without_exponentials():
    score = Additive(64, 64)
    assert score.prepare(torch.zeros(FEW // 64, 64)).exp_key is None
    many = torch.zeros(FEW // 64 + 1, 64)
    assert (score.prepare(many).exp_key is None) is (supports(many.dtype, "cpu") is not None)


@pytest.mark.parametrize(
    "change",
    [
        *({"normalizer": kind} for kind in NORMALIZERS.values()),
        {"need": frozenset({"weights", "entropy"})},
        {"mask": "dense", "has_gaussian": True, "dropout": 0.1, "wants_gradient": True},
    ],
)
def test_the_driver_takes_the_rest(change: dict[str, Any], calls: list[Any]):
    assert Tiled(AdditiveScores()).supports(REQUEST._replace(**change)) is None


def test_pairs_of_another_kind_raise_even_where_it_was_not_asked_first():
    with pytest.raises(TypeError, match="additive_cpu: got LoweredDot"):
        AdditiveScores().scores(LoweredDot(torch.zeros(1, 1), torch.zeros(1, 1)))


def test_loops_get_what_was_prepared_and_the_temperature_within_the_vector(calls: list[Any]):
    pairs = LoweredAdditive(torch.zeros(2, 3), torch.zeros(4, 3), torch.ones(3), "prepared")  # type: ignore[arg-type]
    scores, exists = AdditiveScores().scores(pairs)
    assert (scores.shape, exists) == ((2, 4), None)
    ((query, key, vector, exp_key),) = calls
    assert query is pairs.query
    assert key is pairs.key
    assert vector is pairs.vector
    assert exp_key == "prepared"
    assert AdditiveScores().numbers_per_score(pairs) == 1


@pytest.mark.parametrize("mask", ["none", "padding", "local-p over the source & padding", "graph & padding"])
def test_attention_over_its_scores(mask: str, calls: list[Any]):
    case = make_case("concat", mask)
    pairs = case.score.lower(case.query, case.score.prepare(case.key))
    rows = None if case.mask is None else case.mask.rows(3, 4, torch.device("cpu"))
    context = Tiled(AdditiveScores()).run(pairs, case.value, rows, case.normalizer, REQUEST).context
    assert distance(context, plain(case)[0]) <= 1e-12
    assert len(calls) == 1
