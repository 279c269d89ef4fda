"""Loss of gold target sequences with teacher forcing, for sources of any kind."""

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.models.hard_attention import HardAttention
from heedful.models.inputs import Inputs
from heedful.models.interface import Seq2Seq
from heedful.text.vocabulary import PAD
from heedful.training.copy_cross_entropy import copy_cross_entropy
from heedful.training.cross_entropy import linear_cross_entropy
from heedful.training.guided import alignment_loss
from heedful.training.loss import LossSum
from heedful.training.marginal_loss import marginal_loss


def sequence_loss(
    model: Seq2Seq,
    inputs: Inputs,
    target_in: Int[Tensor, "batch target"],
    target_out: Int[Tensor, "batch target"],
    label_smoothing: float,
    taught: Int[Tensor, "link 3"] | None = None,
    alignment_weight: float = 0.0,
    is_packed: bool = True,
) -> LossSum:
    """Compute the summed loss of a batch: the smoothed likelihood of real tokens, and the model's extra losses.

    Args:
        target_in: [batch, target] BOS and gold tokens.
        target_out: [batch, target] gold tokens and EOS, padded with 0.
        label_smoothing: share of probability spread evenly over the vocabulary, in [0, 1); Szegedy et al. 2016:
            (1 - e) on the gold token, e / V on each.
        taught: [link, 3] row, target position and source position of aligned tokens; None = attention is not taught.
        alignment_weight: weight of the guided alignment loss; see `alignment_loss`.
        is_packed: whether padding is left out before the vocabulary layer, the largest product of a small model. If
            not, it has the weight 0 there, and no shape depends on how much of it there is.
    """
    real = target_out != PAD
    if isinstance(model, HardAttention):
        return marginal_loss(model, inputs, target_in, target_out, real, label_smoothing)
    decoded = model(inputs, target_in, need=() if taught is None else ("weights",))
    output = model.output
    layer = output.weight, output.bias
    if not is_packed:
        features, gold = decoded.features.flatten(0, 1), target_out.flatten()
        row_weights = real.flatten().to(torch.float32)
        entropy = linear_cross_entropy(features, *layer, gold, label_smoothing, row_weights)
        token_log_probs = (entropy.gold_log_probs * row_weights).unflatten(0, target_out.shape)
    else:
        gold, features = target_out[real], decoded.features[real]
        if decoded.copying is None:
            entropy = linear_cross_entropy(features, *layer, gold, label_smoothing)
        else:
            log_generated, log_copied = decoded.copying.gold_shares(target_out, real)
            entropy = copy_cross_entropy(features, *layer, gold, log_generated, log_copied, label_smoothing)
        token_log_probs = torch.zeros_like(target_out, dtype=entropy.gold_log_probs.dtype)
        token_log_probs[real] = entropy.gold_log_probs
    total = entropy.total
    for extra in model.extra_losses(decoded, token_log_probs, real).values():
        total = total + extra
    if taught is not None and (weights := decoded.attended[model.alignment].weights) is not None:
        if (seen := decoded.attended_positions) is not None:
            taught = taught[seen[taught[:, 0], taught[:, 2]]]  # nothing else can have weight
        total = total + alignment_weight * alignment_loss(weights, taught)
    # Padding has the log probability 0 where it was not left out.
    log_likelihood = (entropy.gold_log_probs if is_packed else token_log_probs).sum()
    return LossSum(total, log_likelihood, entropy.num_correct, real.sum())
