"""Cross-entropy of a vocabulary layer row by row: each loss has a gradient of its own, as sums over alignments need."""

from typing import Any, NamedTuple, final

import torch
from torch import Tensor
from torch.nn import functional

from heedful.cpu.concrete import concrete
from heedful.cpu.derivatives import differentiable_by
from heedful.training.cross_entropy_rows import take_losses


class RowCrossEntropy(NamedTuple):
    """Losses of rows, and what follows from their distributions."""

    losses: Tensor
    """[row] smoothed negative log likelihoods; the only field with gradient."""
    gold_log_probs: Tensor
    """[row] log probability of each gold token, without smoothing."""
    logit_gradients: Tensor
    """[row, vocabulary] p - (1 - e) onehot - e / V, of which p is the distribution of the row."""


def row_cross_entropy(
    features: Tensor, weight: Tensor, bias: Tensor, gold: Tensor, label_smoothing: float = 0.0
) -> RowCrossEntropy:
    """Compute -(1 - e) log p[gold] - e / V sum_v log p[v] of each row, p = softmax(features weight^T + bias).

    Args:
        features: [row, size].
        weight: [vocabulary, size].
        bias: [vocabulary].
        gold: [row] ids.
        label_smoothing: e, in [0, 1).

    Returns:
        Losses and log probabilities, in float32 at least.

    Cost: three products row * size * vocabulary with gradient; row * vocabulary numbers in memory.
    """
    return RowCrossEntropy(*_RowCrossEntropy.apply(features, weight, bias, gold, label_smoothing))


def _formula(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    return _plain(features, weight, bias, ctx.gold, ctx.label_smoothing)


def _plain(features: Tensor, weight: Tensor, bias: Tensor, gold: Tensor, label_smoothing: float) -> tuple[Tensor, ...]:
    logits = functional.linear(features, weight, bias)
    logits = logits if logits.dtype == torch.float64 else logits.float()
    losses = functional.cross_entropy(logits, gold, reduction="none", label_smoothing=label_smoothing)
    log_probs = torch.log_softmax(logits.detach(), dim=-1)
    gold_log_probs = log_probs.gather(-1, gold[:, None])
    gradients = log_probs.exp() - label_smoothing / logits.shape[-1]
    gradients = gradients.scatter_add(-1, gold[:, None], torch.full_like(gold_log_probs, label_smoothing - 1.0))
    return losses, gold_log_probs.squeeze(-1), gradients


@final
class _RowCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, gold: Tensor, label_smoothing: float
    ) -> tuple[Tensor, ...]:
        if concrete(features, weight, gold):
            gradients = features @ weight.mT
            rows = take_losses(gradients, bias, gold, label_smoothing, True)
            losses, gold_log_probs = rows.losses, rows.gold_log_probs
        else:
            losses, gold_log_probs, gradients = _plain(features, weight, bias, gold, label_smoothing)
        ctx.mark_non_differentiable(gold_log_probs, gradients)
        ctx.save_for_backward(features, weight, bias, gradients)
        ctx.gold, ctx.label_smoothing = gold, label_smoothing
        return losses, gold_log_probs, gradients

    @staticmethod
    @differentiable_by(_formula, num_inputs=3)
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        features, weight, bias, gradients = ctx.saved_tensors
        weighted = gradients * grads[0][:, None].to(gradients.dtype)
        # Products in the dtype of the forward pass, sums in that of the parameters.
        by_feature, by_weight = weighted @ weight.to(weighted.dtype), weighted.mT @ features.to(weighted.dtype)
        by_bias = weighted.to(bias.dtype).sum(dim=0)
        return by_feature.to(features.dtype), by_weight.to(weight.dtype), by_bias, None, None
