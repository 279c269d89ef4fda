"""Loss of targets whose alignment with the source is summed over: the exact likelihood of hard attention."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.attention.kernels.alignments.cpu_ops import fast_alignment_sums
from heedful.models.hard_attention import HardAttention
from heedful.models.inputs import Inputs
from heedful.training.loss import LossSum
from heedful.training.row_cross_entropy import row_cross_entropy


def marginal_loss(
    model: HardAttention,
    inputs: Inputs,
    target_in: Int[Tensor, "batch target"],
    target_out: Int[Tensor, "batch target"],
    real: Bool[Tensor, "batch target"],
    label_smoothing: float,
) -> LossSum:
    """Compute the summed loss of a batch: -log of the sum over alignments, over real tokens only.

    Smoothing acts on the emissions: what a source position emits is the smoothed log likelihood of the gold token.

    Args:
        target_in: [batch, target] BOS and gold tokens.
        target_out: [batch, target] gold tokens and EOS, padded with 0.
        real: [batch, target] True where not padding.
        label_smoothing: e, in [0, 1); (1 - e) on the gold token, e / V on each.
    """
    aligned = model.align(inputs, target_in)
    shape = aligned.features.shape[:3]
    gold = target_out[..., None].expand(shape)
    output = model.output
    rows = row_cross_entropy(
        aligned.features.flatten(0, 2), output.weight, model.output_bias(), gold.flatten(), label_smoothing
    )
    sums = fast_alignment_sums(-rows.losses.unflatten(0, shape), aligned.log_transitions)
    with torch.no_grad():
        log_emissions = rows.gold_log_probs.unflatten(0, shape)
        plain = fast_alignment_sums(log_emissions, aligned.log_transitions) if label_smoothing else sums
        # Distributions but for a constant, and for the share of the gold token.
        slopes = rows.logit_gradients.unflatten(0, shape)
        mixed = (plain.log_priors.exp().to(slopes.dtype)[:, :, None] @ slopes).squeeze(2)
        index = target_out[..., None]
        of_gold = mixed.gather(-1, index).squeeze(-1) + (1.0 - label_smoothing)
        is_correct = of_gold >= mixed.scatter(-1, index, -torch.inf).amax(dim=-1)
    return LossSum(
        -sums.log_probs[real].sum(), plain.log_probs[real].sum().detach(), (is_correct & real).sum(), real.sum()
    )
