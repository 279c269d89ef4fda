"""`attend` itself: choice of kernel, explain, observer, temperature. What it computes: tests/contracts."""

from itertools import product
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from heedful.attention.dispatch import KERNELS, Choice, attend, explain, observer
from heedful.attention.interface import Attended, Need, Normalizer, Score
from heedful.attention.kernels.interface import Request
from heedful.attention.kernels.sdpa import ScaledDotProduct
from heedful.attention.masks import local_predictive, padding, window
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES, Dot, Location
from heedful.attention.softmax import Softmax
from heedful.attention.stochastic import Sampled
from heedful.errors import KernelUnsupported, NeedError
from tests.attention.cases import MASKS, Case, make_case
from tests.contracts.attention import distance
from tests.contracts.errors import plain
from tests.thorough import sampled, thinned


def run(case: Case, kernel: str = "auto") -> Attended:
    return attend(
        *case.inputs, score=case.score, mask=case.mask, normalizer=case.normalizer, need=case.need, kernel=kernel
    )


def reasons(case: Case, **changes: object) -> dict[str, str]:
    settings = {"score": case.score, "mask": case.mask, "normalizer": case.normalizer, **changes}
    return {choice.kernel: choice.reason for choice in explain(*case.inputs, **settings)}  # type: ignore[arg-type]


@settings(max_examples=100)
@given(
    score=st.sampled_from(list(SCORES)),
    mask=st.sampled_from(list(MASKS)),
    leading=st.lists(st.integers(1, 3), max_size=3).map(tuple),
    num_queries=st.integers(1, 6),
    num_keys=st.integers(1, 40),
    size=st.integers(1, 5),
    value_size=st.integers(1, 4),
    seed=st.integers(0, 1 << 30),
)
def test_any_shape_gives_the_plain_formula(
    score: str,
    mask: str,
    leading: tuple[int, ...],
    num_queries: int,
    num_keys: int,
    size: int,
    value_size: int,
    seed: int,
):
    case = make_case(score, mask, leading, num_queries, num_keys, size, value_size, seed)
    with torch.no_grad():
        context, wanted = run(case).context, plain(case)[0]
    assert context.shape == wanted.shape
    assert distance(context, wanted) <= 1e-12


@sampled(3)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("score", ["dot", "additive", "gaussian"])
def test_nothing_to_attend_to_or_nobody_who_attends(score: str, mask: str):
    for leading, num_queries, num_keys, value_size in product([(), (0,), (2,)], (0, 2), (0, 2), (0, 2)):
        case = make_case(score, mask, leading, num_queries, num_keys, value_size=value_size)
        tensors = [tensor.requires_grad_() for tensor in case.inputs]
        for kernel in [name for name, reason in reasons(case).items() if not reason]:
            context = run(case, kernel).context
            assert context.shape == (*leading, num_queries, value_size)
            assert num_keys > 0 or bool((context == 0.0).all())
            gradients = torch.autograd.grad(context.sum(), tensors, allow_unused=True, materialize_grads=True)
            assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients)


def test_auto_takes_the_first_that_supports():
    few = make_case()
    assert run(few).kernel == "step_cpu"
    assert attend(*few.inputs, score=few.score, need=("weights",)).kernel == "step_cpu"
    case = make_case(num_queries=120, num_keys=120)
    assert run(case).kernel == "sdpa"
    assert attend(*case.inputs, score=case.score, need=("weights",)).kernel == "plain"
    query, key, value = (tensor.bfloat16() for tensor in case.inputs)
    assert attend(query.requires_grad_(), key, value, score=case.score).kernel == "plain"
    with torch.no_grad():
        assert attend(query, key, value, score=case.score).kernel == "sdpa"
    narrow = make_case(mask="window", num_queries=120, num_keys=160)
    assert run(narrow).kernel == "window"
    assert attend(*narrow.inputs, score=narrow.score, mask=narrow.mask, need=("weights",)).kernel == "plain"


def test_a_kernel_is_chosen_once_for_the_same_facts(monkeypatch: pytest.MonkeyPatch):
    asked: list[Request] = []
    known = ScaledDotProduct.supports
    monkeypatch.setattr(
        ScaledDotProduct, "supports", lambda self, request: (asked.append(request), known(self, request))[1]
    )
    case = make_case(num_queries=120, num_keys=137)
    for _ in range(3):
        assert run(case).kernel == "sdpa"
    assert len(asked) == 1
    assert attend(*case.inputs, score=case.score, need=("weights",)).kernel == "plain"
    assert len(asked) == 2


