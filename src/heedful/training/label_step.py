"""Maximum likelihood of labels, label-smoothed; of sets of labels, and of distributions over labels."""

from collections.abc import Sequence
from typing import Any, Final, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from heedful.data.label_kinds import LabelKind, target_rows
from heedful.data.length_grid import ROWS
from heedful.models.inputs import Inputs, TokenInputs
from heedful.models.label_model import Encoded, LabelModel
from heedful.training.loss import LossSum, TrainingStep
from heedful.training.padded_batches import model_problem, padded_sources

NO_LABEL: Final = -1
"""Label of rows that are padding."""


@final
class LabelStep(TrainingStep):
    """A text classifier and the cross-entropy of its labels."""

    def __init__(
        self,
        model: LabelModel,
        label_smoothing: float,
        kind: type[Inputs] = TokenInputs,
        label_kind: LabelKind = "one",
    ) -> None:
        """Join them.

        Args:
            label_smoothing: share of probability spread evenly over the labels, in [0, 1); 0 where these are positions,
                some of which are padding.
            kind: record of the tensors that the model reads.
            label_kind: kind of the labels; of any other than "one" the loss is that of distributions over labels, or
                of each label by itself.
        """
        super().__init__()
        self.model = model
        self._extra_losses: Final = model.extra_losses
        self.label_smoothing = 0.0 if model.answers_with_spans else label_smoothing
        self.kind = kind
        self.label_kind: LabelKind = label_kind

    def forward(self, *tensors: Tensor) -> LossSum:
        """Compute the summed loss of a batch.

        Args:
            tensors: those of the inputs, such as [batch, position] token ids and [batch] lengths; [batch] labels,
                [batch, end] positions, or [batch, n] target ids of `heedful.data.label_kinds.encode_label`.
        """
        *source, labels = tensors
        scores, encoded = self.model(self.kind(*source))
        scores = scores if scores.dtype == torch.float64 else scores.float()
        if self.label_kind != "one":
            return self._loss_of_targets(scores, encoded, labels)
        if self.has_fixed_shape:
            return self._loss_of_padded(scores, encoded, labels)
        by_label, smoothing = scores.movedim(-1, 1), self.label_smoothing
        total = functional.cross_entropy(by_label, labels, reduction="sum", label_smoothing=smoothing)
        if encoded.penalty is not None:
            total = total + encoded.penalty.sum()
        gold = functional.log_softmax(scores.detach(), dim=-1).gather(-1, labels[..., None])[..., 0]
        for loss in self._extra_losses(encoded, gold).values():
            total = total + loss
        num_correct = (scores.argmax(dim=-1) == labels).view(len(labels), -1).all(dim=1).sum()
        return LossSum(total, gold.sum(), num_correct, labels.new_tensor(len(labels)))

    @property
    def recording_problem(self) -> str:
        if self.label_kind != "one":
            return "targets of several labels are made on the host"
        return model_problem(self.model)

    def pad(self, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        *sources, labels = arrays
        rows = [(0, -len(labels) % ROWS), *[(0, 0)] * (labels.ndim - 1)]
        return [*padded_sources(sources), np.pad(labels, rows, constant_values=NO_LABEL)]

    def _loss_of_padded(self, scores: Tensor, encoded: Encoded, labels: Tensor) -> LossSum:
        """Loss of a batch in which some rows are padding."""
        real = labels != NO_LABEL
        by_label, smoothing = scores.movedim(-1, 1), self.label_smoothing
        total = functional.cross_entropy(
            by_label, labels, reduction="sum", label_smoothing=smoothing, ignore_index=NO_LABEL
        )
        real_rows = real.view(len(labels), -1).all(dim=1)
        if encoded.penalty is not None:
            total = total + encoded.penalty.where(real_rows, 0.0).sum()
        log_probs = functional.log_softmax(scores.detach(), dim=-1)
        gold = log_probs.gather(-1, labels.clamp(min=0)[..., None])[..., 0].where(real, 0.0)
        num_correct = (scores.argmax(dim=-1) == labels).view(len(labels), -1).all(dim=1).sum()
        return LossSum(total, gold.sum(), num_correct, real_rows.sum())

    def _loss_of_targets(self, scores: Tensor, encoded: Encoded, labels: Tensor) -> LossSum:
        """Loss of sets of labels, or of distributions over labels."""
        rows = target_rows(self.label_kind, labels.cpu().numpy(), scores.shape[-1])
        targets = torch.from_numpy(rows).to(scores)
        detached = scores.detach()
        if self.label_kind == "several":
            total = functional.binary_cross_entropy_with_logits(scores, targets, reduction="sum")
            gold = -functional.binary_cross_entropy_with_logits(detached, targets, reduction="none").sum(dim=-1)
            are_correct = ((detached > 0) == (targets > 0.5)).all(dim=-1)
        else:
            total = functional.cross_entropy(scores, targets, reduction="sum", label_smoothing=self.label_smoothing)
            gold = (targets * functional.log_softmax(detached, dim=-1)).sum(dim=-1)
            are_correct = detached.argmax(dim=-1) == targets.argmax(dim=-1)
        if encoded.penalty is not None:
            total = total + encoded.penalty.sum()
        for loss in self._extra_losses(encoded, gold).values():
            total = total + loss
        return LossSum(total, gold.sum(), are_correct.sum(), labels.new_tensor(len(labels)))
