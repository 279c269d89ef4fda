"""The kernel between `attend` and the numba kernels, which test_cpu_ops.py tests."""

from typing import Any

import pytest
import torch

from heedful.attention import Additive, Biased, ScaledDot, attend
from heedful.attention.biases import Alibi
from heedful.attention.dispatch import explain
from heedful.attention.kernels.interface import Request
from heedful.attention.kernels.step.kernel import MOST_LEARNED, MOST_QUERIES, FewQueries
from heedful.attention.lowered import LoweredAdditive, LoweredDistance, LoweredDot
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


def test_few_queries_are_chosen_and_many_are_not():
    kernel = FewQueries()
    for pairs, wants_gradient, most in (
        (LoweredDot, False, MOST_QUERIES),
        (LoweredDot, True, MOST_LEARNED),
        (LoweredAdditive, True, MOST_QUERIES),
    ):
        request = REQUEST._replace(pairs=pairs, wants_gradient=wants_gradient)
        assert kernel.declines_auto(request._replace(num_queries=most)) is None
        assert "more than" in str(kernel.declines_auto(request._replace(num_queries=most + 1)))
    with single_threaded():
        assert "exact" in str(kernel.declines_auto(REQUEST))


@pytest.mark.parametrize("score", [ScaledDot(8, 8), Additive(8, 8)])
def test_a_step_of_a_decoder_is_its_own(score: ScaledDot | Additive):
    query, key = torch.randn(2, 1, 8), torch.randn(2, 5, 8)
    assert attend(query, key, key, score=score, mask=padding(torch.tensor([5, 2]))).kernel == "step_cpu"
    choices = {choice.kernel: choice.reason for choice in explain(query, key, key, score=Biased(score, Alibi()))}
    assert choices["step_cpu"] == "takes no score with a bias by positions"
