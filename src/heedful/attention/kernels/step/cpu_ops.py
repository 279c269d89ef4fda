"""PyTorch operations of attention by few queries on a CPU, whose forward and backward passes are numba kernels."""

from collections.abc import Callable
from functools import lru_cache, partial
from math import prod
from typing import Any, Final, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from heedful.attention.kernels.formulas import additive_formula
from heedful.attention.lowered import LoweredAdditive, LoweredDot, broadcast
from heedful.attention.mask_bounds import MaskBounds
from heedful.attention.softmax import SOFTMAX
from heedful.cpu.availability import copied
from heedful.cpu.derivatives import differentiable_by
from heedful.cpu.threads import num_threads, run_parts

_INLINE: Final = 2_000_000
"""Multiply-adds below which a second thread costs more than it saves."""
_TANH: Final = 8
"""Cost of a tanh in multiply-adds."""


class Averaged(NamedTuple):
    """Result of attention."""

    context: Tensor
    """[*batch, query, value_depth]"""
    weights: Tensor
    """[*batch, query, key]"""


def few_queries(pairs: LoweredDot | LoweredAdditive, value: Tensor, rows: MaskBounds | None) -> Averaged:
    """Attend with softmax, in one loop over the queries.

    Scores are those of Luong et al. 2015, arXiv:1508.04025, eq. 8 (dot), or of Bahdanau et al. 2015, arXiv:1409.0473,
    section A.1.2, after both projections. Weights below 2^-126 of the largest are zero.

    Args:
        pairs: dot scores in float32 or float64, or additive scores in float32; no bias.
        value: [*batch, key, value_depth] in the same type, on the CPU.
        rows: intervals of keys; None = all.

    Returns:
        Contexts and weights. Gradients of gradients are those of the formula.

    Cost: query * key * (depth + value_depth) multiply-adds on one thread, for additive scores 1.3 cycles for each
    query * key * depth; memory query * key, and in training key * (depth + value_depth).
    """
    score_leading = pairs.leading
    leading = broadcast(score_leading, value.shape[:-2])
    shape = *leading, pairs.query.shape[-2]
    first, last = _all_keys(shape) if rows is None else rows.intervals(shape, len(score_leading))
    dtype = value.dtype
    query, key, value = (
        _flat(pairs.query, leading, dtype),
        _flat(pairs.key, leading, dtype),
        _flat(value, leading, dtype),
    )
    if isinstance(pairs, LoweredAdditive):
        vector, scale = pairs.vector.to(dtype), 1.0
    else:
        vector, scale = None, pairs.scale
    if torch.is_grad_enabled():
        learned = (query, key, value) if vector is None else (query, key, value, vector)
        context, weights = _FewQueries.apply(*learned, scale, first, last)
    else:
        context, weights = _attend(query, key, value, vector, scale, first, last)
    if len(leading) != 1:
        context, weights = (each.reshape(*leading, *each.shape[1:]) for each in (context, weights))
    return Averaged(context, weights if score_leading == leading else _first_of(weights, score_leading))


def _first_of(weights: Tensor, leading: torch.Size) -> Tensor:
    """Weights with the leading axes of the scores, where values have more: the others repeat them."""
    weights = weights[(0,) * (weights.dim() - 2 - len(leading))]
    return weights[tuple(slice(size) for size in leading)]


