"""Attention by few queries, held to the formula in float64."""

import pytest
import torch
from torch import Tensor

pytest.importorskip("numba")

from heedful.attention import attend
from heedful.attention.interface import PreparedKey
from heedful.attention.kernels.step import cpu_ops
from heedful.attention.kernels.step.cpu_ops import few_queries
from heedful.attention.lowered import LoweredAdditive, LoweredDot
from heedful.attention.mask_bounds import MaskBounds
from heedful.attention.masks import padding, window
from heedful.attention.scores import Additive, Dot

FORMS = ["dot", "additive"]
SHAPES = [(1, 1, 4, 3), (5, 1, 15, 32), (3, 4, 7, 19), (2, 6, 1, 8)]


def lowered(form: str, query: Tensor, key: Tensor, vector: Tensor) -> LoweredDot | LoweredAdditive:
    return LoweredDot(query, key, 0.3) if form == "dot" else LoweredAdditive(query, key, vector)


def formula(pairs: LoweredDot | LoweredAdditive, value: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor]:
    if isinstance(pairs, LoweredDot):
        scores = pairs.query @ pairs.key.mT * pairs.scale
    else:
        scores = torch.tanh(pairs.query[..., :, None, :] + pairs.key[..., None, :, :]) @ pairs.vector
    if allowed is None:
        weights = scores.softmax(-1)
    else:
        empty = ~allowed.any(-1, keepdim=True)
        weights = scores.masked_fill(~(allowed | empty), -torch.inf).softmax(-1).masked_fill(empty, 0.0)
    return weights @ value, weights


def present(weights: Tensor | None) -> Tensor:
    assert weights is not None
    return weights


def drawn(shape: tuple[int, int, int, int], leading: tuple[int, ...] | None = None) -> list[Tensor]:
    torch.manual_seed(0)
    batch, queries, keys, size = shape
    lead = (batch,) if leading is None else leading
    sizes = (*lead, queries, size), (*lead, keys, size), (*lead, keys, size + 1), (size,)
    return [torch.randn(each) for each in sizes]


def interval(shape: tuple[int, int, int, int]) -> tuple[MaskBounds, Tensor]:
    """Padding by several lengths, 0 among them, and a first key; and the same as a table."""
    batch, queries, keys, _ = shape
    start = torch.arange(queries).expand(batch, queries) % keys
    stop = (torch.arange(batch)[:, None] * 3) % (keys + 1) + torch.zeros(queries, dtype=torch.int64)
    places = torch.arange(keys)
    return MaskBounds(start, stop), (places >= start[..., None]) & (places < stop[..., None])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_masked", [False, True])
