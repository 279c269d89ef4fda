"""The kernel between `attend` and the numba kernels, which test_cpu_ops.py tests."""

from typing import Any

import pytest
import torch

from heedful.attention import Additive, Biased, ScaledDot, attend
from heedful.attention.biases import Alibi
from heedful.attention.dispatch import explain
from heedful.attention.kernels.interface import Request
from heedful.attention.kernels.step.kernel import FEW_KEYS, FEW_QUERIES, FEW_SCORES, WIDE, FewQueries
from heedful.attention.lowered import LoweredAdditive, LoweredDistance, LoweredDot, LoweredScore
from heedful.attention.masks import padding
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.softmax import Softmax
from heedful.cpu.threads import single_threaded

pytest.importorskip("numba")

REQUEST = Request(LoweredDot, torch.float32, "cpu", 1, 4)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pairs": LoweredDistance}, "only dot and additive scores"),
        *(({"normalizer": kind}, "only softmax") for kind in NORMALIZERS.values() if kind is not Softmax),
        ({"need": frozenset({"weights", "entropy"})}, "not entropy"),
        ({"mask": "dense"}, "no table"),
        ({"mask": "interval", "has_gaussian": True}, "no Gaussian"),
        ({"dropout": 0.1}, "no dropout"),
        ({"mode": "compile"}, "cannot be traced (compile)"),
        ({"device": "cuda"}, "only on a CPU"),
        ({"dtype": torch.bfloat16}, "only float32 and float64"),
        ({"pairs": LoweredAdditive, "dtype": torch.float64}, "only float32 for such scores"),
    ],
)
def test_reasons_of_a_refusal(change: dict[str, Any], reason: str):
    assert reason in str(FewQueries().supports(REQUEST._replace(**change)))


MANY = 1_000_000
"""Numbers of a call that is not small."""


@pytest.mark.parametrize("wants_gradient", [False, True])
@pytest.mark.parametrize(
    ("num_queries", "num_keys", "num_features", "num_numbers", "pairs", "is_chosen"),
    [
        (FEW_QUERIES, 5000, 64, MANY, LoweredDot, True),
        (FEW_QUERIES + 1, FEW_KEYS, 64, MANY, LoweredDot, True),
        (FEW_QUERIES + 1, FEW_KEYS + 1, 64, MANY, LoweredDot, False),
        (8, FEW_SCORES // 8, WIDE, MANY, LoweredDot, True),
        (8, FEW_SCORES // 8 + 1, WIDE, MANY, LoweredDot, False),
        (8, FEW_SCORES // 8, WIDE - 1, MANY, LoweredDot, False),
        (32, 64, 32, 2048, LoweredDot, True),
        (32, 65, 32, 2080, LoweredDot, False),
        (60, 60, 32, 115_200, LoweredAdditive, True),
        (60, 60, 256, 921_600, LoweredAdditive, False),
        (512, 4, 1024, 2_097_152, LoweredAdditive, True),
        (512, 15, 1024, 7_864_320, LoweredAdditive, False),
    ],
)
def test_calls_in_which_it_is_faster_are_its_own(
    num_queries: int,
    num_keys: int,
    num_features: int,
    num_numbers: int,
    pairs: type[LoweredScore],
    is_chosen: bool,
    wants_gradient: bool,
):
    sizes = {"num_queries": num_queries, "num_keys": num_keys, "num_features": num_features, "num_numbers": num_numbers}
    request = REQUEST._replace(**sizes, pairs=pairs, wants_gradient=wants_gradient)
    reason = FewQueries().declines_auto(request)
    assert reason is None if is_chosen else "so many scores" in str(reason)
    with single_threaded():
        assert "exact" in str(FewQueries().declines_auto(request))


@pytest.mark.parametrize("score", [ScaledDot(8, 8), Additive(8, 8)])
def test_a_step_of_a_decoder_is_its_own(score: ScaledDot | Additive):
    query, key = torch.randn(2, 1, 8), torch.randn(2, 5, 8)
    assert attend(query, key, key, score=score, mask=padding(torch.tensor([5, 2]))).kernel == "step_cpu"
    choices = {choice.kernel: choice.reason for choice in explain(query, key, key, score=Biased(score, Alibi()))}
    assert choices["step_cpu"] == "takes no score with a bias by positions"
