"""REINFORCE: the loss of drawn keys, and the baseline of their rewards.

Williams 1992, doi:10.1007/BF00992696; for attention Xu et al. 2015, arXiv:1502.03044, section 4.1.
"""

from jaxtyping import Float
from torch import Tensor

from heedful.errors import ShapeError


def reinforce_loss(
    log_prob: Float[Tensor, "..."],
    reward: Float[Tensor, "*leading"],
    baseline: Tensor | float,
    entropy: Float[Tensor, "..."],
    reward_weight: float = 1.0,
    entropy_weight: float = 0.0,
) -> Float[Tensor, "..."]:
    """Compute the REINFORCE loss, to be added to the negative log likelihood.

    loss = -reward_weight (reward - baseline) log_prob - entropy_weight entropy, where reward and baseline carry no
    gradient. With weight 1 its expected gradient is that of -E[reward], for any baseline. Xu et al. 2015,
    arXiv:1502.03044, section 4.1, who sum over steps and average over images; their code has 0.1 and 0.002.

    Args:
        log_prob: [*leading, *step] log probabilities of the drawn keys; 0 where none was drawn.
        reward: [*leading], log p(y | drawn keys, source) in the paper; its axes are the first axes of `log_prob`.
        baseline: [] or shaped like `reward`: expected reward.
        entropy: [*leading, *step] entropies of the distributions, in nats.
        reward_weight: the paper's lambda_r, at least 0.
        entropy_weight: the paper's lambda_e, at least 0.

    Returns:
        [*leading, *step] the loss of each draw, to be summed without padding.

    Raises:
        ShapeError: the axes of the reward are not the first axes of `log_prob`.

    Example:
        >>> import torch
        >>> reinforce_loss(torch.tensor([-1.0]), torch.tensor([2.0]), 0.5, torch.tensor([0.0])).tolist()
        [1.5]
    """
    if reward.shape != log_prob.shape[: reward.dim()]:
        raise ShapeError(f"reinforce_loss: reward {list(reward.shape)} does not fit log_prob {list(log_prob.shape)}")
    advantage = (reward - baseline).detach().reshape(*reward.shape, *(1,) * (log_prob.dim() - reward.dim()))
    return -reward_weight * advantage * log_prob - entropy_weight * entropy


def update_baseline(baseline: Float[Tensor, ""], reward: Float[Tensor, "..."], decay: float = 0.9) -> Float[Tensor, ""]:
    """Move the baseline towards the mean reward of a minibatch: b <- decay b + (1 - decay) mean(reward).

    Xu et al. 2015, section 4.1. The caller holds the baseline, for example as a buffer of the model that starts at 0.

    Args:
        baseline: [].
        reward: [*] rewards of one minibatch, not empty.
        decay: decay rate in [0, 1).

    Returns:
        [] the new baseline, without gradient, in the dtype of the old one.

    Example:
        >>> import torch
        >>> update_baseline(torch.tensor(1.0), torch.tensor([3.0]), decay=0.5).item()
        2.0
    """
    return decay * baseline.detach() + (1.0 - decay) * reward.detach().to(baseline.dtype).mean()
