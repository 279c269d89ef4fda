"""Vocabulary layer and cross-entropy in one, in groups of rows: no [tokens, vocabulary] tensor exists.

Loss and gradient of a group replace its logits in memory, so a training step touches them twice rather than a dozen
times. Liger-Kernel fuses the same way on GPUs.
"""

from functools import partial
from typing import Any, Final, NamedTuple, final

import torch
from torch import Tensor
from torch.nn import functional

from heedful.cpu.concrete import concrete
from heedful.cpu.derivatives import differentiable_by
from heedful.cpu.operands import refuse
from heedful.errors import UsageError
from heedful.layers.packing import ROW_MULTIPLE, round_up
from heedful.training.cross_entropy_rows import RowLosses, take_losses

_NO_CLASS: Final = -(1 << 62)
"""Class that no row has: PyTorch would leave out rows of the class -100."""
GROUP_ELEMENTS: Final = 8_000_000
"""Number of logits in memory at a time; each group adds once to the gradient of the weight."""
LARGE_GROUP_ELEMENTS: Final = 1 << 27
"""The same on a GPU."""


class CrossEntropy(NamedTuple):
    """Smoothed loss and plain log probabilities of gold tokens."""

    total: Tensor
    """Sum of the smoothed negative log likelihood; the only field with gradient."""
    gold_log_probs: Tensor
    """[token] log probability of each gold token, without smoothing."""
    num_correct: Tensor
    """Number of gold tokens that are the most probable ones."""


def linear_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gold: Tensor,
    label_smoothing: float = 0.0,
    row_weights: Tensor | None = None,
) -> CrossEntropy:
    """Compute cross-entropy of softmax(features weight^T + bias) against smoothed gold tokens.

    loss = -(1 - e) log p[gold] - e / V sum_v log p[v]; Szegedy et al. 2016, arXiv:1512.00567, section 7.

    Args:
        features: [token, size].
        weight: [vocabulary, size].
        bias: [vocabulary] or None.
        gold: [token] ids.
        label_smoothing: e, in [0, 1).
        row_weights: [token] factors of the losses, which get no gradient; a token of weight 0 counts as no correct one;
            None = 1.

    Returns:
        Loss and log probabilities; accumulated in float32 at least.

    Raises:
        ShapeError: shapes differ that must agree, numbers are of other types, gold tokens are no ids, or on a CPU an id
            is outside the vocabulary.
        UsageError: label_smoothing is outside [0, 1).

    Cost: three products token * size * vocabulary with gradient, one without.
    """
    _require_operands(features, weight, bias, gold, row_weights)
    if not 0.0 <= label_smoothing < 1.0:
        raise UsageError(f"linear_cross_entropy: label_smoothing must be in [0, 1), got {label_smoothing}")
    if not (torch.compiler.is_compiling() or concrete(features, weight, gold)):
        return _plain(features, weight, bias, gold, label_smoothing, row_weights)
    total, gold_log_probs, num_correct = _LinearCrossEntropy.apply(
        features, weight, bias, gold, label_smoothing, row_weights
    )
    return CrossEntropy(total, gold_log_probs, num_correct)


def _require_operands(
    features: Tensor, weight: Tensor, bias: Tensor | None, gold: Tensor, row_weights: Tensor | None
) -> None:
    vocabulary, tokens = weight.shape[:1], features.shape[:1]
    if (
        features.dim() != 2
        or weight.shape != (*vocabulary, features.shape[1])
        or gold.shape != tokens
        or not len(weight)
        or not (bias is None or bias.shape == vocabulary)
        or not (row_weights is None or row_weights.shape == tokens)
    ):
        problem = "shapes do not fit each other"
    elif not (features.is_floating_point() and weight.is_floating_point()) or not (
        bias is None or bias.is_floating_point()
    ):
        problem = "features, weight and bias must be floating-point"
    elif row_weights is not None and row_weights.is_complex():
        problem = "row_weights must be real"
    else:
        return
    refuse(
        "linear_cross_entropy", problem, features=features, weight=weight, bias=bias, gold=gold, row_weights=row_weights
    )


