"""Attention in one pass on a GPU, in Triton's interpreter (TRITON_INTERPRET=1), against plain operations in float64."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.attention.dispatch import explain
from heedful.attention.interface import Attended, Need
from heedful.attention.kernels import devices
from heedful.attention.kernels.fused import plan as fused_plan
from heedful.attention.kernels.fused.kernel import FusedTriton
from heedful.attention.kernels.interface import Request
from heedful.attention.lowered import GivenScores, LoweredAdditive, LoweredDot
from heedful.attention.masks import causal, local_monotonic, padding
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES, Additive, Dot, Gaussian
from heedful.attention.simplex import Sparsemax
from heedful.attention.stochastic import Sampled, random_bits
from tests.attention.cases import Case, make_case
from tests.attention.kernels.interpreter import DEVICE, quiet, runs
from tests.attention.kernels.on_device import attend

pytestmark = [quiet]
CASES = [
    *((score, "padding & causal", "softmax") for score in SCORES if score not in {"location"}),
    *(("additive", mask, "softmax") for mask in ("none", "window", "graph & padding", "local-p of another sigma")),
    *(("dot", "local-p", normalizer) for normalizer in ("hard", "straight_through", "gumbel_softmax")),
    *(("additive", "padding", normalizer) for normalizer in ("hard", "sampled", "straight_through")),
    *(("gaussian", "local-m", normalizer) for normalizer in ("sampled", "gumbel_softmax")),
    ("triangular", "local-p over the source & padding", "softmax"),
    ("additive", "nothing", "softmax"),
    ("dot", "nothing", "sampled"),
]
SUMS = ("log_normalizer", "entropy", "log_prob")


def wants(case: Case) -> frozenset[Need]:
    """All but weights, which have no gradient here, and the entropy where a Gaussian multiplies weights."""
    return case.normalizer.provides - {"weights", *({"entropy"} if case.factors is not None else ())}


def loss_of(attended: Attended) -> Tensor:
    """Of all that has gradient, each number with a weight of its own."""

    def weighted(tensor: Tensor) -> Tensor:
        slopes = torch.linspace(-1.0, 2.0, tensor.numel(), dtype=torch.float64).reshape(tensor.shape)
        return (tensor.masked_fill(tensor.isinf(), 0.0) * slopes).sum()

    given = [part for name in SUMS if (part := getattr(attended, name)) is not None]
    return sum((weighted(part) for part in given), weighted(attended.context))


def run(case: Case, kernel: str, **more: Any) -> tuple[Attended, tuple[Tensor, ...]]:
    """Results of `attend`, and the gradients of the inputs and of all that learns."""
    inputs = [tensor.clone().requires_grad_() for tensor in case.inputs]
    learned = [tensor.requires_grad_() for tensor in case.learned]
    attended = attend(
        *inputs, score=case.score, mask=case.mask, normalizer=case.normalizer, need=wants(case), kernel=kernel, **more
    )
    assert attended.kernel == kernel
    grads = torch.autograd.grad(loss_of(attended), [*inputs, *learned], allow_unused=True, materialize_grads=True)
    return attended, grads


def agree(one: tuple[Attended, tuple[Tensor, ...]], other: tuple[Attended, tuple[Tensor, ...]]) -> None:
    for name in ("context", *SUMS):
        given, wanted = getattr(one[0], name), getattr(other[0], name)
        assert (given is None) == (wanted is None)
        if given is not None:
            torch.testing.assert_close(given, wanted, rtol=1e-11, atol=1e-12)
    if one[0].argmax is not None:
        assert torch.equal(one[0].argmax, other[0].argmax)
    for given, wanted in zip(one[1], other[1], strict=True):
        torch.testing.assert_close(given, wanted, rtol=1e-10, atol=1e-11)


@runs
@pytest.mark.parametrize(("score", "mask", "normalizer"), CASES)
def test_it_gives_what_plain_operations_give(score: str, mask: str, normalizer: str):
    case = make_case(score, mask, (2, 2), 5, 7, normalizer=normalizer)
    agree(run(case, "fused_triton"), run(case, "plain"))


@runs
@pytest.mark.parametrize("score", ["additive", "dot", "laplacian"])
@pytest.mark.parametrize("mask", ["none", "window & padding"])
def test_strips_and_tiles(score: str, mask: str, monkeypatch: pytest.MonkeyPatch):
    for size in ("STRIP", "LARGE_STRIP"):
        monkeypatch.setattr(fused_plan, size, 0)
    case = make_case(score, mask, (1,), 37, 70, size=3)
    agree(run(case, "fused_triton"), run(case, "plain"))


@runs
@pytest.mark.parametrize("score", ["dot", "additive", "gaussian"])
@pytest.mark.parametrize("shapes", [((2, 1), (1, 3), (2, 3)), ((), (2,), (3, 2)), ((3, 1), (3, 1), (1, 2))])
def test_leading_axes_broadcast(score: str, shapes: tuple[tuple[int, ...], ...]):
    case = make_case(score, "none", (), 3, 4, normalizer="sampled" if score == "dot" else None)
    drawn = (torch.randn(*lead, *part.shape) for lead, part in zip(shapes, case.inputs, strict=True))
    query, key, value = (part.double() for part in drawn)
    case = replace(case, query=query, key=key, value=value)
    agree(run(case, "fused_triton"), run(case, "plain"))


@runs
def test_repeated_rows_are_read_where_they_are():
    case = make_case("additive", "padding", (2, 3), 3, 4)
    repeated = [part[:, :1].expand(2, 3, -1, -1) for part in case.inputs]
    given = run(replace(case, query=repeated[0], key=repeated[1], value=repeated[2]), "fused_triton")
    copies = [part.contiguous() for part in repeated]
    agree(given, run(replace(case, query=copies[0], key=copies[1], value=copies[2]), "plain"))


@runs
@pytest.mark.parametrize("normalizer", ["softmax", "hard", "straight_through", "gumbel_softmax"])
@pytest.mark.parametrize("mask", ["padding", "local-p"])
def test_dropout_is_a_function_of_seed_row_and_key(normalizer: str, mask: str):
    case = make_case("gaussian", mask, (2, 2), 4, 6, normalizer=normalizer)
    torch.manual_seed(5)
    context, grads = run(case, "fused_triton", dropout=0.4)
    torch.manual_seed(5)
    seed = torch.randint(1 << 62, (), device=DEVICE).cpu()
    rows = torch.arange(16).reshape(2, 2, 4)
    kept = ((random_bits(seed, rows, 6) >> 11) & ((1 << 53) - 1)) >= int(0.4 * 2.0**53)
    leaves = [tensor.clone().requires_grad_() for tensor in case.inputs]
    plain = attend(
        *leaves, score=case.score, mask=case.mask, normalizer=case.normalizer, need=("weights",), kernel="plain"
    )
    assert plain.weights is not None
    wanted = (plain.weights * kept / 0.6) @ leaves[2]
    torch.testing.assert_close(context.context, wanted, rtol=1e-11, atol=1e-12)
    slopes = torch.linspace(-1.0, 2.0, wanted.numel(), dtype=torch.float64).reshape(wanted.shape)
    extra = run(case, "plain")[1], run(replace(case, value=case.value * 0.0), "plain")[1]
    found = torch.autograd.grad(wanted, leaves, slopes, allow_unused=True, materialize_grads=True)
    # What the sums beside the context send back does not depend on values, nor on dropout.
    for i in range(3):
        torch.testing.assert_close(grads[i], found[i] + (extra[1][i] if i < 2 else 0.0), rtol=1e-9, atol=1e-10)
    share = 1.0 - float(kept.double().mean())
    assert 0.2 < share < 0.6


@runs
@pytest.mark.parametrize("normalizer", ["softmax", "hard", "sampled", "straight_through", "gumbel_softmax"])
def test_weights_without_gradient(normalizer: str):
    case = make_case("additive", "local-p of another sigma", (2, 2), 4, 6, normalizer=normalizer)
    with torch.no_grad():
        both = [
            attend(
                *case.inputs,
                score=case.score,
                mask=case.mask,
                normalizer=case.normalizer,
                need=("weights",),
                kernel=kernel,
            ).weights
            for kernel in ("fused_triton", "plain")
        ]
    torch.testing.assert_close(both[0], both[1], rtol=1e-11, atol=1e-13)


@runs
def test_draws_follow_the_softmax_and_repeat():
    torch.manual_seed(0)
    query, key = torch.zeros(1, 1000, 1), torch.randn(1, 6, 1)
    value = torch.eye(6)[None]
    torch.manual_seed(1)
    made = Additive(1, 1, 2)
    draws = [
        attend(query, key, value, score=made, normalizer=Sampled(seed), kernel="fused_triton").context[0]
        for seed in (3, 3, 4)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    soft = attend(query[:, :1], key, value, score=made, kernel="plain").context[0, 0]
    deviation = (soft * (1 - soft) / 1000).sqrt()
    assert bool(((draws[0].mean(dim=0) - soft).abs() < 5 * deviation).all())


@runs
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("score", ["additive", "gaussian", "dot"])
def test_narrow_types_are_computed_in_float32(dtype: torch.dtype, score: str):
    case = make_case(score, "padding", (2,), 4, 6, dtype=dtype)
    wide = make_case(score, "padding", (2,), 4, 6)
    query, key, value = (part.double() for part in case.inputs)
    wide = replace(wide, query=query, key=key, value=value)
    for own, other in zip(case.score.parameters(), wide.score.parameters(), strict=True):
        other.data = own.data.double()
    given = attend(*case.inputs, score=case.score, mask=case.mask, kernel="fused_triton").context
    wanted = attend(*wide.inputs, score=wide.score, mask=wide.mask, kernel="plain").context
    assert given.dtype == dtype
    torch.testing.assert_close(given.double(), wanted, rtol=0.0, atol=16 * torch.finfo(dtype).eps)


@runs
def test_twice_the_same_to_the_bit():
    case = make_case("additive", "padding", (3,), 40, 70, dtype=torch.float32)
    first, second = run(case, "fused_triton"), run(case, "fused_triton")
    assert torch.equal(first[0].context, second[0].context)
    assert all(torch.equal(one, other) for one, other in zip(first[1], second[1], strict=True))


@runs
@pytest.mark.parametrize(("num_queries", "num_keys", "value_size"), [(0, 3, 2), (3, 0, 2), (3, 4, 0)])
def test_empty_axes(num_queries: int, num_keys: int, value_size: int):
    query, key = torch.zeros(2, num_queries, 3), torch.zeros(2, num_keys, 3)
    value = torch.ones(2, num_keys, value_size, requires_grad=True)
    attended = attend(query, key, value, score=Dot(3, 3), kernel="fused_triton")
    assert attended.context.shape == (2, num_queries, value_size)
    assert attended.kernel == "fused_triton"
    (grad,) = torch.autograd.grad(attended.context.sum(), value)
    assert grad.shape == value.shape


@runs
def test_no_array_of_all_queries_and_keys(monkeypatch: pytest.MonkeyPatch):
    """With strips of 32 queries nothing that is made holds more numbers than a strip or an operand."""
    for name in ("STRIP", "LARGE_STRIP"):
        monkeypatch.setattr(fused_plan, name, 0)
    sizes: list[int] = []
    real_empty, real_zeros = Tensor.new_empty, Tensor.new_zeros

    def counted(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def made(*given: Any, **more: Any) -> Tensor:
            result = make(*given, **more)
            sizes.append(result.numel())
            return result

        return made

    monkeypatch.setattr(Tensor, "new_empty", counted(real_empty))
    monkeypatch.setattr(Tensor, "new_zeros", counted(real_zeros))
    query, key = torch.randn(1, 160, 2), torch.randn(1, 160, 2)
    value = torch.randn(1, 160, 2, requires_grad=True)
    context = attend(query, key, value, score=Additive(2, 2, 2), mask=local_monotonic(2), kernel="fused_triton").context
    context.sum().backward()
    assert sizes
    assert max(sizes) < 160 * 160


REQUEST = Request(LoweredAdditive, torch.float32, "cuda", 10, 10)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"pairs": GivenScores}, "only additive, dot and distance scores"),
        ({"normalizer": Sparsemax}, "only softmax, and normalizers that choose one key"),
        ({"has_gaussian": True, "need": frozenset({"entropy"})}, "gives no entropy of weights that a Gaussian"),
        ({"wants_gradient": True, "need": frozenset({"weights"})}, "gives weights without gradient only"),
        ({"mode": "compile"}, "Triton kernels cannot be traced (compile)"),
        ({"device": "cpu"}, "only on a CUDA device"),
        ({"dtype": torch.float64}, "only float32, bfloat16 and float16"),
    ],
)
def test_it_says_why_it_refuses(change: dict[str, Any], reason: str | None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(devices, "has_triton", lambda: True)
    given = FusedTriton().supports(REQUEST._replace(**change))
    assert given == reason or (reason and given and given.startswith(reason))


def test_what_auto_passes_over():
    assert FusedTriton().declines_auto(REQUEST) is None
    assert "PyTorch" in str(FusedTriton().declines_auto(REQUEST._replace(pairs=LoweredDot)))
    assert FusedTriton().declines_auto(REQUEST._replace(pairs=LoweredDot, normalizer=NORMALIZERS["hard"])) is None
    assert "interpreter" in str(FusedTriton().declines_auto(REQUEST._replace(device="cpu")))


def test_explain_says_that_it_is_interpreted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    for module in (devices,):
        monkeypatch.setattr(module, "has_triton", lambda: True)
    points = torch.zeros(1, 3, 2)
    choices = explain(points, points, points, score=Gaussian(2, 2), mask=causal() & padding(torch.tensor([2])))
    own = next(choice for choice in choices if choice.kernel == "fused_triton")
    assert own.reason == "runs in Triton's interpreter here: by name only"
    assert "strip" in own.memory
    assert own.standing == "proved in Triton's interpreter, not yet timed on a device"
    assert {choice.kernel for choice in choices if choice.standing} == {"fused_triton", "additive_triton"}
