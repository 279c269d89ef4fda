"""NaN and infinity that masks hide; that they reach nothing, on every kernel: tests/contracts/nonfinite.py."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from heedful.attention.dispatch import attend
from heedful.attention.masks import Mask, causal, graph, padding
from heedful.attention.nonfinite import all_finite, all_known_finite
from heedful.attention.scores import Additive, Gaussian, Location, ScaledDot


def test_sums_that_overflow_are_no_infinities():
    assert all_finite(torch.full((4,), torch.finfo(torch.float32).max))
    assert all_known_finite(torch.full((4,), 6e4, dtype=torch.float16))
    assert not all_finite(torch.ones(2), torch.tensor([1.0, torch.nan]))
    assert all_finite(torch.empty(0, 3))


def test_a_tensor_changed_in_place_is_tested_again():
    numbers = torch.ones(3)
    assert all_known_finite(numbers)
    numbers[1] = torch.inf
    assert not all_known_finite(numbers)
    numbers[1] = 0.0
    assert all_known_finite(numbers)


def test_tensors_of_inference_mode_are_tested_every_time():
    with torch.inference_mode():
        numbers = torch.ones(3)
        assert all_known_finite(numbers)
        numbers[0] = torch.nan
        assert not all_known_finite(numbers)


@pytest.mark.parametrize("has_graph", [False, True])
@pytest.mark.parametrize("role", [0, 1, 2])
def test_hidden_numbers_of_few_queries_reach_no_gradient(role: int, has_graph: bool):
    """Not even where the kernel never reads them: gradients of gradients and rows that are not used do."""
    inputs = [torch.randn(2, 3, 8), torch.randn(2, 3, 8), torch.randn(2, 3, 8)]
    inputs[role][0, 2] = torch.nan
    tensors = [tensor.requires_grad_() for tensor in inputs]
    for mask in (causal(), padding(torch.tensor([2, 0]))):
        attended = attend(*tensors, score=ScaledDot(8, 8), mask=mask)
        assert attended.kernel == "step_cpu"
        gradients = torch.autograd.grad(attended.context[:, :2].sum(), tensors, create_graph=has_graph)
        assert all(bool(torch.isfinite(each).all()) for each in gradients)


def test_prepared_keys_that_are_hidden_reach_nothing():
    score = Additive(4, 4, 6)
    query, key = torch.randn(2, 1, 4, requires_grad=True), torch.randn(2, 5, 4)
    mask = padding([5, 3])
    wanted = attend(query, score.prepare(key), key, score=score, mask=mask).context
    key[1, 3:] = torch.nan
    context = attend(query, score.prepare(key), key, score=score, mask=mask).context
    torch.testing.assert_close(context, wanted)
    assert bool(torch.isfinite(torch.autograd.grad(context.sum(), query)[0]).all())


def test_scores_of_positions_read_no_key():
    score, value = Location(4, 4, 8), torch.randn(5, 4)
    query = torch.randn(2, 4, requires_grad=True)
    context = attend(query, torch.full((5, 4), torch.nan), value, score=score, mask=causal()).context
    assert bool(torch.isfinite(context).all())
    assert bool(torch.autograd.grad(context.sum(), query)[0].any())


def test_a_key_infinitely_far_that_may_be_attended_to_has_the_weight_of_the_formula():
    score, key = Gaussian(1, 1), torch.tensor([[0.0], [torch.inf], [torch.nan]])
    attended = attend(torch.zeros(1, 1), key, torch.ones(3, 1), score=score, mask=padding(2), need="weights")
    assert attended.weights is not None
    assert attended.weights.tolist() == [[1.0, 0.0, 0.0]]


def _vmapped(query: Tensor, key: Tensor, mask: Mask) -> Tensor:
    return torch.func.vmap(lambda one: attend(one, key, key, score=ScaledDot(4, 4), mask=mask).context)(query[None])[0]


def _compiled(query: Tensor, key: Tensor, mask: Mask) -> Tensor:
    return torch.compile(lambda: attend(query, key, key, score=ScaledDot(4, 4), mask=mask).context, backend="eager")()


@pytest.mark.parametrize("run", [pytest.param(_compiled, marks=pytest.mark.compiled), _vmapped])
@pytest.mark.parametrize(
    "mask", [padding([5, 3]), graph(torch.tensor([[[True]], [[False]]]))], ids=["lengths", "table"]
)
def test_padding_is_zeroed_where_numbers_cannot_be_looked_at(run: Callable[[Tensor, Tensor, Mask], Tensor], mask: Mask):
    query, key = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    wanted = attend(query, key, key, score=ScaledDot(4, 4), mask=mask).context
    key[1, 3:] = torch.nan
    torch.testing.assert_close(run(query, key, mask), wanted)
