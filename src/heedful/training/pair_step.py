"""Maximum likelihood of target sequences with teacher forcing, label-smoothed, over real tokens only."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, final

from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.models.inputs import Inputs, TokenInputs
from heedful.models.interface import Seq2Seq
from heedful.training.guided import NO_GUIDANCE, Guidance
from heedful.training.loss import LossSum, TrainingStep
from heedful.training.padded_batches import model_problem, padded_sources, padded_targets
from heedful.training.sequence_loss import sequence_loss


@final
class PairStep(TrainingStep):
    """A sequence-to-sequence model and the loss of its targets, such as translations or captions."""

    def __init__(
        self,
        model: nn.Module,
        label_smoothing: float,
        guidance: Guidance = NO_GUIDANCE,
        kind: type[Inputs] = TokenInputs,
    ) -> None:
        """Combine model and loss.

        Args:
            model: a sequence-to-sequence model (`heedful.models.interface.Seq2Seq`).
            label_smoothing: share of probability spread evenly over the vocabulary, in [0, 1);
                Szegedy et al. 2016: (1 - e) on the gold token, e / V on each.
            guidance: guided alignment; none by default.
            kind: kind of the sources.
        """
        super().__init__()
        self.model = model
        self.kind = kind
        self.label_smoothing = label_smoothing
        self.guidance = guidance

    def forward(self, *tensors: Tensor) -> LossSum:
        """Compute the summed loss of a batch.

        Args:
            tensors: the fields of the sources; [batch, target] BOS and gold tokens; [batch, target] gold tokens and
                EOS, padded with 0; and optionally [link, 3] row, target position and source position, or region, of
                linked tokens.

        Raises:
            TypeError: the model belongs to another task.
        """
        model = self.model
        if not isinstance(model, Seq2Seq):
            raise TypeError(f"pairs need a sequence-to-sequence model, got {type(model).__name__}")
        number = len(fields(self.kind))
        target_in, target_out, *more = tensors[number:]
        taught = self.guidance.taught(model, more[0] if more else None)
        return sequence_loss(
            model,
            self.kind(*tensors[:number]),
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
        """Pad a batch to one of few shapes; the padding counts for nothing.

        Args:
            arrays: those of the sources, target in, target out.

        Returns:
            The same; added rows repeat the last source, and have no target.

        Example:
            >>> import numpy as np
            >>> ids, step = np.array([[5, 3]]), PairStep(nn.Identity(), 0.1)
            >>> [list(part.shape) for part in step.pad((ids, np.array([2]), ids, ids))]
            [[8, 2], [8], [8, 2], [8, 2]]
        """
        *sources, target_in, target_out = arrays
        return [*padded_sources(sources), padded_targets(target_in), padded_targets(target_out)]
