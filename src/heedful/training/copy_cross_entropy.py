"""Cross-entropy of a vocabulary layer mixed with copied source tokens; See et al. 2017, arXiv:1704.04368, eq. 9."""

import torch
from torch import Tensor

from heedful.training.cross_entropy import CrossEntropy, linear_cross_entropy


def copy_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gold: Tensor,
    log_generated: Tensor,
    log_copied: Tensor,
    label_smoothing: float = 0.0,
) -> CrossEntropy:
    """Compute -log(p_gen P_vocab[gold] + copied) without a [token, vocabulary] tensor.

    The gradient of log P_vocab[gold] is that of the plain cross-entropy times the share of the gold token's probability
    that the vocabulary has, so the fused operation computes it with this share as a factor of each row. Label smoothing
    changes this gradient only.

    Args:
        features: [token, size].
        weight: [vocabulary, size].
        bias: [vocabulary] or None.
        gold: [token] ids.
        log_generated: [token] log p_gen.
        log_copied: [token] log of (1 - p_gen) times the weights of the source positions with the gold token.
        label_smoothing: e, in [0, 1), for the distribution of the vocabulary.

    Returns:
        Loss and log probabilities; accumulated in float32 at least. Tokens count as correct if they are the most

    Cost: one product token * size * vocabulary more than `linear_cross_entropy`.
    """
    with torch.no_grad():
        generated = linear_cross_entropy(features, weight, bias, gold)
    gold_log_probs = torch.logaddexp(log_generated + generated.gold_log_probs, log_copied)
    share = (log_generated + generated.gold_log_probs - gold_log_probs).detach().exp()
    of_vocabulary = linear_cross_entropy(features, weight, bias, gold, label_smoothing, share).total
    # The added term is zero and has the gradient of the vocabulary layer.
    total = (of_vocabulary - of_vocabulary.detach()) - gold_log_probs.sum()
    return CrossEntropy(total, gold_log_probs.detach(), generated.num_correct)
