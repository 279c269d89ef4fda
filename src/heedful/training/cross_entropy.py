"""Vocabulary layer and cross-entropy in one, in blocks of rows: no [tokens, vocabulary] tensor is ever held.

Loss and gradient of a block are made while its logits are still in the cache, so a training step touches them
once rather than a dozen times. Liger-Kernel fuses the same way on GPUs.
"""

from typing import Any, Final, NamedTuple, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

BLOCK_ELEMENTS: Final = 2_000_000
"""Logits held at a time."""
BLOCKS_PER_PRODUCT: Final = 4
"""Blocks whose gradients, in the narrow type, are held for one product: each adds once to those of the weight."""


class CrossEntropy(NamedTuple):
    """Smoothed loss and plain log probabilities of gold tokens."""

    total: Tensor
    """Smoothed negative log likelihood, summed; only this carries gradient."""
    gold_log_probs: Tensor
    """[token] log probability of each gold token, without smoothing; 0 where a token does not count."""
    num_correct: Tensor
    """Gold tokens that no other token beats."""


def linear_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gold: Tensor,
    label_smoothing: float = 0.0,
    real: Tensor | None = None,
) -> CrossEntropy:
    """Compute cross-entropy of softmax(features weight^T + bias) against smoothed gold tokens.

    loss = -(1 - e) log p[gold] - e / V sum_v log p[v]; Szegedy et al. 2016, arXiv:1512.00567, section 7.

    Args:
        features: [token, size].
        weight: [vocabulary, size].
        bias: [vocabulary] or None.
        gold: [token] ids.
        label_smoothing: e, in [0, 1).
        real: [token] bool, which of them count; None = all. Where few do not, or where their number must not be asked
            of a device, this takes the place of leaving them out.

    Returns:
        Loss and log probabilities; accumulated in float32 at least.

    Cost: three products token * size * vocabulary with gradient, one without.
    """
    total, gold_log_probs, num_correct = _LinearCrossEntropy.apply(features, weight, bias, gold, label_smoothing, real)
    return CrossEntropy(total, gold_log_probs, num_correct)


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
        real: Tensor | None,
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
        rows = max(1, BLOCK_ELEMENTS // len(weight))
        for first in range(0, len(gold), BLOCKS_PER_PRODUCT * rows):
            inputs = features[first : first + BLOCKS_PER_PRODUCT * rows].to(compute)
            gradients = inputs.new_empty((len(inputs), len(weight)) if wants_gradient else ())
            for start in range(0, len(inputs), rows):
                block, within = slice(first + start, first + start + rows), slice(start, start + rows)
                labels = gold[block, None]
                logits = (inputs[within] @ narrow_weight.mT).to(gold_log_probs.dtype)
                if bias is not None:
                    logits += bias
                losses, log_probs, is_correct, sums = _losses(logits, labels, label_smoothing)
                if real is not None:
                    counts = real[block, None]
                    losses, is_correct = losses.masked_fill_(~counts, 0.0), is_correct & counts
                    log_probs = log_probs.masked_fill(~real[block], 0.0)
                gold_log_probs[block] = log_probs
                total += losses.sum()
                num_correct += is_correct.sum()
                if wants_gradient:
                    gradient = _gradient(logits, sums, labels, label_smoothing)
                    if real is not None:
                        gradient.masked_fill_(~real[block, None], 0.0)
                    gradients[within] = gradient
                    if bias_grad is not None:
                        bias_grad += gradient.sum(dim=0)
            if features_grad is not None and weight_grad is not None:
                features_grad[first : first + len(inputs)] = gradients @ narrow_weight
                weight_grad += gradients.mT @ inputs
        ctx.mark_non_differentiable(gold_log_probs, num_correct)
        if features_grad is not None and weight_grad is not None:
            ctx.save_for_backward(features_grad, weight_grad, *([] if bias_grad is None else [bias_grad]))
        return total, gold_log_probs, num_correct

    # The decorator's type says less than the method's.
    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        features_grad, weight_grad, *bias_grads = ctx.saved_tensors
        grad_total = grad_outputs[0]
        bias_grad = bias_grads[0] * grad_total if bias_grads else None
        return features_grad * grad_total, weight_grad * grad_total, bias_grad, None, None, None


def _losses(logits: Tensor, labels: Tensor, label_smoothing: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Compute the losses of a block, its gold log probabilities, hits and sums of exponentials.

    The logits [row, vocabulary] are overwritten by their exponentials, shifted by the largest of each row.
    """
    gold_logits = logits.gather(1, labels)
    largest = logits.amax(dim=1, keepdim=True)
    mean_logits = logits.mean(dim=1, keepdim=True) if label_smoothing else 0.0
    sums = logits.sub_(largest).exp_().sum(dim=1, keepdim=True)
    log_sums = largest + sums.log()
    losses = log_sums - (1.0 - label_smoothing) * gold_logits - label_smoothing * mean_logits
    return losses, (gold_logits - log_sums).squeeze(1), gold_logits >= largest, sums


def _gradient(exponentials: Tensor, sums: Tensor, labels: Tensor, label_smoothing: float) -> Tensor:
    """Turn the exponentials, in place, into d loss / d logits = p - (1 - e) onehot - e / V."""
    gradient = exponentials.div_(sums)
    if label_smoothing:
        gradient.sub_(label_smoothing / gradient.shape[1])
    return gradient.scatter_add_(1, labels, torch.full_like(sums, label_smoothing - 1.0))


def _wide(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype == torch.float64 else torch.float32


def _product_dtype(weight: Tensor) -> torch.dtype:
    """What autocast would multiply in; custom functions run outside of it."""
    device = weight.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
