"""Numba kernel of smoothed losses and gradients of rows of logits; no PyTorch here.

A row of logits stays in the first-level caches from the first read to its gradient.
"""

import math
from functools import cache
from typing import Any, Final

import numpy as np
from numba import types

from heedful.cpu.checked_kernel import checked
from heedful.cpu.numba_cache import cached_njit
from heedful.cpu.numba_math import FLAGS, exp2, from_bits, inlined, narrowed, ordered, widened
from heedful.cpu.numba_ranges import is_within

_LOG2_E: Final = np.float32(1.0 / math.log(2.0))
_LOWEST: Final = np.float32(-127.0)
"""Exponent of two whose power is exactly 0."""
_LEAST: Final = np.int32(-(1 << 31))
_ONE: Final = np.float32(1.0)


@inlined(*FLAGS)
def _read(logits: np.ndarray, bias: np.ndarray, row: np.ndarray) -> Any:
    """Fill the row with logits + bias; return the largest, NaN if one is NaN, and their sum."""
    if logits.itemsize == 2:
        for v in range(row.shape[0]):
            row[v] = widened(logits[v])
    else:
        for v in range(row.shape[0]):
            row[v] = logits[v]
    for v in range(bias.shape[0]):
        row[v] += bias[v]
    # Compared as integers, because a floating-point maximum that may meet NaN is not vectorised.
    largest, total = _LEAST, np.float32(0.0)
    for v in range(row.shape[0]):
        largest = max(largest, ordered(row[v]))
        total += row[v]
    return from_bits(ordered(from_bits(largest))), total


@inlined(*FLAGS)
def _exponentials(row: np.ndarray, largest: Any) -> Any:
    """Replace x by e^(x - largest); return the sum."""
    total = np.float32(0.0)
    for v in range(row.shape[0]):
        power = (row[v] - largest) * _LOG2_E
        row[v] = exp2(_LOWEST if power < _LOWEST else power)
        total += row[v]
    return total


@checked(
    lambda arguments, sizes: is_within(arguments[2], 0, sizes["vocabulary"]),
    logits="row vocabulary",
    bias="none or vocabulary",
    gold="row",
    losses="row",
    log_probs="row",
    is_correct="row",
    bias_gradient="none or vocabulary",
)
@cached_njit("contract")
def differentiate(
    logits: np.ndarray,
    bias: np.ndarray,
    gold: np.ndarray,
    label_smoothing: float,
    wants_gradient: bool,
    losses: np.ndarray,
    log_probs: np.ndarray,
    is_correct: np.ndarray,
    bias_gradient: np.ndarray,
) -> None:
    """Compute smoothed losses of rows, and if requested replace the logits by their gradients.

    Args:
        logits: [row, vocabulary] float32, or the bits of bfloat16 as int16; overwritten if gradients are requested.
        bias: [vocabulary] float32, or [0] for none.
        gold: [row] int64.
        label_smoothing: share of the probability that is spread over the vocabulary.
        wants_gradient: whether to compute gradients.
        losses: [row] float32 out.
        log_probs: [row] float32 out, of the gold token, without smoothing.
        is_correct: [row] bool out, whether no token is more probable than the gold one.
        bias_gradient: [vocabulary] or [0] float32, added to.
    """
    vocabulary = logits.shape[1]
    row = np.empty(vocabulary, np.float32)
    share = np.float32(label_smoothing / vocabulary)
    peak = np.float32(1.0 - label_smoothing)
    for i in range(logits.shape[0]):
        largest, total = _read(logits[i], bias, row)
        gold_logit = row[gold[i]]
        exponentials = _exponentials(row, largest)
        log_sum = largest + np.float32(math.log(exponentials))
        losses[i] = log_sum - peak * gold_logit - share * total
        log_probs[i] = gold_logit - log_sum
        is_correct[i] = gold_logit >= largest
        if wants_gradient:
            scale = _ONE / exponentials
            for v in range(vocabulary):
                row[v] = row[v] * scale - share
            row[gold[i]] -= peak
            for v in range(bias_gradient.shape[0]):
                bias_gradient[v] += row[v]
            if logits.itemsize == 2:
                for v in range(vocabulary):
                    logits[i, v] = narrowed(row[v])
            else:
                for v in range(vocabulary):
                    logits[i, v] = row[v]


@cache
def compiled(is_narrow: bool) -> Any:
    """Compile the kernel, or load it from disk.

    Args:
        is_narrow: whether logits are the bits of bfloat16; else they are float32.

    Returns:
        `differentiate`, which releases the interpreter lock.
    """
    logits = types.int16 if is_narrow else types.float32
    real = types.float32[::1]
    signature = (
        logits[:, ::1], real, types.int64[::1], types.float64, types.boolean, real, real, types.boolean[::1], real,
    )  # fmt: skip
    differentiate.compile(signature)
    return differentiate
