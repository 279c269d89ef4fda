"""Wrong arguments of `attend`, and numbers at the ends of their range: a clear error or the documented value."""

import math
from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor

from heedful.attention.dispatch import attend, explain
from heedful.attention.interface import Normalizer
from heedful.attention.masks import causal, graph, local_monotonic, local_predictive, padding, window
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES, Additive, Cosine, Dot, General, ScaledDot
from heedful.attention.simplex import Entmax
from heedful.attention.softmax import Softmax
from heedful.attention.stochastic import Hard
from heedful.errors import HeedfulError, ShapeError, UsageError
from tests.attention.cases import MASKS, Case, make_case, make_normalizer
from tests.thorough import sampled, thinned

LENGTHS = torch.tensor([1, 2, 3])


def run(case: Case, **changes: object) -> Tensor:
    settings = {"score": case.score, "mask": case.mask, "normalizer": case.normalizer, **changes}
    return attend(*case.inputs, **settings).context  # type: ignore[arg-type]


def of(query: Tensor, key: Tensor, value: Tensor, score: object = None, **more: object) -> Callable[[], object]:
    return lambda: attend(query, key, value, score=Dot(4, 4) if score is None else score, **more)  # type: ignore[arg-type]


Q, K, V = torch.zeros(2, 3, 4), torch.zeros(2, 5, 4), torch.zeros(2, 5, 6)

SHAPES: dict[str, tuple[Callable[[], object], str]] = {
    "query size": (of(Q[..., :3], K, V), r"made for query size 4, got query \[2, 3, 3\]"),
    "key size": (of(Q, K[..., :3], V), r"made for key size 4, got key \[2, 5, 3\]"),
    "numbers of keys and values": (of(Q, K, V[:, 1:]), r"5 keys but 4 values \(key \[2, 5, 4\], value \[2, 4, 6\]\)"),
    "query without axes": (of(Q[0, 0], K, V), r"expected query of axes \[\*batch, query, size\], got \[4\]"),
    "key without axes": (of(Q, K[0, 0], V), r"expected key of axes \[\*batch, key, size\], got \[4\]"),
    "value without axes": (of(Q, K, V[0, 0]), r"expected value of axes \[\*batch, value, size\], got \[6\]"),
    "batch": (
        of(Q, K[[0, 1, 1]], V),
        r"leading axes do not fit .*query \[2, 3, 4\], key \[3, 5, 4\], value \[2, 5, 6\]",
    ),
    "batch of values": (of(Q, K, V[[0, 1, 1]]), r"leading axes do not fit .*value \[3, 5, 6\]"),
    "lengths": (of(Q, K, V, mask=padding(LENGTHS)), r"leading axes \[3\] do not fit those of the scores \[2\]"),
    "lengths of a batch of one": (of(Q[:1], K[:1], V[:1], mask=padding(LENGTHS)), r"\[3\] do not fit .* \[1\]"),
    "lengths of too many axes": (
        of(Q, K, V, mask=padding(torch.zeros(2, 2, dtype=torch.int64))),
        "2 leading axes, but the scores have only 1",
    ),
    "graph": (
        of(Q, K, V, mask=graph(torch.ones(3, 4, dtype=torch.bool))),
        r"mask: table of 3 queries and 4 keys, but there are 3 queries and 5 keys",
    ),
    "graph of another batch": (
        of(Q, K, V, mask=graph(torch.ones(3, 3, 5, dtype=torch.bool))),
        r"\[3\] do not fit those of the scores \[2\]",
    ),
    "centres": (of(Q, K, V, mask=local_predictive(torch.zeros(2, 2), 1)), r"centres \[2, 2\], but 3 queries"),
    "score function": (
        of(Q, K, V, score=lambda query, key: query.sum(dim=-1)),
        r"score function gave \[2, 3\], expected \[2, 3, 5\]",
    ),
    "table of other keys": (
        of(Q, K, V, mask=torch.ones(3, 4).bool()),
        "mask: table of 3 queries and 4 keys, but there are 3 queries and 5 keys",
    ),
    "table of more axes": (of(Q, K, V, mask=torch.ones(1, 1, 3, 5).bool()), r"table \[1, 1, 3, 5\] has more axes"),
    "argmax of nothing": (of(Q, K[:, :0], V[:, :0], need=["argmax"]), r"no key .*key \[2, 0, 4\], value \[2, 0, 6\]"),
    "temperature": (lambda: Softmax(torch.ones(2, 1, 1)), r"temperature must be one number.* got \[2, 1, 1\]"),
    "alpha of queries": (lambda: Entmax(torch.ones(3, 1)), r"expected alpha of shape \[\].* got \[3, 1\]"),
    "dot sizes": (lambda: Dot(3, 4), r"query size 3 and key size 4 differ; use General"),
    "distance sizes": (lambda: SCORES["gaussian"](3, 4), "query size 3 and key size 4 differ"),
    "centre without axes": (lambda: local_predictive(torch.tensor(1.0), 2), r"centres \[\*leading, 1 or query\]"),
    "sigma with axes": (lambda: local_predictive(torch.zeros(1), 2, torch.ones(1)), r"shape \[\], got \[1\]"),
}