@final
class _FewQueries(torch.autograd.Function):
    """Queries, keys, values and, for additive scores, the vector; with gradients."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        *learned, scale, first, last = inputs
        vector = learned[3] if len(learned) == 4 else None
        context, weights = _attend(learned[0], learned[1], learned[2], vector, scale, first, last)
        ctx.save_for_backward(*learned, weights)
        ctx.facts = scale, first, last
        ctx.set_materialize_grads(False)
        return context, weights

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        num_learned = len(ctx.saved_tensors) - 1
        return _backward_of(num_learned)(ctx, *grads)


def _attend(
    query: Tensor, key: Tensor, value: Tensor, vector: Tensor | None, scale: float, first: np.ndarray, last: np.ndarray
) -> tuple[Tensor, Tensor]:
    queries, keys, values = _array(query), _array(key), _array(value)
    dtype, (batch, num_queries, _) = queries.dtype, queries.shape
    weights = np.empty((batch, num_queries, keys.shape[1]), dtype)
    context = np.empty((batch, num_queries, values.shape[2]), dtype)
    attend = _loops(dtype, vector is not None)[0]
    parameter = dtype.type(scale) if vector is None else copied(vector)
    cost = weights.size * (queries.shape[2] if vector is None else _TANH * queries.shape[2])
    if cost < _INLINE:
        # A slice of each array would take as long as the loop of a small call.
        attend(queries, keys, values, parameter, first, last, weights, context)
    else:

        def run(rows: slice) -> None:
            inputs = queries[rows], keys[rows], values[rows], parameter, first[rows], last[rows]
            attend(*inputs, weights[rows], context[rows])

        _in_parts(run, batch)
    return torch.from_numpy(context), torch.from_numpy(weights)


def _differentiate(ctx: Any, context_grad: Tensor | None, weights_grad: Tensor | None) -> tuple[Tensor | None, ...]:
    weights = _array(ctx.saved_tensors[-1])
    scale, first, last = ctx.facts
    query, key, value = map(_array, ctx.saved_tensors[:3])
    dtype, (batch, num_queries, depth) = query.dtype, query.shape
    is_sum = len(ctx.saved_tensors) == 5
    grads = (
        np.zeros((batch, num_queries, value.shape[2]), dtype) if context_grad is None else _array(context_grad),
        np.zeros(weights.shape, dtype) if weights_grad is None else _array(weights_grad),
    )
    outputs: list[np.ndarray] = [np.empty(each.shape, dtype) for each in (query, key, value)]
    if is_sum:
        outputs.append(np.empty((batch, depth), dtype))
    differentiate = _loops(dtype, is_sum)[1]
    parameter = copied(ctx.saved_tensors[3]) if is_sum else dtype.type(scale)

    def run(rows: slice) -> None:
        inputs = query[rows], key[rows], value[rows], parameter, first[rows], last[rows], weights[rows]
        room = np.empty(key.shape[1], dtype)
        differentiate(*inputs, grads[0][rows], grads[1][rows], room, *(each[rows] for each in outputs))

    if 2 * weights.size * (_TANH * depth if is_sum else depth) < _INLINE:
        run(slice(None))
    else:
        _in_parts(run, batch)
    if is_sum:
        outputs[3] = outputs[3].sum(axis=0)
    return (*map(torch.from_numpy, outputs), None, None, None)


def _in_parts(run: Callable[[slice], None], batch: int) -> None:
    """Run batch elements on several threads; results are the same for any number of threads."""
    if num_threads() == 1:
        run(slice(None))
        return
    step = -(-batch // min(batch, 4 * num_threads()))
    run_parts([partial(run, slice(start, start + step)) for start in range(0, batch, step)])


@lru_cache
def _loops(dtype: np.dtype[Any], is_sum: bool) -> tuple[Any, Any]:
    """The compiled loops, forward and backward."""
    # Imported here because importing Numba takes long.
    from heedful.attention.kernels.step.numba_kernels import by_dot, by_sum

    return by_sum() if is_sum else by_dot(dtype)


def _formula(ctx: Any, query: Tensor, key: Tensor, value: Tensor, *vector: Tensor) -> tuple[Tensor, Tensor]:
    scale, first, last = ctx.facts
    scores = additive_formula(query, key, vector[0]) if vector else query @ key.mT * scale
    positions = torch.arange(key.shape[1])
    first, last = (torch.from_numpy(each)[..., None] for each in (first, last))
    weights = SOFTMAX.weigh(scores, (positions >= first) & (positions < last))
    return weights @ value, weights


@lru_cache
def _backward_of(num_learned: int) -> Any:
    return differentiable_by(_formula, num_learned)(_differentiate)


def _array(tensor: Tensor) -> np.ndarray:
    array = (tensor.detach() if tensor.requires_grad else tensor).numpy()
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def _flat(tensor: Tensor, leading: torch.Size, dtype: torch.dtype) -> Tensor:
    """[batch, position, size] of this type, with the leading axes repeated."""
    if tensor.dtype != dtype:
        tensor = tensor.to(dtype)
    if tensor.shape[:-2] != leading:
        tensor = tensor.expand(*leading, *tensor.shape[-2:])
    return tensor if len(leading) == 1 else tensor.reshape(prod(leading), *tensor.shape[-2:])


@lru_cache(maxsize=256)
def _all_keys(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Bounds [batch, query] of intervals that hold all keys, for contexts [*leading, query]."""
    flat = prod(shape[:-1]), shape[-1]
    return np.zeros(flat, np.int64), np.full(flat, 1 << 62)
