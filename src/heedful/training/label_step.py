"""Maximum likelihood of labels, label-smoothed."""

from typing import Final, final

import torch
from torch import Tensor
from torch.nn import functional

from heedful.models.inputs import Inputs, TokenInputs
from heedful.models.label_model import LabelModel
from heedful.training.loss import LossSum, TrainingStep


@final
class LabelStep(TrainingStep):
    """A text classifier and the cross-entropy of its labels."""

    def __init__(self, model: LabelModel, label_smoothing: float, kind: type[Inputs] = TokenInputs) -> None:
        """Join them.

        Args:
            label_smoothing: share of probability spread evenly over the labels, in [0, 1); 0 where these are positions,
                some of which are padding.
            kind: record of the tensors that the model reads.
        """
        super().__init__()
        self.model = model
        self._extra_losses: Final = model.extra_losses
        self.label_smoothing = 0.0 if model.answers_with_spans else label_smoothing
        self.kind = kind

    def forward(self, *tensors: Tensor) -> LossSum:
        """Compute the summed loss of a batch.

        Args:
            tensors: those of the inputs, such as [batch, position] token ids and [batch] lengths; [batch] labels, or
                [batch, end] positions.
        """
        *source, labels = tensors
        scores, encoded = self.model(self.kind(*source))
        scores = scores if scores.dtype == torch.float64 else scores.float()
        by_label, smoothing = scores.movedim(-1, 1), self.label_smoothing
        total = functional.cross_entropy(by_label, labels, reduction="sum", label_smoothing=smoothing)
        if encoded.penalty is not None:
            total = total + encoded.penalty.sum()
        gold = functional.log_softmax(scores.detach(), dim=-1).gather(-1, labels[..., None])[..., 0]
        for loss in self._extra_losses(encoded, gold).values():
            total = total + loss
        num_correct = (scores.argmax(dim=-1) == labels).view(len(labels), -1).all(dim=1).sum()
        return LossSum(total, gold.sum(), num_correct, labels.new_tensor(len(labels)))
