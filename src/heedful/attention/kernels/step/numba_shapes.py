"""Shapes that the kernels of attention by few queries take, compared in compiled code."""

from typing import Any

import numpy as np
from numba import njit


@njit
def are_right(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, first: np.ndarray, last: np.ndarray, outputs: Any
) -> bool:
    """Tell whether the arrays of a call fit each other.

    Args:
        query: [batch, query, depth].
        key: [batch, key, depth].
        value: [batch, key, value_depth].
        first: [batch, query].
        last: [batch, query].
        outputs: [batch, query, key] weights and [batch, query, value_depth] contexts.
    """
    weights, context = outputs
    batch, num_queries, depth = query.shape
    num_keys = key.shape[1]
    return (
        key.shape[0] == value.shape[0] == batch
        and key.shape[2] == depth
        and value.shape[1] == num_keys
        and first.shape == last.shape == (batch, num_queries)
        and weights.shape == (batch, num_queries, num_keys)
        and context.shape == (batch, num_queries, value.shape[2])
    )


@njit
def are_gradients_right(
    inputs: Any, weights: np.ndarray, grads: Any, slopes: np.ndarray, query_grad: np.ndarray, sums: Any
) -> bool:
    """Tell whether the arrays of a backward pass fit each other.

    Args:
        inputs: queries, keys, values, first and last as for `are_right`.
        weights: [batch, query, key].
        grads: [batch, query, value_depth] of the contexts, and [batch, query, key] of the weights.
        slopes: [key].
        query_grad: [batch, query, depth].
        sums: [batch, key, depth] of keys, and [batch, key, value_depth] of values.
    """
    query, key, value, first, last = inputs
    context_grad, weights_grad = grads
    key_grad, value_grad = sums
    return (
        are_right(query, key, value, first, last, (weights, context_grad))
        and weights_grad.shape == weights.shape
        and slopes.shape[0] == key.shape[1]
        and query_grad.shape == query.shape
        and key_grad.shape == key.shape
        and value_grad.shape == value.shape
    )
