"""Properties of this kernel alone: gradients of long sequences, refusals, PyTorch's kernels; the rest is in
tests/contracts."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from heedful.attention.dispatch import attend
from heedful.attention.kernels.interface import Request
from heedful.attention.kernels.sdpa import SHORT, ScaledDotProduct
from heedful.attention.lowered import GivenScores, LoweredAdditive, LoweredDistance, LoweredDot
from heedful.attention.masks import padding
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import ScaledDot
from heedful.attention.softmax import Softmax
from heedful.attention.tiled_attention import WHOLE
from heedful.cpu.threads import single_threaded
from tests.attention.cases import MASKS, Case, make_case
from tests.contracts.attention import distance

REQUEST = Request(LoweredDot, torch.float32, "cpu", 100, 100)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pairs": LoweredAdditive}, "only dot scores"),
        ({"pairs": LoweredDistance}, "only dot scores"),
        ({"pairs": GivenScores}, "only dot scores"),
        *(({"normalizer": kind}, "only softmax") for kind in NORMALIZERS.values() if kind is not Softmax),
        ({"need": frozenset({"weights", "entropy"})}, "not entropy, weights"),
        ({"has_gaussian": True, "mask": "interval"}, "no Gaussian"),
        ({"dropout": 0.1}, "with dropout PyTorch writes all weights on a CPU"),
    ],
)
def test_it_says_why_it_refuses(change: dict[str, Any], reason: str):
    assert reason in str(ScaledDotProduct().supports(REQUEST._replace(**change)))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"wants_gradient": True},
        {"dtype": torch.bfloat16},
        {"dtype": torch.bfloat16, "wants_gradient": True},
        {"mask": "dense"},
        {"mask": "interval", "width": 3},
        {"mode": "export"},
        {"mode": "compile"},
        {"dropout": 0.5, "device": "cuda"},
    ],
)
def test_it_takes_the_rest(change: dict[str, Any]):
    assert ScaledDotProduct().supports(REQUEST._replace(**change)) is None


FEW = REQUEST._replace(num_queries=64, num_keys=64, num_numbers=64 * 64, num_features=128)
SHORT_NARROW = FEW._replace(dtype=torch.bfloat16, wants_gradient=True)


@pytest.mark.parametrize(
    ("request_", "change", "is_declined"),
    [
        (FEW, {}, True),
        (FEW, {"dtype": torch.float64, "num_features": 512}, True),
        (FEW, {"num_features": 64}, False),
        (FEW, {"num_features": 0}, False),
        (FEW, {"num_queries": 1}, False),
        (FEW, {"num_queries": 16, "num_keys": 64, "num_features": 512}, False),
        (FEW, {"num_queries": 16, "num_keys": 64, "num_features": 512, "wants_gradient": True}, False),
        (FEW, {"num_queries": 128, "num_keys": 128}, False),
        (FEW, {"num_queries": 128, "num_keys": 128, "wants_gradient": True}, True),
        (FEW, {"num_queries": 128, "num_keys": 129, "wants_gradient": True}, False),
        # More scores than one tile of the plain kernel holds are computed twice.
        (FEW, {"num_numbers": WHOLE + 1}, False),
        (FEW, {"device": "cuda"}, False),
        (FEW, {"mode": "export"}, False),
        (FEW, {"dtype": torch.bfloat16}, False),
        (SHORT_NARROW, {}, True),
        (SHORT_NARROW, {"num_queries": SHORT // 64 + 1}, False),
        (SHORT_NARROW, {"device": "cuda"}, False),
        (SHORT_NARROW, {"mode": "export"}, False),
    ],
)
def test_auto_leaves_few_scores_of_wide_heads_to_plain_operations(
    request_: Request, change: dict[str, Any], is_declined: bool
):
    kernel, asked = ScaledDotProduct(), request_._replace(**change)
    assert kernel.supports(asked) is None
    assert ("plain operations" in str(kernel.declines_auto(asked))) is is_declined


def test_the_number_of_keys_chooses_no_kernel_of_exact_decoding():
    inputs = [torch.randn(2, 32, 256) for _ in range(3)]
    assert attend(*inputs, score=ScaledDot(256, 256)).kernel == "plain"
    with single_threaded():
        assert attend(*inputs, score=ScaledDot(256, 256)).kernel == "sdpa"


def gradients(case: Case, kernel: str) -> list[Tensor]:
    tensors = [tensor.clone().requires_grad_() for tensor in case.inputs]
    attended = attend(*tensors, score=case.score, mask=case.mask, kernel=kernel)
    assert attended.kernel == kernel
    return list(torch.autograd.grad((attended.context.square()).sum(), tensors))


@pytest.mark.parametrize("mask", [name for name, case in MASKS.items() if case.factor is None])
def test_gradients_are_those_of_the_plain_kernel(mask: str):
    # Sizes of value and key are equal and there are two leading axes: then PyTorch takes its fused loops.
    case = make_case("scaled_dot", mask, (3, 2), 65, 64, size=4, value_size=4)
    for given, wanted in zip(gradients(case, "sdpa"), gradients(case, "plain"), strict=True):
        assert bool(torch.isfinite(given).all())
        assert distance(given, wanted) <= 1e-11


def test_rows_that_allow_nothing_are_zero_whatever_the_backend_makes_of_them(monkeypatch: pytest.MonkeyPatch):
    known = functional.scaled_dot_product_attention

    def as_some_backends(*tensors: Tensor, attn_mask: Tensor, **options: Any) -> Tensor:
        context = known(*tensors, attn_mask=attn_mask, **options)
        return torch.where(attn_mask.any(dim=-1, keepdim=True), context, torch.nan)

    case = make_case("scaled_dot", "padding", (3,), 2, 4, lengths=[4, 0, 2])
    monkeypatch.setattr(functional, "scaled_dot_product_attention", as_some_backends)
    context = attend(*case.inputs, score=case.score, mask=case.mask, kernel="sdpa").context
    assert bool((context[1] == 0.0).all())
    assert bool(torch.isfinite(context).all())


def test_the_triangle_is_not_written_out(monkeypatch: pytest.MonkeyPatch):
    seen: list[dict[str, Any]] = []
    known = functional.scaled_dot_product_attention

    def recorded(*tensors: Tensor, **options: Any) -> Tensor:
        seen.append(options)
        return known(*tensors, **options)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", recorded)
    for mask in ("causal", "none", "padding & causal"):
        case = make_case("scaled_dot", mask, (3,), 4, 4)
        attend(*case.inputs, score=case.score, mask=case.mask, kernel="sdpa")
    assert [(each["is_causal"], each["attn_mask"] is None) for each in seen] == [
        (True, True),
        (False, True),
        (False, False),
    ]
    assert all(each["scale"] == case.score.scale != 1.0 for each in seen)  # no scaled copy of the queries


def test_leading_axes_may_be_broadcast():
    query, key, value = torch.randn(2, 1, 3, 4).double(), torch.randn(1, 3, 5, 4).double(), torch.randn(5, 6).double()
    given, wanted = (attend(query, key, value, score=ScaledDot(4, 4), kernel=k).context for k in ("sdpa", "plain"))
    assert given.shape == (2, 3, 3, 6)
    assert distance(given, wanted) <= 1e-14


@pytest.mark.parametrize("leading", [(), (3,), (2, 3), (2, 1, 2)])
@pytest.mark.parametrize(("size", "value_size"), [(4, 4), (4, 6), (6, 4)])
def test_pytorch_takes_its_fused_loops(
    leading: tuple[int, ...], size: int, value_size: int, monkeypatch: pytest.MonkeyPatch
):
    choices: list[int] = []
    known = functional.scaled_dot_product_attention

    def asked(*tensors: Tensor, **options: Any) -> Tensor:
        choices.append(torch._fused_sdp_choice(*tensors, **options))
        return known(*tensors, **options)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", asked)
    for mask in ("none", "causal", "padding", "padding & causal"):
        case = make_case("scaled_dot", mask, leading, 5, 5, size, value_size)
        tensors = [tensor.mT.contiguous().mT for tensor in case.inputs]  # features far apart
        for query, key, value in (case.inputs, tensors, [tensor[:1].expand_as(tensor) for tensor in tensors]):
            given, wanted = (
                attend(query, key, value, score=case.score, mask=case.mask, kernel=kernel).context
                for kernel in ("sdpa", "plain")
            )
            assert distance(given, wanted) <= 1e-13
    assert set(choices) == {1}  # 0 would be the formula, with all weights in memory


def test_values_may_have_more_leading_axes_than_scores():
    case = make_case("scaled_dot", leading=(3,), lengths=[1, 4, 0])
    mask = padding(torch.tensor([1, 4, 0]))
    for more in ((2,), (4, 2)):
        value = torch.randn(*more, 3, 4, 3).double()
        given, wanted = (
            attend(case.query, case.key, value, score=case.score, mask=mask, kernel=kernel).context
            for kernel in ("sdpa", "plain")
        )
        assert given.shape == (*more, 3, 3, 3)
        assert distance(given, wanted) <= 1e-14
