"""Guided alignment: a loss that teaches attention the alignment links of the target tokens.

Chen et al. 2016, arXiv:1607.01628; Garg et al. 2019, arXiv:1909.02074.
"""

import torch
from torch import Tensor


def alignment_loss(weights: Tensor, links: Tensor) -> Tensor:
    """Compute the cross-entropy of attention against links: -sum_t 1/|L_t| sum_{s in L_t} log weights[t, s].

    L_t are the source tokens that target token t is linked to; one that is linked to none has no loss. The step that
    is taught is the one that says the token, so the attention is what `align` reads.

    Args:
        weights: [batch, target, source] or [batch, head, target, source]; the mean over heads is taught.
        links: [link, 3] row of the batch, target position and source position, each link once.

    Returns:
        The sum over all target tokens, in float32 at least.

    Example:
        >>> alignment_loss(torch.tensor([[[0.5, 0.5]]]), torch.tensor([[0, 0, 1]]))
        tensor(0.6931)
    """
    row, target, source = links.unbind(dim=1)
    indices = row * weights.shape[-2] + target
    num_links = torch.bincount(indices, minlength=weights.shape[0] * weights.shape[-2])[indices]
    if weights.dim() == 4:
        weights = weights.mean(dim=1)
    linked = weights[row, target, source]
    linked = linked if linked.dtype == torch.float64 else linked.float()
    # A weight that fell below the smallest number has no gradient that could lift it, and must not make a NaN.
    return -(linked.clamp_min(torch.finfo(linked.dtype).tiny).log() / num_links).sum()
