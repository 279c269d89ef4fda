"""REINFORCE for attention that draws keys: a loss from the log probabilities of the drawn keys."""

from collections.abc import Iterable
from typing import Final, Literal, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.attention.interface import Attended, Need, Normalizer
from heedful.attention.reinforce import reinforce_loss, update_baseline
from heedful.layers.normalizing import SoftStart

Reward = Literal["token", "sentence"]
"""token: reward of a drawn key is the log probability of its token; sentence: that of the whole target, as in Xu et al.
2015, section 4.1."""


@final
class Reinforcement(SoftStart):
    """REINFORCE with a moving baseline and an entropy bonus; Xu et al. 2015, arXiv:1502.03044, section 4.1.

    The baseline is a buffer, so that checkpoints include it. Attention whose weights have a gradient needs no REINFORCE
    and has no loss here.
    """

    baseline: Tensor | None

    def __init__(
        self, normalizer: Normalizer, reward: Reward, reward_weight: float, entropy_weight: float, decay: float
    ) -> None:
        """Create the loss, with a baseline of 0.

        Args:
            reward_weight: the paper's lambda_r, at least 0.
            entropy_weight: the paper's lambda_e, at least 0.
            decay: decay of the moving baseline, in [0, 1).
        """
        super().__init__()
        self._is_needed: Final = is_drawn(normalizer)
        self._reward: Final[Reward] = reward
        self._weights: Final = (reward_weight, entropy_weight)
        self._decay: Final = decay
        self.register_buffer("baseline", torch.zeros(()) if self._is_needed else None)

    @property
    def need(self) -> tuple[Need, ...]:
        """Results to request from `attend`: statistics of the draw in training, else none."""
        return ("log_prob", "entropy") if self._is_needed and self.training and not self.is_soft else ()

    def forward(
        self,
        attended: Iterable[Attended],
        token_log_probs: Float[Tensor, "batch target"],
        real: Bool[Tensor, "batch target"],
    ) -> dict[str, Tensor]:
        """Compute the loss of a batch, and move the baseline.

        Args:
            attended: attention results of the decoder; those without `log_prob` [batch, (head,) target] are ignored.
            token_log_probs: [batch, target] log probabilities of the gold tokens, in nats.
            real: [batch, target] True where not padding.

        Returns:
            "reinforce", summed over the batch; empty if no key was drawn. In a soft training step the baseline moves,
            but nothing is drawn.
        """
        baseline = self.baseline
        if baseline is None or not self.training:
            return {}
        rewards = token_log_probs.detach().to(torch.promote_types(token_log_probs.dtype, torch.float32))
        reward = rewards.masked_fill(~real, 0.0)
        mean = reward.sum() / real.sum()
        if self._reward == "sentence":
            reward = reward.sum(dim=-1)
            mean = reward.mean()
        if self.is_soft:
            baseline.copy_(update_baseline(baseline, mean, self._decay))
            return {}
        total = torch.zeros((), device=reward.device)
        for each in attended:
            if each.log_prob is None or each.entropy is None:
                continue
            # The head axis must follow the axes of the reward.
            log_prob, entropy = (
                part if part.dim() == real.dim() else part.movedim(1, -1) for part in (each.log_prob, each.entropy)
            )
            losses = reinforce_loss(log_prob, reward, baseline, entropy, *self._weights)
            shown = real if losses.dim() == real.dim() else real[..., None]
            total = total + losses.masked_fill(~shown, 0.0).sum()
        baseline.copy_(update_baseline(baseline, mean, self._decay))
        return {"reinforce": total}


def is_drawn(normalizer: Normalizer) -> bool:
    """Tell whether a normalizer is learned by REINFORCE.

    Returns:
        Whether its weights have no gradient, but it provides log probabilities.
    """
    return not normalizer.has_gradient and "log_prob" in normalizer.provides
