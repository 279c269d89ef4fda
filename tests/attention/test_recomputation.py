import weakref
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from heedful.attention.recomputation import Recomputation


def function(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Two results that share what was computed before."""
    inner = torch.tanh(x @ weight)
    return (inner * inner).exp(), inner.sin()


def tensors() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(5, 4, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(3)] + [
        torch.randn(4, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    ]


def recomputed(inputs: list[Tensor], again: Recomputation, counts: list[int]) -> list[tuple[Tensor, Tensor]]:
    *parts, weight = inputs

    def compute(which: int) -> tuple[Tensor, Tensor]:
        counts[which] += 1
        return function(parts[which], weight)

    def bound(which: int) -> Callable[[], tuple[Tensor, Tensor]]:
        return lambda: compute(which)

    return [again.call(bound(i)) for i in range(len(parts))]


@pytest.mark.parametrize("results", [(0,), (1,), (0, 1)])
def test_gradients_are_those_without(results: tuple[int, ...]):
    inputs = tensors()
    wanted = torch.autograd.grad(sum(function(x, inputs[-1])[i].sum() for x in inputs[:-1] for i in results), inputs)
    counts = [0, 0, 0]
    found = recomputed(inputs, Recomputation("cpu"), counts)
    loss = sum(pair[i].sum() for pair in found for i in results)
    for one, other in zip(torch.autograd.grad(loss, inputs), wanted, strict=True):
        assert float((one - other).abs().max()) <= 1e-14
    # Once forward and once backward: neighbours are not computed again in turns.
    assert counts == [2, 2, 2]


def test_any_order_and_any_number_of_backward_passes():
    inputs = tensors()
    counts = [0, 0, 0]
    found = recomputed(inputs, Recomputation("cpu"), counts)
    for which in (1, 0, 2, 1):
        for i in (0, 1):
            loss = found[which][i].square().sum()
            wanted = torch.autograd.grad(function(inputs[which], inputs[-1])[i].square().sum(), inputs[which])[0]
            assert torch.equal(torch.autograd.grad(loss, inputs[which], retain_graph=True)[0], wanted)
    assert counts == [2, 3, 2]


def test_gradients_of_gradients():
    x, *_, weight = tensors()

    def compute(x: Tensor, weight: Tensor) -> Tensor:
        return Recomputation("cpu").call(lambda: function(x, weight)[0])

    torch.autograd.gradcheck(compute, (x, weight))
    torch.autograd.gradgradcheck(compute, (x, weight))


def test_nothing_is_held_until_it_is_wanted_and_then_of_one_function_only():
    again = Recomputation("cpu")
    inputs = tensors()
    packed: list[Tensor] = []
    with saved_tensors_hooks(lambda tensor: packed.append(tensor) or tensor, lambda tensor: tensor):
        found = recomputed(inputs, again, [0, 0, 0])
    assert packed == []
    assert again._saved == []
    # Nothing asks for what the sine saved; it goes with the next function all the same.
    torch.autograd.grad(found[0][0].sum(), inputs[0], retain_graph=True)
    first = {tensor.data_ptr() for tensor in again._saved if tensor.shape == (5, 4)}
    held = [weakref.ref(tensor) for tensor in again._saved]
    torch.autograd.grad(found[2][0].sum(), inputs[2], retain_graph=True)
    assert len(first) == 3
    assert again._saved
    assert all(tensor() is None for tensor in held)


def test_what_leads_to_the_result_alone_is_not_computed_again():
    x = torch.ones(3, requires_grad=True)
    seen: list[str] = []

    def compute() -> Tensor:
        seen.append("begun")
        y = x.exp()
        z = y.detach()
        seen.append("ended")
        return y + z

    Recomputation("cpu").call(compute).sum().backward()
    assert seen == ["begun", "ended", "begun"]


def test_mixed_precision_is_that_of_the_call():
    x, *_, weight = [tensor.detach().float().requires_grad_() for tensor in tensors()]
    types: list[torch.dtype] = []

    def compute() -> Tensor:
        inner = x @ weight
        types.append(inner.dtype)
        return torch.tanh(inner)

    with torch.autocast("cpu", torch.bfloat16):
        result = Recomputation("cpu").call(compute)
    result.float().sum().backward()
    plain = Recomputation("cpu").call(compute)
    with torch.autocast("cpu", torch.bfloat16):
        plain.sum().backward()
    assert types == [torch.bfloat16] * 2 + [torch.float32] * 2


def test_a_function_that_does_something_else_is_noticed():
    x = torch.ones(3, requires_grad=True)
    calls: list[int] = []

    def compute() -> Tensor:
        calls.append(1)
        return x.exp().sin() if len(calls) == 1 else x.exp()

    result = Recomputation("cpu").call(compute)
    with pytest.raises(
        RuntimeError, match="recomputation saved 1 tensors instead of 2: the function is not deterministic"
    ):
        result.sum().backward()


def test_what_a_function_raises_arrives():
    x = torch.ones(3, requires_grad=True)
    is_broken = False

    def compute() -> Tensor:
        if is_broken:
            raise ValueError("broken")
        return x.exp()

    again = Recomputation("cpu")
    result = again.call(compute)
    is_broken = True
    with pytest.raises(ValueError, match="broken"):
        result.sum().backward(retain_graph=True)
    is_broken = False
    result.sum().backward()
    assert torch.equal(x.grad, x.exp().detach())  # type: ignore[arg-type]
