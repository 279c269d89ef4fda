"""Guided alignment: a loss that teaches attention the alignment links of the target tokens.

Chen et al. 2016, arXiv:1607.01628; Garg et al. 2019, arXiv:1909.02074.
"""

import torch
from torch import Tensor


def alignment_loss(weights: Tensor, links: Tensor) -> Tensor:
    """Compute the cross-entropy of attention against links: -sum_t 1/|L_t| sum_{s in L_t} log weights[t, s].

    L_t are the source tokens linked to target token t; tokens without links have no loss. The attention of the step
    that predicts the token is trained, which is the one that `align` uses.

    Args:
        weights: [batch, target, source] or [batch, head, target, source]; with heads, their mean is trained.
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
    # A weight that underflowed to 0 has no useful gradient, and must not produce NaN.
    return -(linked.clamp_min(torch.finfo(linked.dtype).tiny).log() / num_links).sum()
