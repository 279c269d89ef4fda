"""What only this kernel has: gradients of long sequences, refusals, dropout; the rest is in tests/contracts."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from heedful.attention.attend import attend
from heedful.attention.kernels.interface import Request
from heedful.attention.kernels.sdpa import SHORT, ScaledDotProduct
from heedful.attention.normalizers import Softmax
from heedful.attention.pairs import AdditivePairs, DotPairs
from heedful.attention.scores import ScaledDot
from heedful.errors import KernelUnsupported
from tests.attention.cases import MASKS, Case, make_case

REQUEST = Request(DotPairs, Softmax, torch.float32, "cpu", 100, 100)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pairs": AdditivePairs}, "only dot scores"),
        ({"normalizer": object}, "only softmax"),
        ({"need": frozenset({"weights", "entropy"})}, "not entropy, weights"),
        ({"wants_gradient": True, "dtype": torch.bfloat16}, "slower than eager"),
    ],
)
def test_it_says_why_it_refuses(change: dict[str, Any], reason: str):
    assert reason in str(ScaledDotProduct().supports(replace(REQUEST, **change)))


def test_it_takes_the_rest():
    assert ScaledDotProduct().supports(REQUEST) is None
    assert ScaledDotProduct().supports(replace(REQUEST, wants_gradient=True)) is None
    assert ScaledDotProduct().supports(replace(REQUEST, dtype=torch.bfloat16)) is None
    long = replace(REQUEST, dtype=torch.bfloat16, wants_gradient=True, num_queries=SHORT // 100 + 1)
    assert ScaledDotProduct().supports(long) is None  # there its memory counts for more


def test_pairs_it_cannot_take_raise_even_where_it_was_not_asked_first():
    pairs = AdditivePairs(torch.zeros(1, 1), torch.zeros(1, 1), torch.zeros(1))
    with pytest.raises(KernelUnsupported):
        ScaledDotProduct().run(pairs, torch.zeros(1, 1), None, Softmax(), REQUEST)


def gradients(case: Case, kernel: str) -> list[Tensor]:
    tensors = [tensor.clone().requires_grad_() for tensor in (case.query, case.key, case.value)]
    attended = attend(*tensors, score=case.score, mask=case.mask, kernel=kernel)
    assert attended.kernel == kernel
    return list(torch.autograd.grad((attended.context.square()).sum(), tensors))


@pytest.mark.parametrize("mask", MASKS)
def test_gradients_are_those_of_eager(mask: str):
    case = make_case("scaled_dot", mask, (3, 2), 65, 64, size=4, value_size=4)
    for given, wanted in zip(gradients(case, "sdpa"), gradients(case, "eager"), strict=True):
        assert bool(torch.isfinite(given).all())
        assert float((given - wanted).abs().max()) <= 1e-11


@pytest.mark.parametrize("mask", ["padding", "causal", "padding & causal", "nothing"])
def test_gradients_in_float32_are_no_worse_than_three_times_plain_ones(mask: str):
    case = make_case("scaled_dot", mask, (2, 2), 70, 70, size=16, value_size=16, dtype=torch.float32)
    wide = replace(case, query=case.query.double(), key=case.key.double(), value=case.value.double())
    rows = zip(gradients(case, "sdpa"), gradients(case, "eager"), gradients(wide, "eager"), strict=True)
    for given, plain, exact in rows:
        floor = 2.0**-24 * float(exact.abs().max()) * 70
        assert float((given - exact).abs().max()) <= max(3.0 * float((plain - exact).abs().max()), floor)


def test_rows_that_allow_nothing_are_zero_whatever_the_backend_makes_of_them(monkeypatch: pytest.MonkeyPatch):
    known = functional.scaled_dot_product_attention

    def as_some_backends(*tensors: Tensor, attn_mask: Tensor, **options: Any) -> Tensor:
        context = known(*tensors, attn_mask=attn_mask, **options)
        return torch.where(attn_mask.any(dim=-1, keepdim=True), context, torch.nan)

    case = make_case("scaled_dot", "padding", (3,), 2, 4)
    mask = MASKS["padding"].make(torch.tensor([4, 0, 2]))
    monkeypatch.setattr(functional, "scaled_dot_product_attention", as_some_backends)
    context = attend(case.query, case.key, case.value, score=case.score, mask=mask, kernel="sdpa").context
    assert bool((context[1] == 0.0).all())
    assert bool(torch.isfinite(context).all())


def test_dropout_keeps_the_expectation():
    query, key = torch.zeros(1, 8), torch.zeros(2000, 8)
    torch.manual_seed(0)
    attended = attend(query, key, torch.ones(2000, 8), score=ScaledDot(8, 8), dropout=0.5, kernel="sdpa")
    assert float(attended.context.mean()) == pytest.approx(1.0, abs=0.1)
    assert float(attended.context[0, 0]) != 1.0
