"""Maximum likelihood of target sequences with teacher forcing, label-smoothed, over real tokens only."""

from typing import final

import torch
from torch import Tensor

from heedful.models.inputs import TokenInputs
from heedful.models.interface import Seq2Seq
from heedful.text.vocabulary import PAD
from heedful.training.copy_cross_entropy import copy_cross_entropy
from heedful.training.cross_entropy import linear_cross_entropy
from heedful.training.guided import alignment_loss
from heedful.training.loss import LossSum, TrainingStep


@final
class PairStep(TrainingStep):
    """A sequence-to-sequence model and the loss of its targets."""

    def __init__(self, model: Seq2Seq, label_smoothing: float, alignment_weight: float = 0.0) -> None:
        """Combine model and loss.

        Args:
            model: a sequence-to-sequence model.
            label_smoothing: share of probability spread evenly over the vocabulary, in [0, 1);
                Szegedy et al. 2016: (1 - e) on the gold token, e / V on each.
            alignment_weight: weight of the guided alignment loss; see `alignment_loss`.
        """
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.alignment_weight = alignment_weight

    def forward(self, *tensors: Tensor) -> LossSum:
        """Compute the summed loss of a batch.

        Args:
            tensors: [batch, source] source ids; [batch] source lengths; [batch, target] BOS and gold tokens; [batch,
                target] gold tokens and EOS, padded with 0; and optionally [link, 3] row, target position and source
                position of linked tokens.

        Returns:
            Sums over the batch.

        Raises:
            TypeError: the model belongs to another task.
        """
        model = self.model
        if not isinstance(model, Seq2Seq):
            raise TypeError(f"pairs need a sequence-to-sequence model, got {type(model).__name__}")
        source, source_lengths, target_in, target_out, *more = tensors
        links = more[0] if more else None
        taught = links if self.alignment_weight else None
        decoded = model(TokenInputs(source, source_lengths), target_in, need=() if taught is None else ("weights",))
        real = target_out != PAD
        output = model.output
        layer = output.weight, output.bias
        # Padding never reaches the vocabulary layer, the largest product of a small model.
        gold = target_out[real]
        features = decoded.features[real]
        if decoded.copying is None:
            entropy = linear_cross_entropy(features, *layer, gold, self.label_smoothing)
        else:
            log_generated, log_copied = decoded.copying.gold_shares(target_out, real)
            entropy = copy_cross_entropy(features, *layer, gold, log_generated, log_copied, self.label_smoothing)
        token_log_probs = torch.zeros_like(target_out, dtype=entropy.gold_log_probs.dtype)
        token_log_probs[real] = entropy.gold_log_probs
        total = entropy.total
        for extra in model.extra_losses(decoded, token_log_probs, real).values():
            total = total + extra
        if taught is not None and (weights := decoded.attended[model.alignment].weights) is not None:
            total = total + self.alignment_weight * alignment_loss(weights, taught)
        return LossSum(total, entropy.gold_log_probs.sum(), entropy.num_correct, real.sum())