def _plain(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gold: Tensor,
    label_smoothing: float,
    row_weights: Tensor | None,
) -> CrossEntropy:
    """Cross-entropy in plain operations, all logits in memory."""
    logits = functional.linear(features, weight, bias).to(_wide(weight.dtype))
    entropy = partial(functional.cross_entropy, ignore_index=_NO_CLASS)
    if row_weights is None:
        total = entropy(logits, gold, reduction="sum", label_smoothing=label_smoothing)
    else:
        losses = entropy(logits, gold, reduction="none", label_smoothing=label_smoothing)
        total = (losses * row_weights.detach()).sum()
    gold_log_probs = -entropy(logits.detach(), gold, reduction="none")
    return CrossEntropy(total, gold_log_probs, (logits.argmax(dim=-1) == gold).sum())


def _formula(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, ...]:
    return _plain(features, weight, bias, ctx.gold, ctx.label_smoothing, ctx.row_weights)


@final
class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        gold: Tensor,
        label_smoothing: float,
        row_weights: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        wants_gradient = any(ctx.needs_input_grad[:3])
        gold_log_probs = torch.empty(len(gold), dtype=_wide(weight.dtype), device=weight.device)
        total = gold_log_probs.new_zeros(())
        num_correct = torch.zeros((), dtype=torch.int64, device=weight.device)
        features_grad = torch.empty_like(features) if wants_gradient else None
        weight_grad = torch.zeros_like(weight) if wants_gradient else None
        bias_grad = torch.zeros_like(bias) if wants_gradient and bias is not None else None
        compute = _product_dtype(weight)
        narrow_weight = weight.to(compute)
        # A GPU has the memory, and one chain of large operations keeps it busy.
        rows = max(1, (GROUP_ELEMENTS if weight.device.type == "cpu" else LARGE_GROUP_ELEMENTS) // len(weight))
        multiple = ROW_MULTIPLE if rows >= ROW_MULTIPLE else 1
        rows -= rows % multiple
        for start in range(0, len(gold), rows):
            group = slice(start, min(start + rows, len(gold)))
            inputs = _filled(features[group].to(compute), multiple)
            logits = inputs @ narrow_weight.mT
            size = group.stop - start
            row_losses = take_losses(logits[:size], bias, gold[group], label_smoothing, wants_gradient)
            if row_weights is not None:
                row_losses = _weighted(row_losses, row_weights[group], logits[:size])
            gold_log_probs[group] = row_losses.gold_log_probs
            total += row_losses.losses.sum()
            num_correct += row_losses.is_correct.sum()
            if features_grad is not None and weight_grad is not None:
                # The logits have been overwritten by gradients.
                logits[size:].zero_()
                features_grad[group] = (logits @ narrow_weight)[:size]
                weight_grad += logits.mT @ inputs
            if bias_grad is not None and row_losses.bias_gradient is not None:
                bias_grad += row_losses.bias_gradient
        ctx.mark_non_differentiable(gold_log_probs, num_correct)
        if features_grad is not None and weight_grad is not None:
            ctx.save_for_backward(features, weight, bias, features_grad, weight_grad, bias_grad)
            ctx.gold, ctx.label_smoothing, ctx.row_weights = gold, label_smoothing, row_weights
        return total, gold_log_probs, num_correct

    @staticmethod
    @differentiable_by(_formula, num_inputs=3)
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        _, _, _, *grads = ctx.saved_tensors
        return (*(None if grad is None else grad * grad_outputs[0] for grad in grads), None, None, None)


def _weighted(row_losses: RowLosses, row_weights: Tensor, gradient: Tensor) -> RowLosses:
    """Multiply losses, and their gradients [row, vocabulary] in place, by factors."""
    gradient *= row_weights[:, None].to(gradient.dtype)
    bias_gradient = None if row_losses.bias_gradient is None else gradient.to(row_losses.bias_gradient.dtype).sum(0)
    return row_losses._replace(
        losses=row_losses.losses * row_weights,
        is_correct=row_losses.is_correct & (row_weights != 0.0),
        bias_gradient=bias_gradient,
    )


def _filled(rows: Tensor, multiple: int) -> Tensor:
    """Rows zero-padded to a size for which kernels are generated already."""
    missing = round_up(len(rows), multiple) - len(rows)
    return functional.pad(rows, (0, 0, 0, missing)) if missing else rows


def _wide(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype == torch.float64 else torch.float32


def _product_dtype(weight: Tensor) -> torch.dtype:
    """Dtype of products under autocast, which does not reach custom functions."""
    device = weight.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
