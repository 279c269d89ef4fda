"""`accelerate`: replaces the forward passes of a plain model's layers by fast forms for CPUs.

A fast form is a function that takes a module and the arguments of its `forward`, and returns the same result up to
rounding. It falls back to the class's own `forward` wherever its kernels cannot run: outside mixed precision, without
gradients, on another device, while a graph is recorded. So an accelerated model remains the same model, and the code of
layers and models follows the papers.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.layers.cpu.layernorm import (
    DeferredBias,
    add_dropped,
    is_fused,
    is_plain,
    linear_deferred,
    normalized_beside,
    rectified,
)
from heedful.layers.dropout import dropout
from heedful.layers.feedforward import FeedForward
from heedful.layers.residual import Residual

Form = Callable[..., Any]
"""Function of a module and the arguments of its `forward`."""

_bias_may_wait: ContextVar[bool] = ContextVar("bias_may_wait", default=False)
"""Context variable: whether the caller of a layer adds the layer's last bias in a pass of its own."""


def accelerate(model: nn.Module, forms: Mapping[type[nn.Module], Form]) -> None:
    """Replace the forward passes of a model's modules by fast forms.

    Args:
        model: model, changed in place; parameters, their names and their gradients are unaffected.
        forms: fast forms by exact class of the module: `LAYER_FORMS`, and those of models.

    Example:
        >>> model = nn.Sequential(FeedForward(4, 8))
        >>> accelerate(model, LAYER_FORMS)
        >>> model(torch.zeros(1, 4)).shape
        torch.Size([1, 4])
    """
    for module in model.modules():
        if form := forms.get(type(module)):
            module.forward = partial(form, module)


def residual(module: Residual, vectors: Tensor, sublayer: Callable[[Tensor], Tensor | DeferredBias]) -> Tensor:
    """Fast form of `Residual`: the normalisation in one pass; the sum, dropout and the sub-layer's bias in another.

    Args:
        vectors: [*batch, position, size].
        sublayer: function with input and output of one shape, possibly without its last bias.

    Returns:
        [*batch, position, size].
    """
    if not is_fused(vectors):
        return Residual.forward(module, vectors, sublayer)  # pyright: ignore[reportArgumentType]
    is_pre = module.order == "pre"
    summand, inputs = normalized_beside(module.norm, vectors) if is_pre else (vectors, vectors)
    token = _bias_may_wait.set(True)
    try:
        outputs = sublayer(inputs)
    finally:
        _bias_may_wait.reset(token)
    total = add_dropped(summand, outputs, module.dropout, module.training)
    return total if is_pre else module.norm(total)


def feedforward(module: FeedForward, vectors: Tensor) -> Tensor | DeferredBias:
    """Fast form of `FeedForward`: bias and rectifier in one pass, and the last bias left to a residual connection.

    Args:
        vectors: [*batch, position, size].

    Returns:
        [*batch, position, size], without the last bias if a residual connection will add it.
    """
    if vectors.dtype != torch.bfloat16 or not is_fused(module.inner.weight):
        return FeedForward.forward(module, vectors)
    if module.activation == "relu" and is_plain(module.inner):
        hidden = rectified(vectors, module.inner)
    else:
        inner = module.inner(vectors)
        hidden = functional.relu(inner) if module.activation == "relu" else functional.silu(inner)
    hidden = dropout(hidden, module.dropout, module.training)
    return linear_deferred(hidden, module.outer) if _bias_may_wait.get() else module.outer(hidden)


LAYER_FORMS: Final[Mapping[type[nn.Module], Form]] = {Residual: residual, FeedForward: feedforward}
"""Fast forms of layers, by class."""
