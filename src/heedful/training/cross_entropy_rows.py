"""Smoothed losses of rows of logits, with gradients in place of the logits: by a numba kernel or plain operations."""

from functools import partial
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from heedful.cpu.availability import copied, loops_problem
from heedful.cpu.concrete import concrete
from heedful.cpu.threads import run_parts
from heedful.errors import ShapeError

BLOCK_ELEMENTS: Final = 2_000_000
"""Number of logits that plain operations process at a time."""
_PART_ROWS: Final = 32
"""Rows per part of the kernel, independent of the number of threads, so that sums do not depend on it."""


class RowLosses(NamedTuple):
    """Losses of rows of logits."""

    losses: Tensor
    """[row] smoothed losses, float32 or wider."""
    gold_log_probs: Tensor
    """[row] log probability of the gold token, without smoothing."""
    is_correct: Tensor
    """[row] whether the gold token is the most probable one."""
    bias_gradient: Tensor | None
    """[vocabulary] sum of the gradients over the rows, where there is a bias."""


def take_losses(
    logits: Tensor,
    bias: Tensor | None,
    gold: Tensor,
    label_smoothing: float,
    wants_gradient: bool,
) -> RowLosses:
    """Compute losses; if requested, d loss / d logits = p - (1 - e) onehot - e / V replaces the logits.

    Args:
        logits: [row, vocabulary] contiguous; overwritten in any case.
        bias: [vocabulary] bias to add, or None.
        gold: [row] ids.
        label_smoothing: e, in [0, 1).
        wants_gradient: whether to compute gradients.

    Returns:
        Losses, summed in float32 at least.

    Raises:
        ShapeError: gold tokens are no integers, or on a CPU outside the vocabulary.

    Cost: with Numba a read and a write of the logits, and an exponential for each.
    """
    if gold.dtype not in (torch.int64, torch.int32):
        raise ShapeError(f"cross-entropy: gold {gold.dtype} {list(gold.shape)} are no ids; give int64")
    is_suited = logits.device.type == "cpu" and logits.dtype in (torch.float32, torch.bfloat16)
    if is_suited and not torch.compiler.is_compiling() and loops_problem() is None:
        return _by_loops(logits, bias, gold, label_smoothing, wants_gradient)
    return _by_operations(logits, bias, gold, label_smoothing, wants_gradient)


def _by_loops(
    logits: Tensor, bias: Tensor | None, gold: Tensor, label_smoothing: float, wants_gradient: bool
) -> RowLosses:
    # Imported here because importing Numba takes long.
    from heedful.training.cross_entropy_numba import compiled

    num_rows, vocabulary = logits.shape
    is_narrow = logits.dtype == torch.bfloat16
    loop = compiled(is_narrow)
    raw = (logits.view(torch.int16) if is_narrow else logits).numpy()
    added = np.empty(0, np.float32) if bias is None else copied(bias.float())
    labels = gold.contiguous().numpy()
    losses, log_probs = np.empty(num_rows, np.float32), np.empty(num_rows, np.float32)
    is_correct = np.empty(num_rows, np.bool_)
    starts = range(0, num_rows, _PART_ROWS)
    sums = np.zeros((len(starts), vocabulary if bias is not None and wants_gradient else 0), np.float32)

    def run(part: int) -> None:
        rows = slice(starts[part], starts[part] + _PART_ROWS)
        outputs = (losses[rows], log_probs[rows], is_correct[rows], sums[part])
        loop(raw[rows], added, labels[rows], label_smoothing, wants_gradient, *outputs)

    run_parts([partial(run, part) for part in range(len(starts))])
    bias_gradient = None if bias is None else torch.from_numpy(sums.sum(axis=0))
    outputs, log_likelihoods = torch.from_numpy(losses), torch.from_numpy(log_probs)
    return RowLosses(outputs, log_likelihoods, torch.from_numpy(is_correct), bias_gradient)


def _by_operations(
    logits: Tensor,
    bias: Tensor | None,
    gold: Tensor,
    label_smoothing: float,
    wants_gradient: bool,
) -> RowLosses:
    if gold.device.type == "cpu" and concrete(gold) and ((gold < 0) | (gold >= logits.shape[1])).any():
        raise ShapeError(f"linear_cross_entropy: gold has ids outside the vocabulary of {logits.shape[1]}")
    wide = logits.dtype if logits.dtype == torch.float64 else torch.float32
    losses = torch.empty(len(logits), dtype=wide, device=logits.device)
    log_probs, is_correct = torch.empty_like(losses), torch.empty_like(gold, dtype=torch.bool)
    bias_gradient = None if bias is None else torch.zeros_like(bias)
    step = max(1, BLOCK_ELEMENTS // logits.shape[1] if logits.device.type == "cpu" else len(logits))
    for start in range(0, len(logits), step):
        rows = slice(start, start + step)
        labels = gold[rows, None]
        block = logits[rows].to(wide) if bias is None else logits[rows].to(wide) + bias
        gold_logits = block.gather(1, labels)
        largest = block.amax(dim=1, keepdim=True)
        mean_logits = block.mean(dim=1, keepdim=True) if label_smoothing else 0.0
        # In place, while the block is in the cache.
        sums = block.sub_(largest).exp_().sum(dim=1, keepdim=True)
        log_sums = largest + sums.log()
        smoothed = log_sums - (1.0 - label_smoothing) * gold_logits - label_smoothing * mean_logits
        losses[rows] = smoothed.squeeze(1)
        log_probs[rows] = (gold_logits - log_sums).squeeze(1)
        is_correct[rows] = (gold_logits >= largest).squeeze(1)
        if wants_gradient:
            gradient = block.div_(sums)
            if label_smoothing:
                gradient.sub_(label_smoothing / gradient.shape[1])
            gradient.scatter_add_(1, labels, torch.full_like(sums, label_smoothing - 1.0))
            logits[rows] = gradient
            if bias_gradient is not None:
                bias_gradient += gradient.sum(dim=0)
    return RowLosses(losses, log_probs, is_correct, bias_gradient)
