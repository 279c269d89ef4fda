"""Guided alignment: a loss that teaches attention the alignment links of the target tokens.

Chen et al. 2016, arXiv:1607.01628; Garg et al. 2019, arXiv:1909.02074. For the regions of pictures: Liu et al. 2017,
arXiv:1605.09553, "Attention correctness in neural image captioning".
"""

from dataclasses import dataclass
from typing import Final, final

import torch
from jaxtyping import Int
from torch import Tensor, nn

from heedful.layers.normalizing import is_soft


@final
@dataclass(frozen=True)
class Guidance:
    """Links that a training teaches to attention, and how."""

    weight: float = 0.0
    """Weight of `alignment_loss`; 0 = attention is not taught."""
    alignment_shift: int = 0
    """Number of decoder steps between the one that predicts a token and the one whose attention is taught its links;
    1 = the step that reads the token, Chen et al. 2020, arXiv:2004.14837, section 3."""
    is_for_soft_steps: bool = False
    """Restriction to soft training steps, for attention whose weights may be 0: the loss needs their logarithms."""

    def taught(self, model: nn.Module, links: Int[Tensor, "link 3"] | None) -> Int[Tensor, "link 3"] | None:
        """Select what a training step teaches.

        Args:
            model: the model, which knows whether the step is soft.
            links: [link, 3] row, target position and source position of the batch; None = it has none.

        Returns:
            The same, of the step that is taught; None = attention is not taught.
        """
        if links is None or not self.weight or (self.is_for_soft_steps and not is_soft(model)):
            return None
        # EOS has no links, so every taught step is one of the target.
        return links + links.new_tensor([0, self.alignment_shift, 0]) if self.alignment_shift else links


NO_GUIDANCE: Final = Guidance()


def alignment_loss(weights: Tensor, links: Tensor) -> Tensor:
    """Compute the cross-entropy of attention against links: -sum_t 1/|L_t| sum_{s in L_t} log weights[t, s].

    L_t are the source tokens or regions linked to target token t; tokens without links have no loss. The attention of
    the step that predicts the token is trained, which is the one that `align` uses.

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
