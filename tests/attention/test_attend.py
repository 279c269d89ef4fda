"""`attend` itself: choice of kernel, refusals, observer, temperature. What it computes: tests/contracts."""

from itertools import product
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.attention.attend import KERNELS, attend, explain, observer
from heedful.attention.kernels.interface import Attended, Request
from heedful.attention.normalizers import Need, Softmax
from heedful.attention.pairs import DotPairs
from heedful.attention.scores import SCORES, Score
from heedful.errors import KernelUnsupported, NeedError, ShapeError
from tests.attention.cases import MASKS, make_case
from tests.contracts.attention import plain


@settings(max_examples=100)
@given(
    score=st.sampled_from(list(SCORES)),
    mask=st.sampled_from(list(MASKS)),
    leading=st.lists(st.integers(1, 3), max_size=3).map(tuple),
    num_queries=st.integers(1, 6),
    num_keys=st.integers(1, 6),
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
        context = attend(case.query, case.key, case.value, score=case.score, mask=case.mask).context
        wanted = plain(case)[0]
    assert context.shape == wanted.shape
    assert float((context - wanted).abs().max()) <= 1e-12


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kernel", ["auto", "eager"])
def test_nothing_to_attend_to_or_nobody_who_attends(kernel: str, mask: str):
    for leading, num_queries, num_keys, value_size in product([(), (0,), (2,)], (0, 2), (0, 2), (0, 2)):
        case = make_case("dot", mask, leading, num_queries, num_keys, value_size=value_size)
        tensors = [tensor.requires_grad_() for tensor in (case.query, case.key, case.value)]
        context = attend(*tensors, score=case.score, mask=case.mask, kernel=kernel).context
        assert context.shape == (*leading, num_queries, value_size)
        assert num_keys > 0 or bool((context == 0.0).all())
        assert all(bool(torch.isfinite(g).all()) for g in torch.autograd.grad(context.sum(), tensors))


def test_the_argmax_of_no_keys_is_refused():
    case = make_case(num_keys=0)
    with pytest.raises(ShapeError, match="no key"):
        attend(case.query, case.key, case.value, score=case.score, need=("argmax",))


def test_auto_takes_sdpa_where_it_is_fast_and_eager_elsewhere():
    case = make_case()
    tensors = (case.query, case.key, case.value)
    assert attend(*tensors, score=case.score).kernel == "sdpa"
    assert attend(*tensors, score=case.score, need=("weights",)).kernel == "eager"
    query, key, value = (tensor.bfloat16() for tensor in tensors)
    assert attend(query.requires_grad_(), key, value, score=case.score).kernel == "eager"
    with torch.no_grad():
        assert attend(query, key, value, score=case.score).kernel == "sdpa"
    additive = make_case("additive")
    assert attend(additive.query, additive.key, additive.value, score=additive.score).kernel == "eager"


def test_a_temperature_that_learns_counts_as_wanting_gradient():
    case = make_case()
    temperature = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    attended = attend(case.query, case.key, case.value, score=case.score, normalizer=Softmax(temperature))
    (gradient,) = torch.autograd.grad(attended.context.sum(), temperature)
    query, key, value = (tensor.bfloat16() for tensor in (case.query, case.key, case.value))
    assert attend(query, key, value, score=case.score, normalizer=Softmax(temperature)).kernel == "eager"
    nudge = 1e-6
    high, low = (
        float(attend(case.query, case.key, case.value, score=case.score, normalizer=Softmax(t)).context.sum())
        for t in (2.0 + nudge, 2.0 - nudge)
    )
    assert float(gradient) == pytest.approx((high - low) / (2 * nudge), rel=1e-6)


@pytest.mark.parametrize(
    ("temperature", "weights"),
    [
        (0.5, [0.015876, 0.117310, 0.866813]),
        (1.0, [0.090031, 0.244728, 0.665241]),
        (2.0, [0.186324, 0.307196, 0.506480]),
    ],
)
@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
def test_temperature(kernel: str, temperature: float, weights: list[float]):
    query, key = torch.ones(1, 1).double(), torch.tensor([[1.0], [2.0], [3.0]]).double()
    softmax, score = Softmax(temperature), SCORES["dot"](1, 1)
    attended = attend(query, key, torch.eye(3).double(), score=score, normalizer=softmax, kernel=kernel)
    assert attended.context[0].tolist() == pytest.approx(weights, abs=5e-7)


def test_additive_scores_take_the_temperature_too():
    case = make_case("additive")
    with torch.no_grad():
        hot = attend(case.query, case.key, case.value, score=case.score, normalizer=Softmax(1e9)).context
    assert float((hot - case.value.mean(dim=-2, keepdim=True)).abs().max()) <= 1e-7


@pytest.mark.parametrize("score", SCORES)
def test_keys_prepared_once_give_the_same(score: str):
    case = make_case(score, "padding")
    prepared = case.score.prepare(case.key)
    one, other = (attend(case.query, key, case.value, score=case.score, mask=case.mask) for key in (case.key, prepared))
    assert torch.equal(one.context, other.context)


def test_a_kernel_named_by_hand_raises_rather_than_falling_back():
    case = make_case()
    with pytest.raises(KernelUnsupported, match="'sdpa' cannot do this: gives the context only"):
        attend(case.query, case.key, case.value, score=case.score, need=("weights",), kernel="sdpa")
    with pytest.raises(KernelUnsupported, match="no kernel 'spda'; did you mean 'sdpa'"):
        attend(case.query, case.key, case.value, score=case.score, kernel="spda")


def test_explain_says_which_kernel_runs_and_why_others_do_not():
    request = Request(DotPairs, Softmax, torch.float32, "cpu", 3, 3, frozenset({"weights"}))
    lines = explain(request)
    assert [name for name, _, _ in lines] == [kernel.name for kernel in KERNELS]
    answers = {name: answer for name, answer, _ in lines}
    assert answers["eager"] == "yes"
    assert "weights" in answers["sdpa"]
    assert all(memory for _, _, memory in lines)


def test_shapes_that_do_not_fit_are_named():
    case = make_case()
    with pytest.raises(ShapeError, match=r"made for query size 4, got query \[2, 3, 3\]"):
        attend(case.query[..., :3], case.key, case.value, score=case.score)
    with pytest.raises(ShapeError, match=r"made for key size 4, got key \[2, 4, 3\]"):
        attend(case.query, case.key[..., :3], case.value, score=case.score)
    with pytest.raises(ShapeError, match="4 keys but 3 values"):
        attend(case.query, case.key, case.value[..., :3, :], score=case.score)


def test_what_a_normalizer_does_not_provide_is_refused():
    case = make_case()
    with pytest.raises(NeedError, match="Softmax cannot provide colour"):
        attend(case.query, case.key, case.value, score=case.score, need=("colour",))  # type: ignore[arg-type]
    assert set(get_args(Need)) >= Softmax.provides


def test_an_observer_sees_the_weights_of_every_call():
    seen: list[tuple[Score, Attended]] = []
    case = make_case()
    token = observer.set(lambda score, attended: seen.append((score, attended)))
    try:
        watched = attend(case.query, case.key, case.value, score=case.score).context
    finally:
        observer.reset(token)
    ((score, attended),) = seen
    assert score is case.score
    assert attended.weights is not None
    assert torch.allclose(attended.weights @ case.value, watched)
    attend(case.query, case.key, case.value, score=case.score)
    assert len(seen) == 1


@pytest.mark.parametrize("score", SCORES)
def test_narrow_types_come_back_as_they_went_in(score: str):
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        case = make_case(score, "padding & causal", dtype=dtype)
        attended = attend(case.query, case.key, case.value, score=case.score, mask=case.mask, need=("weights",))
        assert attended.weights is not None
        assert (attended.context.dtype, attended.weights.dtype) == (dtype, dtype)
        assert bool(torch.isfinite(attended.context).all())
