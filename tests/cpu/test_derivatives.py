"""Second derivatives: the formula's, or a refusal that no incoming gradient can get round."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradgradcheck

from heedful.cpu.derivatives import differentiable_by, differentiable_once, with_formula
from heedful.errors import KernelUnsupported


def product(_: Any, one: Tensor, other: Tensor) -> Tensor:
    return one * one * other


class Recorded(torch.autograd.Function):
    """one^2 other, whose backward pass counts how often it runs and leaves no graph."""

    runs = 0

    @staticmethod
    def forward(ctx: Any, one: Tensor, other: Tensor, _: int) -> Tensor:
        ctx.save_for_backward(one, other)
        return product(ctx, one, other)

    @staticmethod
    @differentiable_by(product, num_inputs=2)
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        Recorded.runs += 1
        one, other = (each.detach() for each in ctx.saved_tensors)
        return 2.0 * one * other * grads[0].detach(), one * one * grads[0].detach(), None


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, one: Tensor) -> Tensor:
        ctx.save_for_backward(one)
        ctx.set_materialize_grads(False)
        return one.square()

    @staticmethod
    @differentiable_once("square", "take another")
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return (2.0 * ctx.saved_tensors[0] * grads[0],)


def inputs() -> tuple[Tensor, Tensor]:
    return tuple(torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))  # type: ignore


def test_first_derivatives_are_those_of_the_loop():
    before = Recorded.runs
    Recorded.apply(*inputs(), 0).sum().backward()
    assert Recorded.runs == before + 1


def test_second_derivatives_are_those_of_the_formula():
    assert gradgradcheck(lambda one, other: Recorded.apply(one, other, 0), inputs())
    one, other = inputs()
    hessian = torch.autograd.functional.hessian(lambda each: Recorded.apply(each, other, 0).sum(), one)
    torch.testing.assert_close(hessian, torch.diag(2.0 * other))


def test_an_input_that_depends_on_another_counts_once():
    (one, _) = inputs()
    gradient = torch.autograd.grad(Recorded.apply(one, 3.0 * one, 0).sum(), one, create_graph=True)[0]
    torch.testing.assert_close(gradient, 9.0 * one.square())


def test_many_gradients_at_a_time():
    one, other = inputs()
    found = torch.autograd.functional.jacobian(lambda each: Recorded.apply(each, other, 0), one, vectorize=True)
    torch.testing.assert_close(found, torch.diag(2.0 * one * other))


def test_a_refusal_needs_no_graph_of_the_incoming_gradient():
    one, _ = inputs()
    (gradient,) = torch.autograd.grad(Once.apply(one).sum(), one, create_graph=True)
    torch.testing.assert_close(gradient, 2.0 * one)
    with pytest.raises(KernelUnsupported, match="square can be differentiated once only: take another"):
        gradient.sum().backward()
    Once.apply(one).sum().backward()


def test_results_with_a_formula():
    one, other = inputs()

    def both(one: Tensor, other: Tensor) -> tuple[Tensor, ...]:
        results = Once.apply(one), one * other
        return with_formula(results, lambda one, other: (one.square(), one * other), (one, other))

    assert gradgradcheck(both, (one, other))
    gradients = torch.autograd.grad(sum(each.sum() for each in both(one, other)), (one, other))
    torch.testing.assert_close(gradients, (2.0 * one + other, one))
