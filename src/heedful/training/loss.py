"""Maximum likelihood with teacher forcing, label-smoothed, over real tokens only."""

from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from heedful.models.inputs import TokenInputs
from heedful.models.interface import Seq2Seq
from heedful.text.vocabulary import PAD
from heedful.training.cross_entropy import linear_cross_entropy
from heedful.training.guided import alignment_loss


class LossSum(NamedTuple):
    """Sums over a batch, to be divided by counts over as many batches or ranks as make a step."""

    total: Tensor
    """What is minimised: smoothed negative log likelihood and extra losses, summed over real tokens."""
    log_likelihood: Tensor
    """Of the gold tokens, without smoothing, in nats; detached."""
    num_correct: Tensor
    """Gold tokens that are the most probable ones; detached."""
    num_tokens: Tensor
    """Real target tokens, eos included."""


@final
class TrainingStep(nn.Module):
    """Model and loss as one module: all that the training loop, and any wrapper around it, has to know."""

    def __init__(self, model: Seq2Seq, label_smoothing: float, alignment_weight: float = 0.0) -> None:
        """Join them.

        Args:
            model: a sequence-to-sequence model.
            label_smoothing: share of probability spread evenly over the vocabulary, in [0, 1);
                Szegedy et al. 2016: (1 - e) on the gold token, e / V on each.
            alignment_weight: of the loss that teaches attention the links of a batch; see `alignment_loss`.
        """
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.alignment_weight = alignment_weight

    def forward(
        self,
        source: Tensor,
        source_lengths: Tensor,
        target_in: Tensor,
        target_out: Tensor,
        links: Tensor | None = None,
    ) -> LossSum:
        """Compute the summed loss of a batch.

        Args:
            source: [batch, source] ids.
            source_lengths: [batch].
            target_in: [batch, target] bos and gold tokens.
            target_out: [batch, target] gold tokens and eos, padded with 0.
            links: [link, 3] row, target position and source position of linked tokens; None where nothing is taught.

        Returns:
            Sums over the batch.
        """
        taught = links if self.alignment_weight else None
        decoded = self.model(
            TokenInputs(source, source_lengths), target_in, need=() if taught is None else ("weights",)
        )
        real = target_out != PAD
        output = self.model.output
        layer = output.weight, output.bias
        # Padding never reaches the vocabulary layer, the largest product of a small model.
        gold = target_out[real]
        entropy = linear_cross_entropy(decoded.features[real], *layer, gold, self.label_smoothing)
        token_log_probs = torch.zeros_like(target_out, dtype=entropy.gold_log_probs.dtype)
        token_log_probs[real] = entropy.gold_log_probs
        total = entropy.total
        for extra in self.model.extra_losses(decoded, token_log_probs, real).values():
            total = total + extra
        if taught is not None and (weights := decoded.attended[self.model.alignment].weights) is not None:
            total = total + self.alignment_weight * alignment_loss(weights, taught)
        return LossSum(total, entropy.gold_log_probs.sum(), entropy.num_correct, real.sum())
