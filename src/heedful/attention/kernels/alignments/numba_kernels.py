"""Numba kernels of sums over alignments: the forward algorithm, and its gradient backwards; no PyTorch here.

Probabilities are normalised at every step and held in float64, in which no product of two underflows; a step's joint
probabilities are scaled by the largest of them before they are raised.
"""

import math
from functools import cache
from typing import Any, Final

import numpy as np
from numba import types

from heedful.cpu.checked_kernel import checked
from heedful.cpu.numba_cache import cached_njit
from heedful.cpu.numba_math import FLAGS, exp2, inlined

_LOG2_E: Final = 1.0 / math.log(2.0)
_LOWEST: Final = -126.0
"""Exponent of two of the least probability of a possible transition."""


@inlined(*FLAGS)
def _raise(log_transitions: np.ndarray, row: np.ndarray) -> None:
    """Fill the row with the probabilities of the transitions from one position."""
    one, lowest = row.dtype.type(_LOG2_E), row.dtype.type(_LOWEST)
    zero = row.dtype.type(0.0)
    for j in range(row.shape[0]):
        power = log_transitions[j] * one
        value = exp2(lowest if power < lowest else power)
        row[j] = zero if log_transitions[j] == -np.inf else value


@checked(
    log_emissions="batch target position",
    log_transitions="batch target position position",
    log_probs="batch target",
    priors="batch target position",
    posteriors="batch target position",
)
@cached_njit("contract")
def forward(
    log_emissions: np.ndarray,
    log_transitions: np.ndarray,
    log_probs: np.ndarray,
    priors: np.ndarray,
    posteriors: np.ndarray,
) -> None:
    """Sum over all alignments.

    Args:
        log_emissions: [batch, target, position] log p(y_i | a_i = j).
        log_transitions: [batch, target, position, position] log p(a_i = j | a_i-1 = j').
        log_probs: [batch, target] out, log p(y_i | y_1 .. y_i-1).
        priors: [batch, target, position] float64 out, p(a_i = j | y_1 .. y_i-1).
        posteriors: [batch, target, position] float64 out, p(a_i = j | y_1 .. y_i).
    """
    num_rows, num_steps, size = log_emissions.shape
    row = np.empty(size, log_emissions.dtype)
    for b in range(num_rows):
        for i in range(num_steps):
            prior, posterior = priors[b, i], posteriors[b, i]
            prior[:] = 0.0
            for before in range(size if i else 1):
                share = posteriors[b, i - 1, before] if i else 1.0
                if share == 0.0:
                    continue
                _raise(log_transitions[b, i, before], row)
                for j in range(size):
                    prior[j] += share * row[j]
            largest = -np.inf
            for j in range(size):
                posterior[j] = math.log(prior[j]) + log_emissions[b, i, j] if prior[j] > 0.0 else -np.inf
                largest = max(largest, posterior[j])
            total = 0.0
            for j in range(size):
                posterior[j] = math.exp(posterior[j] - largest)
                total += posterior[j]
            for j in range(size):
                posterior[j] /= total
            log_probs[b, i] = largest + math.log(total)


@checked(
    log_transitions="batch target position position",
    priors="batch target position",
    posteriors="batch target position",
    gradients="batch target",
    emission_gradients="batch target position",
    transition_gradients="batch target position position",
)
@cached_njit("contract")
def backward(
    log_transitions: np.ndarray,
    priors: np.ndarray,
    posteriors: np.ndarray,
    gradients: np.ndarray,
    emission_gradients: np.ndarray,
    transition_gradients: np.ndarray,
) -> None:
    """Compute the gradients of log emissions and log transitions.

    Args:
        log_transitions: [batch, target, position, position] as for `forward`.
        priors: [batch, target, position] of `forward`.
        posteriors: [batch, target, position] of `forward`.
        gradients: [batch, target] gradients of `log_probs`.
        emission_gradients: [batch, target, position] out.
        transition_gradients: [batch, target, position, position] out.
    """
    num_rows, num_steps, size = priors.shape
    row = np.empty(size, log_transitions.dtype)
    later, slopes = np.empty(size), np.empty(size)
    for b in range(num_rows):
        later[:] = 0.0  # gradient of the posterior, from all later steps
        for step in range(num_steps):
            i = num_steps - 1 - step
            mean = 0.0
            for j in range(size):
                mean += later[j] * posteriors[b, i, j]
            shift = gradients[b, i] - mean
            for j in range(size):
                gradient = posteriors[b, i, j] * (later[j] + shift)
                emission_gradients[b, i, j] = gradient
                slopes[j] = gradient / priors[b, i, j] if priors[b, i, j] > 0.0 else 0.0
            for before in range(size):
                share = posteriors[b, i - 1, before] if i else (1.0 if before == 0 else 0.0)
                target = transition_gradients[b, i, before]
                if share == 0.0:
                    later[before] = 0.0
                    target[:] = 0.0
                    continue
                _raise(log_transitions[b, i, before], row)
                total = 0.0
                for j in range(size):
                    slope = row[j] * slopes[j]
                    total += slope
                    target[j] = share * slope
                later[before] = total


@cache
def compiled(dtype: str) -> tuple[Any, Any]:
    """Compile the kernels, or load them from disk.

    Args:
        dtype: float32 or float64, of the log probabilities.

    Returns:
        `forward` and `backward`, which release the interpreter lock.
    """
    real = types.float32 if dtype == "float32" else types.float64
    table, cube, wide = real[:, ::1], real[:, :, ::1], types.float64[:, :, ::1]
    forward.compile((cube, real[:, :, :, ::1], table, wide, wide))
    backward.compile((real[:, :, :, ::1], wide, wide, table, cube, real[:, :, :, ::1]))
    return forward, backward