@pytest.mark.parametrize("mistake", SHAPES)
@pytest.mark.wrong_shapes
def test_sizes_that_do_not_fit_are_named(mistake: str):
    make, message = SHAPES[mistake]
    with pytest.raises(ShapeError, match=message):
        make()


ORDINARY = "query, key and value must be of one floating-point type "
USAGE: dict[str, tuple[Callable[[], object], str]] = {
    "whole numbers": (of(Q.long(), K.long(), V.long()), ORDINARY + r"\(query int64 \[2, 3, 4\], key int64"),
    "whole keys of a projection": (of(Q.long(), K.long(), V.long(), General(4, 4)), ORDINARY + r"\(query int64"),
    "bools": (of(Q.bool(), K.bool(), V.bool()), ORDINARY + r"\(query bool"),
    "two types": (of(Q.double(), K, V), ORDINARY + r"\(query float64 .*, key float32"),
    "values of another type": (of(Q, K, V.half()), ORDINARY + r".*, value float16"),
    "parameters of another type": (
        of(Q.double(), K.double(), V.double(), Additive(4, 4)),
        "the score has float32 parameters, but query and key are float64",
    ),
    "whole scores": (of(Q, K, V, score=lambda query, key: (query @ key.mT).long()), "score function gave int64"),
    "dropout of one": (of(Q, K, V, dropout=1.0), r"dropout must be in \[0, 1\), got 1.0"),
    "negative dropout": (of(Q, K, V, dropout=-0.1), "got -0.1"),
    "dropout that is no number": (of(Q, K, V, dropout=math.nan), "got nan"),
    "negative window": (lambda: window(1, -1), "window: right must be an integer of at least 0, got -1"),
    "half a window": (lambda: window(0.5, 1), "window: left must be an integer"),  # type: ignore[arg-type]
    "negative local-m": (lambda: local_monotonic(-1), "local-m: half_width must be an integer"),
    "negative local-p": (lambda: local_predictive(torch.zeros(1), -1), "local-p: half_width must be an integer"),
    "sigma of nothing": (lambda: local_predictive(torch.zeros(1), 0), "sigma 0.0 is not above 0"),
    "negative sigma": (lambda: local_predictive(torch.zeros(1), 1, -1.0), "sigma -1.0 is not above 0"),
    "sigma as a tensor": (lambda: local_predictive(torch.zeros(1), 1, torch.tensor(0.0)), "sigma 0.0 is not above 0"),
    "local-p over what": (
        lambda: local_predictive(torch.zeros(1), 1, over="sentence"),  # type: ignore[arg-type]
        "over must be 'window', 'source' or 'cut', got 'sentence'",
    ),
    "lengths of floats": (lambda: padding(torch.zeros(2)), r"must be integers, got float32 \[2\]"),
    "lengths of bools": (lambda: padding(torch.ones(2, dtype=torch.bool)), r"must be integers, got bool \[2\]"),
    "lengths of local-m": (lambda: local_monotonic(1, lengths=torch.zeros(2)), "must be integers"),
    "graph of numbers": (lambda: graph(torch.ones(2, 2)), r"expected a boolean table .*, got float32 \[2, 2\]"),
    "class of a score": (
        of(Q, K, V, score=Dot),
        r"score is the class Dot; pass an instance: Dot\(query_size, key_size\)",
    ),
    "class of a normalizer": (of(Q, K, V, normalizer=Softmax), r"normalizer is the class Softmax; .* Softmax\(\)"),
    "mask that was not called": (of(Q, K, V, mask=causal), r"mask is causal, not a mask; call it: causal\(\.\.\.\)"),
    "mask of no kind": (of(Q, K, V, mask=3), "mask is int, not a mask; pass one of masks"),
    "mask of numbers": (of(Q, K, V, mask=torch.zeros(3, 5)), r"table of bools.*got float32 \[3, 5\]"),
    "bandwidth": (lambda: SCORES["gaussian"](3, 3, bandwidth=0.0), "bandwidth must be above 0"),  # type: ignore[call-arg]
}


