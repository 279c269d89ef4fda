"""Numba kernels of attention by few queries: scores, softmax and average of one query after another; no PyTorch here.

A key that a query may not attend to is never read, so whatever it holds reaches no result and no gradient.
"""

import math
from functools import cache
from typing import Any, Final

import numpy as np
from numba import types

from heedful.attention.kernels.step.numba_shapes import are_gradients_right, are_right
from heedful.cpu.checked_kernel import self_checked
from heedful.cpu.numba_cache import cached_njit
from heedful.cpu.numba_math import FLAGS, OPTIONS, exp2, inlined

_LOG2_E: Final = 1.0 / math.log(2.0)
_LOWEST: Final = -126.0
"""Exponent of two below which a weight is zero."""
_SATURATED: Final = 120.0
"""Exponent of two above which tanh is 1."""
_NEAR: Final = 0.55
"""|x| below which tanh is a polynomial, because 1 - 2 / (e^2x + 1) loses its digits there."""
_T1, _T2, _T3, _T4, _T5 = (np.float32(term) for term in (-0.33333332, 0.13333118, -0.05391007, 0.02131274, -0.00661575))
"""Coefficients of tanh x / x - 1 = x^2 (t1 + x^2 (t2 + ...)), |x| < 0.55: relative error 4e-9."""


@inlined("contract", "nsz")
def tanh(x: Any) -> Any:
    """Hyperbolic tangent of a float32, within 3 units in the last place; NaN stays NaN."""
    one, two = np.float32(1.0), np.float32(2.0)
    size = -x if x < np.float32(0.0) else x
    power = size * np.float32(2.0 * _LOG2_E)
    far = one - two / (exp2(np.float32(_SATURATED) if power > np.float32(_SATURATED) else power) + one)
    squared = x * x
    near = size + size * squared * (_T1 + squared * (_T2 + squared * (_T3 + squared * (_T4 + squared * _T5))))
    value = near if size < np.float32(_NEAR) else far
    return -value if x < np.float32(0.0) else value


@inlined(*FLAGS)
def _interval(first: np.ndarray, last: np.ndarray, b: int, i: int, num_keys: int) -> tuple[int, int]:
    """First key of a query and the index after the last, within the keys."""
    return max(0, min(first[b, i], num_keys)), max(0, min(last[b, i], num_keys))


@inlined(*FLAGS)
def _average(value: np.ndarray, weights: np.ndarray, start: int, stop: int, context: np.ndarray) -> None:
    """Turn the scores of a query into weights, and average the values by them."""
    zero = weights.dtype.type(0.0)
    lowest, scale = weights.dtype.type(_LOWEST), weights.dtype.type(_LOG2_E)
    largest = weights.dtype.type(-np.inf)
    for j in range(start, stop):
        largest = weights[j] if weights[j] > largest else largest
    # In float64: the error of a sum of many weights would be that of each of them.
    sum_of_weights = 0.0
    for j in range(start, stop):
        power = (weights[j] - largest) * scale
        # NaN is not below the lowest exponent, and stays.
        weights[j] = zero if power < lowest else exp2(lowest if power < lowest else power)
        sum_of_weights += weights[j]
    total = weights.dtype.type(sum_of_weights)
    for j in range(weights.shape[0]):
        weights[j] = weights[j] / total if start <= j < stop else zero
    for d in range(context.shape[0]):
        context[d] = zero
    # Eight keys at a time: one after another, rounding errors of many keys would add up, and sums be stored as often.
    whole = stop - max(0, stop - start) % 8
    for j in range(start, whole, 8):
        w0, w1, w2, w3, w4, w5, w6, w7 = (
            weights[j], weights[j + 1], weights[j + 2], weights[j + 3],
            weights[j + 4], weights[j + 5], weights[j + 6], weights[j + 7],
        )  # fmt: skip
        for d in range(context.shape[0]):
            lower = (w0 * value[j, d] + w1 * value[j + 1, d]) + (w2 * value[j + 2, d] + w3 * value[j + 3, d])
            upper = (w4 * value[j + 4, d] + w5 * value[j + 5, d]) + (w6 * value[j + 6, d] + w7 * value[j + 7, d])
            context[d] += lower + upper
    for j in range(whole, stop):
        weight = weights[j]
        for d in range(context.shape[0]):
            context[d] += weight * value[j, d]


