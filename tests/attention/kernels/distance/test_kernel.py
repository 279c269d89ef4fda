"""The kernel between `attend` and the numba kernels, which test_cpu_ops.py tests."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.attention.kernels.distance import kernel as module
from heedful.attention.kernels.distance.kernel import FusedDistance
from heedful.attention.kernels.interface import Request
from heedful.attention.lowered import LoweredAdditive, LoweredDistance, LoweredDot
from heedful.attention.masks import causal, padding
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.softmax import SOFTMAX, Softmax

REQUEST = Request(LoweredDistance, torch.float32, "cpu", 3, 4, profile="gaussian")
PAIRS = LoweredDistance(torch.zeros(2, 3, 1), torch.zeros(2, 4, 1), torch.tensor(2.0), "boxcar", 0.5)
VALUE = torch.zeros(2, 4, 5)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The loops' place is taken, so that this is tested wherever they do not run."""
    seen: list[tuple[Any, ...]] = []

    def loops(*arguments: Any) -> tuple[Tensor, Tensor]:
        seen.append(arguments)
        return torch.ones(2, 3, 5), torch.full((2, 3), 7.0)

    def supports(dtype: torch.dtype, device: str, profile: str) -> str | None:
        return f"not {profile}" if profile == "unheard of" or device != "cpu" else None

    monkeypatch.setattr(module, "distance_attention", loops)
    monkeypatch.setattr(module, "supports_type", supports)
    return seen


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pairs": LoweredDot}, "only distance scores"),
        ({"pairs": LoweredAdditive}, "only distance scores"),
        *(({"normalizer": kind}, "only softmax") for kind in NORMALIZERS.values() if kind is not Softmax),
        ({"need": frozenset({"weights", "log_normalizer", "entropy"})}, "not entropy, weights"),
        ({"mask": "dense"}, "no table"),
        ({"mask": "interval", "has_gaussian": True}, "no Gaussian"),
        ({"dropout": 0.1}, "no dropout"),
        ({"mode": "compile"}, "cannot be traced (compile)"),
        ({"mode": "export"}, "cannot be traced (export)"),
        ({"profile": "unheard of"}, "not unheard of"),
        ({"device": "cuda"}, "not gaussian"),
    ],
)
def test_it_says_why_it_refuses(change: dict[str, Any], reason: str, calls: list[Any]):
    assert reason in str(FusedDistance().supports(REQUEST._replace(**change)))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"need": frozenset({"log_normalizer"})},
        {"mask": "interval", "width": 2},
        {"wants_gradient": True, "dtype": torch.float64},
    ],
)
def test_it_takes_the_rest(change: dict[str, Any], calls: list[Any]):
    assert FusedDistance().supports(REQUEST._replace(**change)) is None


def test_loops_get_the_pairs_and_the_intervals(calls: list[Any]):
    rows = (causal() & padding(torch.tensor([4, 2]))).rows(3, 4, torch.device("cpu"))
    attended = FusedDistance().run(PAIRS, VALUE, rows, SOFTMAX, REQUEST)
    assert (attended.kernel, attended.log_normalizer) == ("distance_cpu", None)
    ((query, key, value, bandwidth, profile, inverse_temperature, start, stop),) = calls
    assert query is PAIRS.query
    assert key is PAIRS.key
    assert value is VALUE
    assert bandwidth is PAIRS.bandwidth
    assert (profile, inverse_temperature) == ("boxcar", 0.5)
    assert start.tolist() == [[0] * 3] * 2
    assert stop.tolist() == [[2, 3, 4], [2, 2, 2]]


def test_without_a_mask_there_are_no_intervals(calls: list[Any]):
    FusedDistance().run(PAIRS, VALUE, None, SOFTMAX, REQUEST)
    assert calls[0][-2:] == (None, None)


def test_bounds_have_as_many_leading_axes_as_the_scores(calls: list[Any]):
    pairs = replace(PAIRS, query=torch.zeros(2, 6, 3, 1), key=torch.zeros(2, 6, 4, 1))
    rows = padding(torch.tensor([4, 2])).rows(3, 4, torch.device("cpu"))
    FusedDistance().run(pairs, VALUE, rows, SOFTMAX, REQUEST)
    assert calls[0][-1].shape == (2, 1, 1)


def test_the_log_normalizer_is_given_if_asked(calls: list[Any]):
    asked = REQUEST._replace(need=frozenset({"log_normalizer"}))
    attended = FusedDistance().run(PAIRS, VALUE, None, SOFTMAX, asked)
    assert attended.log_normalizer is not None
    assert attended.log_normalizer.tolist() == [[7.0] * 3] * 2


def test_pairs_of_another_kind_raise_even_where_it_was_not_asked_first():
    with pytest.raises(TypeError, match="distance_cpu: got LoweredDot"):
        FusedDistance().run(LoweredDot(torch.zeros(1, 1), torch.zeros(1, 1)), VALUE, None, SOFTMAX, REQUEST)