@pytest.mark.parametrize("mistake", USAGE)
@pytest.mark.wrong_shapes
def test_other_mistakes_are_named(mistake: str):
    make, message = USAGE[mistake]
    with pytest.raises(UsageError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_explain_refuses_the_same():
    with pytest.raises(ShapeError, match="made for query size"):
        explain(Q[..., :3], K, V, score=Dot(4, 4))


@pytest.mark.parametrize(
    "temperature", [0.0, -1.0, math.nan, torch.tensor(0.0), torch.tensor(-2.0), torch.tensor(math.nan)]
)
def test_a_temperature_that_is_not_above_zero_is_refused(temperature: Tensor | float):
    kinds = [kind for kind in NORMALIZERS.values() if "temperature" in vars(kind).get("__annotations__", {})]
    assert len(kinds) >= 5
    for kind in kinds:
        with pytest.raises(UsageError, match=r"temperature .* is not above 0"):
            kind(temperature=temperature)  # type: ignore[call-arg]


def test_errors_of_the_users_own_function_come_through():
    def function(query: Tensor, key: Tensor) -> Tensor:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        attend(Q, K, V, score=function)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_no_keys_and_no_queries(normalizer: str):
    made = make_normalizer(normalizer)
    for num_queries, num_keys in ((2, 0), (0, 2), (0, 0)):
        case = make_case("dot", "none", (2,), num_queries, num_keys)
        if made.why_not(num_queries, num_keys):
            with pytest.raises(ShapeError, match="tree"):
                run(case, normalizer=made)
        else:
            context = run(case, normalizer=made)
            assert context.shape == (2, num_queries, 3)
            assert not context.any()


@pytest.mark.parametrize("score", SCORES)
def test_lengths_beyond_both_ends_are_all_keys_and_none(score: str):
    case = make_case(score, "none", (3,), 2, 4)
    with torch.no_grad():
        context = run(case, mask=padding(torch.tensor([-3, 99, 2])))
        assert not context[0].any()
        torch.testing.assert_close(context[1], run(case)[1], rtol=0, atol=1e-12)


@sampled(3)
@pytest.mark.parametrize("dtype", thinned([torch.bfloat16, torch.float64, torch.float32, torch.float16], 4))
@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("score", SCORES)
def test_huge_and_tiny_inputs_never_give_nan(score: str, normalizer: str, dtype: torch.dtype):
    # The largest dot products are still numbers of the type.
    size = {torch.float64: 1e150, torch.float32: 1e18, torch.bfloat16: 1e18, torch.float16: 100.0}[dtype]
    for scale, mask in product((size, 1.0 / size, 0.0), ("none", "padding", "local-p over the source & padding")):
        case = make_case(score, mask, (3,), 3, 4, dtype=dtype, lengths=[4, 0, 2])
        tensors = [(tensor * scale).requires_grad_() for tensor in (case.query, case.key)]
        made = Hard() if normalizer == "hard" else NORMALIZERS[normalizer]()
        context = attend(*tensors, case.value, score=case.score, mask=case.mask, normalizer=made).context
        assert bool(torch.isfinite(context).all())
        assert float(context.detach().abs().max()) <= float(case.value.abs().max()) * (
            4.1 if made.weights_lie_in == "box" else 1.1
        )
        if context.requires_grad:
            gradients = torch.autograd.grad(context.sum(), tensors, allow_unused=True, materialize_grads=True)
            assert not any(bool(gradient.isnan().any()) for gradient in gradients)


def test_scores_beyond_float16_count_as_its_largest_number():
    query, key = torch.full((1, 64), 100.0).half(), torch.full((3, 64), 100.0).half()
    key[1] = -100.0
    for kernel in ("plain", "sdpa"):
        context = attend(query, key, torch.eye(3).half(), score=Dot(64, 64), kernel=kernel).context
        assert context[0].tolist() == [0.5, 0.0, 0.5]


def test_vectors_of_zeros_have_a_cosine_in_every_type():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        query, key = torch.ones(1, 4, dtype=dtype), torch.zeros(2, 4, dtype=dtype, requires_grad=True)
        attended = attend(query, key, torch.eye(2, dtype=dtype), score=Cosine(4, 4))
        assert attended.context.tolist() == [[0.5, 0.5]]
        (gradient,) = torch.autograd.grad(attended.context[0, 0], key)
        assert float(gradient.abs().max()) <= 1.0


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_infinite_scores_of_a_function_count_as_the_largest_numbers(normalizer: str):
    made = make_normalizer(normalizer)
    table = torch.tensor([[0.5, math.inf, 1.0], [0.5, -math.inf, 1.0], [-math.inf] * 3]).double()
    key = torch.zeros(3, 1, dtype=torch.float64, requires_grad=True)

    def function(query: Tensor, key: Tensor) -> Tensor:
        return table[query[:, 0].long()] + 0.0 * key.mT

    query, value = torch.arange(3.0).double()[:, None], torch.eye(3).double()
    weights = attend(query, key, value, score=function, normalizer=made).context
    assert bool(torch.isfinite(weights).all())
    if made.scope == "row" and made.is_shift_invariant:
        assert weights[0].tolist() == [0.0, 1.0, 0.0]
        assert weights[1, 1].tolist() == 0.0
        assert weights[2].sum().tolist() == pytest.approx(1.0)
    if weights.requires_grad:
        (gradient,) = torch.autograd.grad(weights.square().sum(), key)
        assert not bool(gradient.isnan().any())


def test_a_temperature_learns_beside_infinite_scores():
    temperature = torch.tensor(2.0, requires_grad=True)

    def function(query: Tensor, key: Tensor) -> Tensor:
        return torch.tensor([[0.5, -math.inf, 1.0]])

    weights = attend(
        torch.zeros(1, 1), torch.zeros(3, 1), torch.eye(3), score=function, normalizer=Softmax(temperature)
    ).context
    (gradient,) = torch.autograd.grad(weights[0, 0], temperature)
    assert bool(torch.isfinite(gradient))


@pytest.mark.parametrize("score", [name for name, kind in SCORES.items() if hasattr(kind, "profile")])
def test_distances_beyond_the_type_have_finite_scores_and_gradients(score: str):
    query, key = torch.zeros(1, 2), torch.tensor([[1e25, 0.0], [0.0, 3e25]], requires_grad=True)
    value = torch.eye(2, requires_grad=True)
    made = SCORES[score](2, 2, bandwidth=1e-3, has_learned_bandwidth=True)  # type: ignore[call-arg]
    for choice in explain(query, key, value, score=made):
        if not choice.reason:
            context = attend(query, key, value, score=made, kernel=choice.kernel).context
            assert bool(torch.isfinite(context).all())
            leaves = [key, value, *made.parameters()]
            gradients = torch.autograd.grad(context.sum(), leaves, allow_unused=True, materialize_grads=True)
            assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients)