_SHAPES: Final = {
    "query": "batch query depth",
    "key": "batch key depth",
    "value": "batch key value_depth",
    "first": "batch query",
    "last": "batch query",
    "weights": "batch query key",
}
_GRAD_SHAPES: Final = {
    "context_grad": "batch query value_depth",
    "weights_grad": "batch query key",
    "slopes": "key",
    "query_grad": "batch query depth",
    "key_grad": "batch key depth",
    "value_grad": "batch key value_depth",
}


def attend_by_dot(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    scale: Any,
    first: np.ndarray,
    last: np.ndarray,
    weights: np.ndarray,
    context: np.ndarray,
) -> bool:
    """Attend with scores scale query . key.

    Args:
        query: [batch, query, depth].
        key: [batch, key, depth].
        value: [batch, key, value_depth].
        scale: factor of the scores, of the type of the queries.
        first: [batch, query] first key of each query; any numbers.
        last: [batch, query] index after the last key.
        weights: [batch, query, key] out.
        context: [batch, query, value_depth] out.

    Returns:
        Whether the shapes are right; if not, nothing was computed.
    """
    if not are_right(query, key, value, first, last, (weights, context)):
        return False
    for b in range(query.shape[0]):
        for i in range(query.shape[1]):
            start, stop = _interval(first, last, b, i, key.shape[1])
            for j in range(start, stop):
                score = query.dtype.type(0.0)
                for d in range(query.shape[2]):
                    score += query[b, i, d] * key[b, j, d]
                weights[b, i, j] = score * scale
            _average(value[b], weights[b, i], start, stop, context[b, i])
    return True


def attend_by_sum(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    vector: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    weights: np.ndarray,
    context: np.ndarray,
) -> bool:
    """Attend with scores vector . tanh(query + key).

    Args:
        query: [batch, query, depth], float32 as all numbers.
        key: [batch, key, depth].
        value: [batch, key, value_depth].
        vector: [depth].
        first: as for `attend_by_dot`, like all that follow.

    Returns:
        As `attend_by_dot`.
    """
    if not (are_right(query, key, value, first, last, (weights, context)) and vector.shape[0] == query.shape[2]):
        return False
    for b in range(query.shape[0]):
        for i in range(query.shape[1]):
            start, stop = _interval(first, last, b, i, key.shape[1])
            for j in range(start, stop):
                score = np.float32(0.0)
                for d in range(query.shape[2]):
                    score += vector[d] * tanh(query[b, i, d] + key[b, j, d])
                weights[b, i, j] = score
            _average(value[b], weights[b, i], start, stop, context[b, i])
    return True


@inlined(*FLAGS)
def _score_slopes(
    value: np.ndarray,
    weights: np.ndarray,
    context_grad: np.ndarray,
    weights_grad: np.ndarray,
    start: int,
    stop: int,
    slopes: np.ndarray,
    value_grad: np.ndarray,
) -> None:
    """Compute the gradients of a query's scores, and add those of the values."""
    mean = weights.dtype.type(0.0)
    for j in range(start, stop):
        slope = weights.dtype.type(0.0)
        for d in range(context_grad.shape[0]):
            slope += context_grad[d] * value[j, d]
        slopes[j] = slope + weights_grad[j]
        mean += weights[j] * slopes[j]
    for j in range(start, stop):
        weight = weights[j]
        slopes[j] = weight * (slopes[j] - mean)
        for d in range(context_grad.shape[0]):
            value_grad[j, d] += weight * context_grad[d]


