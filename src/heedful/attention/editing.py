"""Replacement of attention weights while a model runs, for experiments with a trained model."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace

from torch import Tensor

from heedful.attention.interface import Attended, Score

editor: ContextVar[Callable[[Score, Tensor], Tensor] | None] = ContextVar("editor", default=None)
"""Callback that gets the weights of every `attend` and returns the weights that are used instead. It takes effect where
`heedful.attention.dispatch.observer` is set too, and like it not in compiled code."""


def edited(score: Score, attended: Attended, value: Tensor) -> Attended:
    """Apply the editor to the result of a call.

    Args:
        value: [*batch, key, value_depth] values of the call; leading axes align from the left.

    Returns:
        The result with other weights and their context; unchanged without an editor.
    """
    edit = editor.get()
    if edit is None or attended.weights is None:
        return attended
    weights = edit(score, attended.weights)
    if weights is attended.weights:
        return attended
    num_missing = weights.dim() - value.dim()
    aligned = value.reshape(*value.shape[:-2], *(1,) * num_missing, *value.shape[-2:])
    return replace(attended, weights=weights, context=weights.to(value.dtype) @ aligned)