@pytest.mark.parametrize("mask", MASKS)
def test_where_a_normalizer_has_no_gradient_the_values_still_have_theirs(mask: str):
    case = make_case("dot", mask, normalizer="hard")
    tensors = [tensor.requires_grad_() for tensor in case.inputs]
    context = run(case)
    query, key, value = torch.autograd.grad(context.sum(), tensors, allow_unused=True)
    assert query is None
    assert key is None
    assert value is not None
    with torch.no_grad():
        alone = attend(case.query.clone(), case.key, case.value, score=ScaledDot(4, 4), normalizer=Hard()).context
    assert not alone.requires_grad


@pytest.mark.wrong_shapes
def test_every_mistake_here_is_one_of_ours():
    for make, _ in (*SHAPES.values(), *USAGE.values()):
        with pytest.raises(HeedfulError):
            make()


@pytest.mark.parametrize("score", SCORES)
def test_expanded_and_read_only_layouts(score: str):
    # Values that lie on top of each other in memory, as `expand` makes them, and one key for all.
    case = make_case(score, "padding", (2,), 3, 4)
    query, key, value = (tensor[..., :1, :].expand_as(tensor) for tensor in case.inputs)
    normalizer: Normalizer = Softmax()
    given = attend(query, key, value, score=case.score, mask=case.mask, normalizer=normalizer).context
    wanted = attend(*(t.contiguous() for t in (query, key, value)), score=case.score, mask=case.mask).context
    torch.testing.assert_close(given, wanted, rtol=0, atol=1e-13)
