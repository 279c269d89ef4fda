"""Maximum likelihood of labels, label-smoothed."""

from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.models.inputs import TokenInputs
from heedful.training.loss import LossSum, TrainingStep


@final
class LabelStep(TrainingStep):
    """A text classifier and the cross-entropy of its labels."""

    def __init__(self, model: nn.Module, label_smoothing: float) -> None:
        """Join them.

        Args:
            model: gives scores of labels and attention, as a `heedful.models.label_model.LabelModel` does.
            label_smoothing: share of probability spread evenly over the labels, in [0, 1).
        """
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing

    def forward(self, *tensors: Tensor) -> LossSum:
        """Compute the summed loss of a batch.

        Args:
            tensors: [batch, position] token ids; [batch] lengths; [batch] labels.

        Returns:
            Sums over the batch.
        """
        ids, lengths, labels = tensors
        scores, encoded = self.model(TokenInputs(ids, lengths))
        scores = scores if scores.dtype == torch.float64 else scores.float()
        total = functional.cross_entropy(scores, labels, reduction="sum", label_smoothing=self.label_smoothing)
        if encoded.penalty is not None:
            total = total + encoded.penalty.sum()
        gold = functional.log_softmax(scores.detach(), dim=-1).gather(1, labels[:, None])
        num_correct = (scores.argmax(dim=-1) == labels).sum()
        return LossSum(total, gold.sum(), num_correct, labels.new_tensor(len(labels)))
