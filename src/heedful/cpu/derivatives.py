"""Second derivatives for operations whose backward pass is a numba kernel.

A kernel in the backward pass records no graph. PyTorch's `once_differentiable` raises an error only if the incoming
gradient has a graph; the gradient of a sum has none, and its second derivative would silently be zero. The decorators
here make the backward pass either record the plain formula when a graph is requested, or raise an error when it is
differentiated.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial, wraps
from typing import Any, final

import torch
from torch import Tensor

from heedful.cpu.concrete import concrete
from heedful.errors import KernelUnsupported

Backward = Callable[..., tuple[Tensor | None, ...]]
Formula = Callable[..., Tensor | tuple[Tensor, ...]]


def differentiable_by(formula: Formula, num_inputs: int) -> Callable[[Backward], Backward]:
    """Decorate the backward pass of an autograd function that has a plain formula.

    Args:
        formula: function of the autograd function's context and first inputs that returns its outputs, in PyTorch's
            operations.
        num_inputs: number of inputs of the formula, which are the first inputs and the first saved tensors of the
            autograd function.

    Returns:
        Decorator. The decorated backward pass runs if the gradients are concrete tensors and need no graph; otherwise
        (`create_graph`, `is_grads_batched`) the gradients are those of the formula.
    """

    def decorate(backward: Backward) -> Backward:
        @wraps(backward)
        def chosen(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
            if not torch.is_grad_enabled() and _are_concrete(grads):
                return backward(ctx, *grads)
            needs = ctx.needs_input_grad
            inputs = ctx.saved_tensors[:num_inputs]
            # Autocast was already applied before the operation.
            with torch.autocast(_device_of(inputs), enabled=False):
                recorded = formula_gradients(partial(formula, ctx), inputs, needs[:num_inputs], grads)
            return (*recorded, *(None for _ in needs[num_inputs:]))

        return chosen

    return decorate


def differentiable_once(name: str, remedy: str) -> Callable[[Backward], Backward]:
    """Decorate the backward pass of an autograd function that has no plain formula.

    Args:
        remedy: alternative for the user, for the message.

    Returns:
        Decorator. First derivatives are unchanged; differentiating them raises `KernelUnsupported`, whether or not the
        incoming gradients have a graph.
    """

    def decorate(backward: Backward) -> Backward:
        @wraps(backward)
        def guarded(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
            if all(grad is None for grad in grads):
                return (None,) * len(ctx.needs_input_grad)
            if not torch.is_grad_enabled():
                return backward(ctx, *grads)
            with torch.no_grad():
                results = backward(ctx, *grads)
            graph = [each for each in (*ctx.saved_tensors, *grads) if each is not None and each.requires_grad]
            message = f"{name} can be differentiated once only: {remedy}"
            return tuple(None if each is None else _Refusal.apply(message, each, *graph) for each in results)

        return guarded

    return decorate


def with_formula(results: Sequence[Tensor], formula: Formula, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """Add the second derivatives of a plain formula to the results of an operation.

    Args:
        results: results of an operation that computes first derivatives only. An autograd function of ours must call
            `set_materialize_grads(False)`, so that its backward pass is skipped if the formula is used.
        formula: function of the inputs that returns the same results by operations that are twice differentiable.
        inputs: all tensors that may receive a gradient.

    Returns:
        The results. Their gradients come from the operation, or, if a graph of the gradients is needed, from the
    """
    return _Alternative.apply(formula, len(results), *results, *inputs)


def formula_gradients(
    formula: Formula, inputs: Sequence[Tensor | None], needs: Sequence[bool], grads: Sequence[Tensor | None]
) -> tuple[Tensor | None, ...]:
    """Compute gradients by recording a formula.

    Args:
        needs: whether each input needs a gradient.
        grads: gradients of the outputs; None = zero.

    Returns:
        Gradients of the inputs, with a graph if gradients are enabled; None = not needed, or zero.
    """
    is_graph_kept = torch.is_grad_enabled()
    with torch.enable_grad():
        # Views, because one input may depend on another.
        views = [
            None if each is None else each.view_as(each) if each.requires_grad else each.detach().requires_grad_(needed)
            for each, needed in zip(inputs, needs, strict=True)
        ]
        outputs = formula(*views)
        pairs = [
            (output, grad)
            for output, grad in zip((outputs,) if isinstance(outputs, Tensor) else outputs, grads, strict=True)
            if grad is not None and output.requires_grad
        ]
        wanted = [each for each, needed in zip(views, needs, strict=True) if each is not None and needed]
        if not pairs or not wanted:
            return (None,) * len(inputs)
        gradients = iter(
            torch.autograd.grad(
                [output for output, _ in pairs],
                wanted,
                [grad for _, grad in pairs],
                create_graph=is_graph_kept,
                allow_unused=True,
            )
        )
    return tuple(
        next(gradients) if each is not None and needed else None for each, needed in zip(views, needs, strict=True)
    )


def current_autocast(device: str) -> Callable[[], AbstractContextManager[object]]:
    """Remember the autocast settings of a device, for a backward pass that recomputes its forward.

    Args:
        device: device type; one without autocast, such as "meta", has no settings.
    """
    if not torch.amp.is_autocast_available(device):
        return nullcontext
    return partial(torch.autocast, device, torch.get_autocast_dtype(device), torch.is_autocast_enabled(device))


def _are_concrete(grads: Sequence[Tensor | None]) -> bool:
    return concrete(*[grad for grad in grads if grad is not None])


def _device_of(tensors: Sequence[Tensor | None]) -> str:
    return next(each.device.type for each in tensors if each is not None)


@final
class _Alternative(torch.autograd.Function):
    """Identity of results whose gradients go back through the results, or through the formula if they need a graph."""

    @staticmethod
    def forward(ctx: Any, formula: Formula, num_results: int, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        results = tensors[:num_results]
        ctx.formula, ctx.num_results = formula, num_results
        device = results[0].device.type if results[0] is not None else "cpu"
        ctx.autocast = current_autocast(device)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors[num_results:])
        return tuple([each for each in results if each is not None])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        if not torch.is_grad_enabled() and _are_concrete(grads):
            return (None, None, *grads, *((None,) * (len(ctx.needs_input_grad) - 2 - len(grads))))
        inputs = ctx.saved_tensors
        needs = ctx.needs_input_grad[2 + ctx.num_results :]
        with ctx.autocast():
            recorded = formula_gradients(ctx.formula, inputs, needs, grads)
        return (None, None, *(None for _ in grads), *recorded)


@final
class _Refusal(torch.autograd.Function):
    """Identity of a gradient whose differentiation raises an error."""

    @staticmethod
    def forward(ctx: Any, message: str, gradient: Tensor, *graph: Tensor) -> Tensor:
        ctx.message = message
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        raise KernelUnsupported(ctx.message)
