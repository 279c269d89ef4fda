"""Sums over all alignments of a target with a source: the forward algorithm of a hidden Markov model.

An alignment a_1 .. a_T says which source position each target token comes from. Its probability is a product of
transitions p(a_i = j | a_i-1) and emissions p(y_i | a_i = j); both may differ at every step. Rabiner 1989,
doi:10.1109/5.18626, section III.A; as attention: Wu and Cotterell 2019, arXiv:1905.06319, section 4.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.attention.structured_chain import log_sum


class AlignmentSums(NamedTuple):
    """Probabilities that are summed over all alignments of the tokens so far."""

    log_probs: Float[Tensor, "*batch target"]
    """[*batch, target] log p(y_i | y_1 .. y_i-1)."""
    log_priors: Float[Tensor, "*batch target position"]
    """[*batch, target, position] log p(a_i = j | y_1 .. y_i-1): before the token is known."""


def start_log_posterior(like: Float[Tensor, "*batch position"]) -> Float[Tensor, "*batch position"]:
    """Return the distribution of the position before the first token, which is certainly the first position.

    Args:
        like: [*batch, position] tensor of that shape and dtype.

    Returns:
        [*batch, position] 0 at the first position, -inf elsewhere.
    """
    positions = torch.arange(like.shape[-1], device=like.device)
    return torch.zeros_like(like).masked_fill(positions > 0, -torch.inf)


def advance(
    log_posterior: Float[Tensor, "*batch position"], log_transitions: Float[Tensor, "*batch _ position"]
) -> Float[Tensor, "*batch position"]:
    """Compute the distribution of the next position.

    Args:
        log_posterior: [*batch, position] log p(a_i-1 = j' | y_1 .. y_i-1).
        log_transitions: [*batch, position or 1, position] log p(a_i = j | a_i-1 = j'); 1 = it does not depend on j'.

    Returns:
        [*batch, position] log p(a_i = j | y_1 .. y_i-1).
    """
    if log_transitions.shape[-2] == 1:
        return log_transitions.squeeze(-2)
    return log_sum(log_posterior[..., :, None] + log_transitions, dim=-2)


def observe(
    log_prior: Float[Tensor, "*batch position"], log_emissions: Float[Tensor, "*batch position"]
) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch position"]]:
    """Compute the distribution of a position once its token is known.

    Args:
        log_prior: [*batch, position] from `advance`.
        log_emissions: [*batch, position] log p(y_i | a_i = j).

    Returns:
        [*batch] log p(y_i | y_1 .. y_i-1), and [*batch, position] log p(a_i = j | y_1 .. y_i).
    """
    joint = log_prior + log_emissions
    log_prob = torch.logsumexp(joint, dim=-1)
    return log_prob, joint - log_prob[..., None]


def sum_alignments(
    log_emissions: Float[Tensor, "batch target position"], log_transitions: Float[Tensor, "batch target _ position"]
) -> AlignmentSums:
    """Sum the probabilities of a target over all of its alignments.

    The gradient of the sum of `log_probs` with respect to `log_emissions` is the posterior of the alignment.

    Args:
        log_emissions: [batch, target, position] log p(y_i | a_i = j), finite.
        log_transitions: [batch, target, position or 1, position] log p(a_i = j | a_i-1 = j'), -inf = forbidden,
            but not from every position that can be reached. The row of j' = 0 is that of the first token.

    Returns:
        Log probabilities; later tokens change nothing in those of earlier ones.

    Cost: target * position^2 exponentials; target * position if transitions do not depend on j'.

    Example:
        >>> half = torch.full((1, 2, 2), 0.5).log()
        >>> sum_alignments(half, torch.full((1, 2, 2, 2), 0.5).log()).log_probs.exp()
        tensor([[0.5000, 0.5000]])
    """
    if log_transitions.shape[-2] == 1:
        independent = log_transitions.squeeze(-2).expand(log_emissions.shape)
        return AlignmentSums(torch.logsumexp(independent + log_emissions, dim=-1), independent)
    log_posterior = start_log_posterior(log_emissions[:, 0])
    log_probs: list[Tensor] = []
    log_priors: list[Tensor] = []
    for emissions, transitions in zip(log_emissions.unbind(1), log_transitions.unbind(1), strict=True):
        log_priors.append(advance(log_posterior, transitions))
        log_prob, log_posterior = observe(log_priors[-1], emissions)
        log_probs.append(log_prob)
    return AlignmentSums(torch.stack(log_probs, dim=1), torch.stack(log_priors, dim=1))


def alignment_posteriors(
    log_emissions: Float[Tensor, "batch target position"],
    log_transitions: Float[Tensor, "batch target _ position"],
    real: Bool[Tensor, "batch target"],
) -> Float[Tensor, "batch target position"]:
    """Compute the probability of each source position of each target token, given the whole target.

    Args:
        log_emissions: as for `sum_alignments`.
        log_transitions: as for `sum_alignments`.
        real: [batch, target] True where not padding, which is at the end.

    Returns:
        [batch, target, position] p(a_i = j | y), without gradient; zero where padded.

    Cost: twice that of `sum_alignments`.
    """
    with torch.inference_mode(False), torch.enable_grad():
        emissions = log_emissions.detach().clone().requires_grad_()
        sums = sum_alignments(emissions, log_transitions.detach().clone())
        (posteriors,) = torch.autograd.grad(sums.log_probs.masked_fill(~real, 0.0).sum(), emissions)
    return posteriors


def best_alignment(
    log_emissions: Float[Tensor, "batch target position"], log_transitions: Float[Tensor, "batch target _ position"]
) -> Int[Tensor, "batch target"]:
    """Find the most probable alignment of a target: Viterbi's algorithm.

    Args:
        log_emissions: as for `sum_alignments`.
        log_transitions: as for `sum_alignments`.

    Returns:
        [batch, target] source positions.
    """
    score = start_log_posterior(log_emissions[:, 0])
    origins: list[Tensor] = []
    for emissions, transitions in zip(log_emissions.unbind(1), log_transitions.unbind(1), strict=True):
        best, origin = (score[..., :, None] + transitions).max(dim=-2)
        origins.append(origin)
        score = best + emissions
    path = [score.argmax(dim=-1)]
    for origin in reversed(origins[1:]):
        path.append(origin.gather(-1, path[-1][..., None]).squeeze(-1))
    return torch.stack(path[::-1], dim=1)
