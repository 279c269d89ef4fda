"""Copying of source tokens into the output: pointer-generator. See et al. 2017, arXiv:1704.04368, section 2.2.

P(w) = p_gen P_vocab(w) + (1 - p_gen) sum_{j: x_j = w} alpha_j (eq. 9), for source tokens x_j with attention weights
alpha_j. The paper computes p_gen from context, state and word (eq. 8); here p_gen = sigmoid(w . features + b), where
the features, which every model computes from these three, are the input of the vocabulary layer.
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional


@final
@dataclass(frozen=True)
class Copying:
    """Distribution over the tokens of the source, and the probability of using the vocabulary instead.

    A query is a target position in training, and a hypothesis in a step.
    """

    logit: Float[Tensor, "source query"]
    """[source, query] logit of p_gen, the probability of using the vocabulary."""
    weights: Float[Tensor, "source query position"]
    """[source, query, position] attention weights."""
    source: Int[Tensor, "source position"]
    """[source, position] token ids, in the vocabulary of the target."""

    def mixed(self, log_probs: Float[Tensor, "source query vocabulary"]) -> Float[Tensor, "source query vocabulary"]:
        """Mix the two distributions.

        Args:
            log_probs: [source, query, vocabulary] log P_vocab.

        Returns:
            [source, query, vocabulary] log P; weights that sum to less than 1 leave out a part.

        Cost: two exponentials and a logarithm per token of the vocabulary.
        """
        logit = self.logit[..., None].to(log_probs.dtype)
        index = self.source[:, None].expand(self.weights.shape)
        copied = torch.zeros_like(log_probs).scatter_add(-1, index, self.weights.to(log_probs.dtype))
        mixed = torch.sigmoid(logit) * log_probs.exp() + torch.sigmoid(-logit) * copied
        return mixed.clamp_min(torch.finfo(log_probs.dtype).tiny).log()

    def gold_shares(
        self, gold: Int[Tensor, "source target"], real: Bool[Tensor, "source target"]
    ) -> tuple[Float[Tensor, " token"], Float[Tensor, " token"]]:
        """Return the two shares of the gold tokens' probabilities, without that of the vocabulary.

        Args:
            gold: [source, target] token ids.
            real: [source, target] True where not padding.

        Returns:
            [token] log p_gen and log of (1 - p_gen) times the weights of the source positions with the gold token.
        """
        is_gold = self.source[:, None] == gold[..., None]
        weights = (self.weights * is_gold).sum(dim=-1)[real]
        logit = self.logit[real]
        wide = logit if logit.dtype == torch.float64 else logit.float()
        # The logarithm of 0 has no gradient of use.
        log_copied = weights.to(wide.dtype).clamp_min(torch.finfo(wide.dtype).tiny).log()
        return functional.logsigmoid(wide), functional.logsigmoid(-wide) + log_copied