def test_results_and_gradients_are_those_of_the_formula(form: str, shape: tuple[int, int, int, int], is_masked: bool):
    inputs = [each.requires_grad_() for each in drawn(shape)]
    exact = [each.detach().double().requires_grad_() for each in inputs]
    rows, allowed = interval(shape) if is_masked else (None, None)
    query, key, value, vector = inputs
    ours = few_queries(lowered(form, query, key, vector), value, rows)
    theirs = formula(lowered(form, exact[0], exact[1], exact[3]), exact[2], allowed)
    slopes = [torch.randn_like(each) for each in ours]
    used = 3 if form == "dot" else 4
    grads = torch.autograd.grad(ours, inputs[:used], slopes)
    wanted = torch.autograd.grad(theirs, exact[:used], [each.double() for each in slopes])
    for one, other in zip((*ours, *grads), (*theirs, *wanted), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("form", FORMS)
def test_one_gradient_alone_is_enough(form: str):
    query, key, value, vector = drawn((3, 2, 5, 8))
    value.requires_grad_()
    context, weights = few_queries(lowered(form, query, key, vector), value, None)
    (grad,) = torch.autograd.grad(context.sum(), value)
    torch.testing.assert_close(grad, weights.detach().sum(1)[..., None].expand_as(value))
    key.requires_grad_()
    only_weights = few_queries(lowered(form, query, key, vector), value, None).weights
    assert torch.autograd.grad(only_weights[..., 0].sum(), key)[0].abs().sum() > 0


def test_memory_of_a_parameter_is_not_shared():
    """PyTorch cannot resize memory that it shares with NumPy, and a sharded training frees its parameters so."""
    query, key, value, _ = drawn((2, 1, 4, 8))
    vector = torch.nn.Parameter(torch.randn(8))
    few_queries(LoweredAdditive(query, key, vector), value, None).context.sum().backward()
    assert vector.grad is not None
    assert vector.untyped_storage().resizable()


@pytest.mark.parametrize("form", FORMS)
def test_gradients_can_be_differentiated(form: str):
    inputs = [each.requires_grad_() for each in drawn((2, 1, 4, 3))]
    query, key, value, vector = inputs
    rows, allowed = interval((2, 1, 4, 3))
    used = 3 if form == "dot" else 4

    def curvature(results: tuple[Tensor, Tensor]) -> list[Tensor]:
        grads = torch.autograd.grad(results[0].square().sum(), inputs[:used], create_graph=True)
        return list(torch.autograd.grad(torch.stack([each.square().sum() for each in grads]).sum(), inputs[:used]))

    ours = curvature(few_queries(lowered(form, query, key, vector), value, rows))
    theirs = curvature(formula(lowered(form, query, key, vector), value, allowed))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_hidden_numbers_reach_nothing(form: str):
    shape = 4, 3, 6, 8
    rows, allowed = interval(shape)
    clean = drawn(shape)
    results: list[list[Tensor]] = []
    for number in (torch.nan, torch.inf, -torch.inf, 0.0):
        query, key, value, vector = (each.clone() for each in clean)
        hidden = ~allowed.any(1)
        assert hidden.any()
        key[hidden], value[hidden] = number, number
        learned = [each.requires_grad_() for each in (query, key, value, vector)]
        found = few_queries(lowered(form, query, key, vector), value, rows)
        grads = torch.autograd.grad(found.context.sum(), learned[: 3 if form == "dot" else 4])
        results.append([*found, *grads])
    for each in results[:-1]:
        assert all(torch.equal(one, other) for one, other in zip(each, results[-1], strict=True))


def test_numbers_that_are_seen_are_not_lost():
    query, key, value, _ = drawn((1, 2, 4, 3))
    key[0, 1] = torch.nan
    context, weights = few_queries(LoweredDot(query, key), value, MaskBounds(None, torch.tensor([[1, 4]])))
    assert context[0, 0].isfinite().all()
    assert weights[0, 0].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert context[0, 1].isnan().all()


@pytest.mark.parametrize("form", FORMS)
def test_leading_axes_are_repeated_without_being_written(form: str):
    query, key, value, vector = drawn((1, 2, 5, 8), leading=(2, 1, 3))
    inputs = [query, key[:1, :, :1].clone(), value[:, :, :1].clone(), vector]
    for each in inputs:
        each.requires_grad_()
    rows = MaskBounds(None, torch.tensor([[4], [2]]))
    found = few_queries(lowered(form, inputs[0], inputs[1], vector), inputs[2], rows)
    allowed = torch.arange(5) < torch.tensor([4, 2])[:, None, None, None, None]
    wanted = formula(lowered(form, inputs[0], inputs[1], vector), inputs[2], allowed)
    assert found.context.shape == (2, 1, 3, 2, 9)
    torch.testing.assert_close(tuple(found), wanted)
    grads = [torch.autograd.grad(each[0].square().sum(), inputs[:3]) for each in (found, wanted)]
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_values_may_have_more_leading_axes_than_scores(form: str):
    query, key, _, vector = drawn((2, 3, 4, 5))
    value = torch.randn(3, 2, 4, 6)
    rows = MaskBounds(None, torch.tensor([[4], [2]]))
    found = few_queries(lowered(form, query, key, vector), value, rows)
    wanted = formula(lowered(form, query, key, vector), value, torch.arange(4) < rows.stop[:, None])
    torch.testing.assert_close(tuple(found), wanted)
    alone = few_queries(lowered(form, query[:1], key[:1], vector), value, rows.of_queries(slice(1)))
    assert alone.weights.shape == (1, 3, 4)
    assert alone.context.shape == (3, 2, 3, 6)


@pytest.mark.parametrize("form", FORMS)
def test_no_bit_depends_on_threads_or_other_rows(form: str, monkeypatch: pytest.MonkeyPatch):
    inputs = [each.requires_grad_() for each in drawn((7, 2, 9, 16))]

    def results(rows: slice = slice(None)) -> list[Tensor]:
        query, key, value = (each[rows] for each in inputs[:3])
        found = few_queries(lowered(form, query, key, inputs[3]), value, None)
        grads = torch.autograd.grad(found.context.square().sum(), inputs[: 3 if form == "dot" else 4])
        return [*found, *(grad[rows] if grad.dim() == 3 else grad for grad in grads)]

    alone = results()
    parts: list[int] = []
    monkeypatch.setattr(cpu_ops, "_INLINE", 0)
    monkeypatch.setattr(cpu_ops, "num_threads", lambda: 2)
    monkeypatch.setattr(cpu_ops, "run_parts", lambda works: parts.append(len(works)) or [work() for work in works])
    assert all(torch.equal(one, other) for one, other in zip(alone, results(), strict=True))
    assert parts == [7, 7]
    few = results(slice(2, 4))
    assert all(
        torch.equal(one[2:4] if one.dim() == 3 else one, other) for one, other in zip(alone[:5], few[:5], strict=True)
    )


def test_tanh_is_right_to_the_last_places():
    x = torch.cat([torch.linspace(-12, 12, 40_001), torch.logspace(-20, -0.2, 2_000), torch.tensor([torch.inf])])
    ones = torch.ones(1)
    # The score of a query 0 and one feature is tanh of the key; the gradient of its weight shows it alone.
    key = x[:, None, None].clone()
    two = torch.cat([key, torch.zeros_like(key)], 1)
    _, weights = few_queries(LoweredAdditive(torch.zeros(len(x), 1, 1), two, ones), two, None)
    scores = (weights[:, 0, 0].double() / weights[:, 0, 1].double()).log()
    torch.testing.assert_close(scores, x.double().tanh(), rtol=0, atol=4e-7)


@pytest.mark.parametrize(("queries", "keys", "batch"), [(0, 3, 2), (2, 0, 2), (2, 3, 0)])
def test_nothing_is_attended_without_queries_or_keys(queries: int, keys: int, batch: int):
    query, key = torch.ones(batch, queries, 4).requires_grad_(), torch.ones(batch, keys, 4)
    context, weights = few_queries(LoweredDot(query, key), key, None)
    assert context.shape == (batch, queries, 4)
    assert weights.shape == (batch, queries, keys)
    assert not context.any() or keys > 0
    context.sum().backward()


@pytest.mark.parametrize("score", [Dot(8, 8), Additive(8, 8)])
def test_a_decoder_whose_mask_changes_sees_the_new_one(score: Dot | Additive):
    query, key = torch.randn(2, 1, 8), torch.randn(2, 5, 8)
    prepared: PreparedKey = score.prepare(key)
    lengths = torch.tensor([5, 2])
    mask = padding(lengths)

    def weights() -> Tensor | None:
        return attend(query, prepared, key, score=score, mask=mask, need="weights", kernel="step_cpu").weights

    assert (present(weights()) > 0).sum(-1).flatten().tolist() == [5, 2]
    lengths += torch.tensor([-4, 1])
    assert (present(weights()) > 0).sum(-1).flatten().tolist() == [1, 3]
    near = attend(key, prepared, key, score=score, mask=window(1, 1), need="weights", kernel="step_cpu").weights
    assert (present(near) > 0).sum(-1).tolist() == [[2, 3, 3, 3, 2]] * 2


def test_weights_of_many_keys_lose_no_digits():
    """Their sum is in float64; in float32, one after another, they err by 1e-5."""
    torch.manual_seed(0)
    query, key, value = torch.randn(8, 2, 4) * 0.08, torch.randn(8, 50_000, 4), torch.randn(8, 50_000, 3)
    weights = torch.softmax(query.double() @ key.double().mT, dim=-1)
    assert float((few_queries(LoweredDot(query, key), value, None).weights / weights - 1.0).abs().max()) < 1e-6
