"""The kernel between `attend` and the numba kernels, which test_cpu_ops.py tests."""

from typing import Any

import pytest
import torch

from heedful.attention import Additive, Biased, ScaledDot, attend
from heedful.attention.biases import Alibi
from heedful.attention.dispatch import explain
from heedful.attention.kernels.interface import Request
from heedful.attention.kernels.step.kernel import FEW_QUERIES, FEW_SCORES, FewQueries
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


@pytest.mark.parametrize(
    ("num_queries", "num_keys", "pairs", "wants_gradient", "reason"),
    [
        (FEW_QUERIES, 5000, LoweredDot, True, None),
        (FEW_QUERIES + 1, 4, LoweredDot, True, "gradients of other kernels"),
        (20, FEW_SCORES // 20, LoweredDot, False, None),
        (20, FEW_SCORES // 20, LoweredAdditive, True, None),
        (20, FEW_SCORES // 20 + 1, LoweredAdditive, True, "so many scores"),
        (20, FEW_SCORES // 20 + 1, LoweredDot, False, "so many scores"),
    ],
)
def test_few_scores_are_its_own(
    num_queries: int, num_keys: int, pairs: type[LoweredScore], wants_gradient: bool, reason: str | None
):
    request = REQUEST._replace(num_queries=num_queries, num_keys=num_keys, pairs=pairs, wants_gradient=wants_gradient)
    told = FewQueries().declines_auto(request)
    assert told is None if reason is None else reason in str(told)
    with single_threaded():
        assert "exact" in str(FewQueries().declines_auto(request))


@pytest.mark.parametrize("score", [ScaledDot(8, 8), Additive(8, 8)])
def test_a_step_of_a_decoder_is_its_own(score: ScaledDot | Additive):
    query, key = torch.randn(2, 1, 8), torch.randn(2, 5, 8)
    assert attend(query, key, key, score=score, mask=padding(torch.tensor([5, 2]))).kernel == "step_cpu"
    choices = {choice.kernel: choice.reason for choice in explain(query, key, key, score=Biased(score, Alibi()))}
    assert choices["step_cpu"] == "takes no score with a bias by positions"
