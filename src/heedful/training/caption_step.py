"""Maximum likelihood of captions with teacher forcing, label-smoothed, over real tokens only."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, final

from numpy.typing import NDArray
from torch import Tensor

from heedful.models.inputs import Inputs
from heedful.models.interface import Seq2Seq
from heedful.training.guided import NO_GUIDANCE, Guidance
from heedful.training.loss import LossSum, TrainingStep
from heedful.training.padded_batches import model_problem, padded_sources, padded_targets
from heedful.training.sequence_loss import sequence_loss


@final
class CaptionStep(TrainingStep):
    """A model that reads images, and the loss of their captions."""

    def __init__(
        self, model: Seq2Seq, kind: type[Inputs], label_smoothing: float, guidance: Guidance = NO_GUIDANCE
    ) -> None:
        """Combine model and loss.

        Args:
            label_smoothing: as for `heedful.training.sequence_loss.sequence_loss`.
            guidance: guided alignment of words and regions; none by default.
        """
        super().__init__()
        self.model = model
        self.kind = kind
        self.label_smoothing = label_smoothing
        self.guidance = guidance

    def forward(self, *tensors: Tensor) -> LossSum:
        """Compute the summed loss of a batch.

        Args:
            tensors: [batch, target] BOS and gold tokens; [batch, target] gold tokens and EOS, padded with 0; the
                fields of the images; and optionally [link, 3] row, target position and region of linked tokens.

        Raises:
            TypeError: the model belongs to another task.
        """
        model = self.model
        if not isinstance(model, Seq2Seq):
            raise TypeError(f"captions need a sequence-to-sequence model, got {type(model).__name__}")
        target_in, target_out, *images = tensors
        number = len(fields(self.kind))
        taught = self.guidance.taught(model, images[number] if len(images) > number else None)
        inputs = self.kind(*images[:number])
        return sequence_loss(
            model,
            inputs,
            target_in,
            target_out,
            self.label_smoothing,
            taught,
            self.guidance.weight,
            is_packed=not self.has_fixed_shape,
        )

    @property
    def recording_problem(self) -> str:
        if self.guidance.weight:
            return "batches have different numbers of alignment links"
        return model_problem(self.model)

    def pad(self, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        target_in, target_out, *images = arrays
        return [padded_targets(target_in), padded_targets(target_out), *padded_sources(images)]