@pytest.mark.parametrize("score", thinned(SCORES, 2))
def test_attend_takes_what_explain_says(score: str):
    for mask, normalizer in product(MASKS, NORMALIZERS):
        case = make_case(score, mask, (1,), 2, 3, normalizer=normalizer)
        with torch.no_grad():
            assert run(case).kernel == next(name for name, reason in reasons(case).items() if not reason)


def test_explain_gives_every_kernel_a_reason_or_none_and_its_memory():
    case = make_case()
    choices = explain(*case.inputs, score=case.score, need=["weights"])
    assert [choice.kernel for choice in choices] == [kernel.name for kernel in KERNELS]
    assert all(choice.memory for choice in choices)
    answers = {choice.kernel: choice.reason for choice in choices}
    assert answers["plain"] == ""
    assert answers["sdpa"] == "gives the context only, not weights"
    assert choices[-1] == Choice("plain", "", KERNELS[-1].memory)


def test_explain_draws_no_numbers_and_computes_nothing():
    case = make_case(normalizer="sampled")
    before = torch.get_rng_state()

    def function(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        raise AssertionError("called")

    explain(*case.inputs, score=function, normalizer=Sampled())
    assert torch.equal(torch.get_rng_state(), before)


def test_a_kernel_named_by_hand_raises_rather_than_falling_back():
    case = make_case()
    with pytest.raises(KernelUnsupported, match="'sdpa' cannot run this call: gives the context only"):
        attend(*case.inputs, score=case.score, need=("weights",), kernel="sdpa")
    with pytest.raises(KernelUnsupported, match="no kernel 'spda'; did you mean 'sdpa'"):
        attend(*case.inputs, score=case.score, kernel="spda")


def test_what_a_normalizer_does_not_provide_is_refused():
    case = make_case()
    for normalizer in NORMALIZERS:
        for need in set(get_args(Need)) - NORMALIZERS[normalizer].provides:
            with pytest.raises(NeedError, match=f"cannot provide {need}"):
                attend(*case.inputs, score=case.score, normalizer=NORMALIZERS[normalizer](), need=[need])


def test_a_temperature_that_learns_counts_as_wanting_gradient():
    case = make_case()
    temperature = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    attended = attend(*case.inputs, score=case.score, normalizer=Softmax(temperature))
    (gradient,) = torch.autograd.grad(attended.context.sum(), temperature)
    query, key, value = (tensor.bfloat16() for tensor in case.inputs)
    assert attend(query, key, value, score=case.score, normalizer=Softmax(temperature)).kernel == "plain"
    nudge = 1e-6
    high, low = (
        float(attend(*case.inputs, score=case.score, normalizer=Softmax(t)).context.sum())
        for t in (2.0 + nudge, 2.0 - nudge)
    )
    assert float(gradient) == pytest.approx((high - low) / (2 * nudge), rel=1e-6)


def test_a_centre_that_learns_counts_as_wanting_gradient():
    case = make_case()
    query, key, value = (tensor.bfloat16() for tensor in case.inputs)
    centre = torch.tensor([1.3], requires_grad=True)
    context = attend(query, key, value, score=Dot(4, 4), mask=local_predictive(centre, 2)).context
    assert float(torch.autograd.grad(context.float().sum(), centre)[0].abs()) > 0.0


@pytest.mark.parametrize(
    ("temperature", "weights"),
    [
        (0.5, [0.015876, 0.117310, 0.866813]),
        (1.0, [0.090031, 0.244728, 0.665241]),
        (2.0, [0.186324, 0.307196, 0.506480]),
    ],
)
@pytest.mark.parametrize("kernel", ["plain", "sdpa"])
def test_temperature(kernel: str, temperature: float, weights: list[float]):
    query, key = torch.ones(1, 1).double(), torch.tensor([[1.0], [2.0], [3.0]]).double()
    softmax, score = Softmax(temperature), SCORES["dot"](1, 1)
    attended = attend(query, key, torch.eye(3).double(), score=score, normalizer=softmax, kernel=kernel)
    assert attended.context[0].tolist() == pytest.approx(weights, abs=5e-7)


@pytest.mark.parametrize("score", ["additive", "gaussian", "general"])
def test_scores_of_every_kind_take_the_temperature(score: str):
    case = make_case(score)
    with torch.no_grad():
        hot = attend(*case.inputs, score=case.score, normalizer=Softmax(1e9)).context
    assert distance(hot, case.value.mean(dim=-2, keepdim=True).expand_as(hot)) <= 1e-7


@pytest.mark.parametrize("score", SCORES)
def test_keys_prepared_once_give_the_same(score: str):
    case = make_case(score, "padding")
    prepared = case.score.prepare(case.key)
    one, other = (attend(case.query, key, case.value, score=case.score, mask=case.mask) for key in (case.key, prepared))
    assert torch.equal(one.context, other.context)


@pytest.mark.parametrize("score", SCORES)
def test_sources_selected_from_prepared_keys_give_the_same(score: str):
    case, rows = make_case(score, leading=(3,)), torch.tensor([2, 0])
    prepared = case.score.prepare(case.key).select(rows)
    with torch.no_grad():
        some = attend(case.query[rows], prepared, case.value[rows], score=case.score).context
        assert distance(some, run(case).context[rows]) <= 1e-14


def test_a_function_is_a_score():
    case = make_case()
    bilinear = nn.Linear(4, 4, bias=False).double()
    given = attend(*case.inputs, score=lambda query, key: bilinear(query) @ key.mT).context
    wanted = attend(bilinear(case.query), *case.inputs[1:], score=Dot(4, 4)).context
    assert distance(given, wanted) <= 1e-14
    cold = attend(*case.inputs, score=lambda query, key: query @ key.mT, normalizer=Softmax(0.5)).context
    assert distance(cold, attend(2.0 * case.query, *case.inputs[1:], score=Dot(4, 4)).context) <= 1e-14


def test_keys_beyond_the_reach_of_a_score_are_not_attended():
    score, query, values = Location(2, 2, 3).double(), torch.randn(1, 2).double(), torch.eye(5).double()
    key = torch.randn(5, 2).double()
    for mask in (None, padding(torch.tensor(4)), window(4, 0)):
        weights = attend(query, key, values, score=score, mask=mask).context[0]
        assert weights[3:].tolist() == [0.0, 0.0]
        assert float(weights.sum().detach()) == pytest.approx(1.0)


def test_an_observer_sees_the_weights_of_every_call():
    seen: list[tuple[Score, Attended]] = []
    case = make_case()
    token = observer.set(lambda score, attended: seen.append((score, attended)))
    try:
        watched = run(case).context
    finally:
        observer.reset(token)
    ((score, attended),) = seen
    assert score is case.score
    assert attended.weights is not None
    assert torch.allclose(attended.weights @ case.value, watched)
    run(case)
    assert len(seen) == 1


@pytest.mark.parametrize("score", SCORES)
def test_narrow_types_come_back_as_they_went_in(score: str):
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        case = make_case(score, "padding & causal", dtype=dtype)
        attended = attend(*case.inputs, score=case.score, mask=case.mask, need=("weights",))
        assert attended.weights is not None
        assert (attended.context.dtype, attended.weights.dtype) == (dtype, dtype)
        assert bool(torch.isfinite(attended.context).all())


@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("score", ["dot", "additive", "gaussian"])
def test_autocast(score: str, normalizer: str):
    case = make_case(score, "padding", dtype=torch.float32, normalizer=normalizer)
    made: Normalizer = case.normalizer
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        context = attend(*case.inputs, score=case.score, mask=case.mask, normalizer=made).context
    assert bool(torch.isfinite(context).all())
    assert context.dtype == torch.bfloat16


def test_one_need_may_be_given_by_its_name():
    case = make_case("dot", "none", (), 2, 3)
    inputs = case.inputs
    assert attend(*inputs, score=case.score, need="weights").weights is not None
    assert {choice.reason for choice in explain(*inputs, score=case.score, need="weights")} >= {
        "gives the context only, not weights"
    }


def test_an_unknown_need_is_refused_with_the_nearest_name():
    case = make_case("dot", "none", (), 2, 3)
    with pytest.raises(NeedError, match=r"need 'weight' is unknown; did you mean 'weights'"):
        attend(*case.inputs, score=case.score, need=["weight"])  # type: ignore[list-item]