def differentiate_dot(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    scale: Any,
    first: np.ndarray,
    last: np.ndarray,
    weights: np.ndarray,
    context_grad: np.ndarray,
    weights_grad: np.ndarray,
    slopes: np.ndarray,
    query_grad: np.ndarray,
    key_grad: np.ndarray,
    value_grad: np.ndarray,
) -> bool:
    """Compute the gradients of `attend_by_dot`.

    Args:
        query: as for `attend_by_dot`, like all before `weights`.
        weights: [batch, query, key] its result.
        context_grad: [batch, query, value_depth].
        weights_grad: [batch, query, key].
        slopes: [key] room for the gradients of the scores of one query.
        query_grad: [batch, query, depth] out.
        key_grad: [batch, key, depth] out.
        value_grad: [batch, key, value_depth] out.

    Returns:
        Whether the shapes are right; if not, nothing was computed.
    """
    inputs = query, key, value, first, last
    if not are_gradients_right(
        inputs, weights, (context_grad, weights_grad), slopes, query_grad, (key_grad, value_grad)
    ):
        return False
    for b in range(query.shape[0]):
        key_grad[b] = 0.0
        value_grad[b] = 0.0
        for i in range(query.shape[1]):
            start, stop = _interval(first, last, b, i, key.shape[1])
            _score_slopes(
                value[b], weights[b, i], context_grad[b, i], weights_grad[b, i], start, stop, slopes, value_grad[b]
            )
            query_grad[b, i] = 0.0
            for j in range(start, stop):
                slope = slopes[j] * scale
                for d in range(query.shape[2]):
                    query_grad[b, i, d] += slope * key[b, j, d]
                    key_grad[b, j, d] += slope * query[b, i, d]
    return True


def differentiate_sum(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    vector: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    weights: np.ndarray,
    context_grad: np.ndarray,
    weights_grad: np.ndarray,
    slopes: np.ndarray,
    query_grad: np.ndarray,
    key_grad: np.ndarray,
    value_grad: np.ndarray,
    vector_grad: np.ndarray,
) -> bool:
    """Compute the gradients of `attend_by_sum`.

    Args:
        query: as for `attend_by_sum`, like all before `weights`.
        weights: as for `differentiate_dot`, like all that follow.
        vector_grad: [batch, depth] out, to be summed over the batch.

    Returns:
        As `differentiate_dot`.
    """
    inputs, grads, sums = (query, key, value, first, last), (context_grad, weights_grad), (key_grad, value_grad)
    if not (
        are_gradients_right(inputs, weights, grads, slopes, query_grad, sums)
        and vector.shape[0] == query.shape[2]
        and vector_grad.shape == (query.shape[0], query.shape[2])
    ):
        return False
    one = np.float32(1.0)
    for b in range(query.shape[0]):
        key_grad[b] = 0.0
        value_grad[b] = 0.0
        vector_grad[b] = 0.0
        for i in range(query.shape[1]):
            start, stop = _interval(first, last, b, i, key.shape[1])
            _score_slopes(
                value[b], weights[b, i], context_grad[b, i], weights_grad[b, i], start, stop, slopes, value_grad[b]
            )
            query_grad[b, i] = 0.0
            for j in range(start, stop):
                slope = slopes[j]
                for d in range(query.shape[2]):
                    value_of = tanh(query[b, i, d] + key[b, j, d])
                    inner = slope * vector[d] * (one - value_of * value_of)
                    query_grad[b, i, d] += inner
                    key_grad[b, j, d] += inner
                    vector_grad[b, d] += slope * value_of
    return True


@cache
def by_dot(dtype: np.dtype) -> tuple[Any, Any]:
    """Compile `attend_by_dot` and `differentiate_dot`, which takes seconds, or load them from disk.

    Args:
        dtype: float32 or float64.

    Returns:
        The functions; they release the interpreter lock.
    """
    real = types.float32 if dtype == np.float32 else types.float64
    return _compiled(attend_by_dot, differentiate_dot, real, real)


@cache
def by_sum() -> tuple[Any, Any]:
    """Compile `attend_by_sum` and `differentiate_sum`, as `by_dot`.

    Returns:
        As `by_dot`.
    """
    return _compiled(attend_by_sum, differentiate_sum, types.float32, types.float32[::1], types.float32[:, ::1])


def _compiled(forward: Any, backward: Any, real: Any, parameter: Any, *more: Any) -> tuple[Any, Any]:
    cube, bounds = real[:, :, ::1], types.int64[:, ::1]
    common = (cube, cube, cube, parameter, bounds, bounds, cube, cube)
    ahead, back = (cached_njit(*FLAGS, **OPTIONS)(function) for function in (forward, backward))
    ahead.compile(types.boolean(*common))
    back.compile(types.boolean(*common, cube, real[::1], cube, cube, cube, *more))
    for loop in (ahead, back):
        loop.disable_compile()
    shapes = _SHAPES | ({"vector": "depth"} if more else {})
    grads = _GRAD_SHAPES | ({"vector_grad": "batch depth"} if more else {})
    return self_checked(**shapes, context="batch query value_depth")(ahead), self_checked(**shapes, **grads)(back)
