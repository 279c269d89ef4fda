"""Values of step-by-step attention, whose gradient is computed once for all steps in one batched product.

A decoder with feedback calls `attend` once per word, and autograd would compute and add up a gradient of all values for
each call. Instead, sum_t weights_t^T grad_t is computed as one matrix product. In mixed precision the values are
rounded once rather than at every step, and the sum over steps is not rounded at all.
"""

from dataclasses import replace
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attention.interface import Attended, Need
from heedful.cpu.concrete import concrete


@final
class StepwiseValue:
    """Values that several calls of `attend` share.

    Example:
        >>> from heedful.attention.dispatch import attend
        >>> from heedful.attention.scores import Dot
        >>> query, value = torch.ones(1, 1, 2), torch.ones(1, 3, 2, requires_grad=True)
        >>> shared, total = StepwiseValue(value), 0.0
        >>> for _ in range(2):
        ...     attended = attend(query, value.detach(), shared.constant, score=Dot(2, 2), need=shared.need)
        ...     total = total + shared.accumulate_value_grad(attended).context.sum()
        >>> total.backward()
        >>> value.grad.sum().item()
        4.0
    """

    def __init__(self, value: Float[Tensor, "*batch key value_size"]) -> None:
        """Share values.

        Args:
            value: [*batch, key, value_size].
        """
        device = value.device.type
        narrow = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else value.dtype
        # A transform has no place in the graph to gather at; there each step has its gradient.
        is_concrete = concrete(value)
        self.constant = (value.detach() if is_concrete else value).to(narrow)
        """Values without gradient, to be passed to `attend`."""
        self._read: list[tuple[Tensor, Tensor]] = []
        wants_gradient = is_concrete and torch.is_grad_enabled() and value.requires_grad
        self._value = value
        self._anchor = _Gathered.apply(value, self._read) if wants_gradient else None

    @property
    def need(self) -> tuple[Need, ...]:
        """Results to request from `attend`: the weights if the values need gradient, else none."""
        return () if self._anchor is None else ("weights",)

    def accumulate_value_grad(self, attended: Attended) -> Attended:
        """Register a step for the gradient of the values.

        Args:
            attended: result of `attend` for `constant`, with weights and without dropout.

        Returns:
            The same result, whose context sends gradient to the values, too.

        Raises:
            ValueError: the weights were not requested.
        """
        if self._anchor is None:
            return attended
        if attended.weights is None:
            raise ValueError("StepwiseValue.accumulate_value_grad: call attend with need=['weights']")
        context = _Credited.apply(attended.context, attended.weights, self._value, self._anchor, self._read)
        return replace(attended, context=context)


@final
class _Gathered(torch.autograd.Function):
    """Identity between the values and the steps; backward runs after the last of them."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, steps: list[tuple[Tensor, Tensor]]) -> Tensor:
        ctx.read, ctx.shape, ctx.dtype = steps, value.shape, value.dtype
        ctx.set_materialize_grads(False)
        # An empty tensor that merely links the steps to the values in the graph.
        return value.new_empty(0)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor | None) -> tuple[Tensor | None, ...]:
        if not ctx.read:
            return None, None
        weights, grads = (torch.cat(parts, dim=-2) for parts in zip(*ctx.read, strict=True))
        ctx.read.clear()
        gradient = weights.to(grads.dtype).mT @ grads
        return gradient.sum_to_size(ctx.shape).to(ctx.dtype), None


@final
class _Credited(torch.autograd.Function):
    """Identity forward; backward stores (weights, gradient) for one batched product.

    Gradients that are to have a graph go to weights and values instead, step by step.
    """

    @staticmethod
    def forward(
        ctx: Any, context: Tensor, weights: Tensor, value: Tensor, anchor: Tensor, steps: list[tuple[Tensor, Tensor]]
    ) -> Tensor:
        ctx.save_for_backward(weights, value)
        ctx.read = steps
        return context.view_as(context)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grad_outputs
        weights, value = ctx.saved_tensors
        if torch.is_grad_enabled() or not concrete(grad):
            weights_grad = (grad.to(value.dtype) @ value.mT).sum_to_size(weights.shape).to(weights.dtype)
            value_grad = (weights.to(grad.dtype).mT @ grad).sum_to_size(value.shape).to(value.dtype)
            return None, weights_grad, value_grad, None, None
        ctx.read.append((weights.detach(), grad))
        return grad, None, None, None, None
