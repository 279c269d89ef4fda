"""Maximum likelihood of target sequences with teacher forcing, label-smoothed, over real tokens only."""

from collections.abc import Sequence
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.layers.normalizing import NormalizerLayer
from heedful.models.attentive import AttentiveSeq2Seq
from heedful.models.hard_attention import HardAttention
from heedful.models.inputs import TokenInputs
from heedful.models.interface import Seq2Seq
from heedful.text.vocabulary import EOS
from heedful.training.guided import NO_GUIDANCE, Guidance
from heedful.training.loss import LossSum, TrainingStep
from heedful.training.sequence_loss import sequence_loss

LENGTH_MULTIPLE: Final = 8
"""Multiple that lengths of padded batches are rounded up to."""
ROW_MULTIPLE: Final = 8
"""Multiple that their numbers of pairs are rounded up to."""


@final
class PairStep(TrainingStep):
    """A sequence-to-sequence model and the loss of its targets."""

    def __init__(self, model: nn.Module, label_smoothing: float, guidance: Guidance = NO_GUIDANCE) -> None:
        """Combine model and loss.

        Args:
            model: a sequence-to-sequence model (`heedful.models.interface.Seq2Seq`).
            label_smoothing: share of probability spread evenly over the vocabulary, in [0, 1);
                Szegedy et al. 2016: (1 - e) on the gold token, e / V on each.
            guidance: guided alignment; none by default.
        """
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.guidance = guidance

    def forward(self, *tensors: Tensor) -> LossSum:
        """Compute the summed loss of a batch.

        Args:
            tensors: [batch, source] source ids; [batch] source lengths; [batch, target] BOS and gold tokens; [batch,
                target] gold tokens and EOS, padded with 0; and optionally [link, 3] row, target position and source
                position of linked tokens.

        Raises:
            TypeError: the model belongs to another task.
        """
        model = self.model
        if not isinstance(model, Seq2Seq):
            raise TypeError(f"pairs need a sequence-to-sequence model, got {type(model).__name__}")
        source, source_lengths, target_in, target_out, *more = tensors
        taught = self.guidance.taught(model, more[0] if more else None)
        inputs = TokenInputs(source, source_lengths)
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
        model = self.model
        if not isinstance(model, Seq2Seq) or isinstance(model, HardAttention):
            return "the sum over alignments depends on the lengths"
        if self.guidance.weight:
            return "batches have different numbers of alignment links"
        if isinstance(model, AttentiveSeq2Seq) and model.sentences is not None:
            return "the sentences of a source depend on its tokens"
        if model.copy_need:
            return "the shares of copied tokens are packed"
        if any(part.normalizer.is_random for part in model.modules() if isinstance(part, NormalizerLayer)):
            return "the seeds of drawn keys come from Python"
        return ""

    def pad(self, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Pad a batch to one of few shapes; the padding counts for nothing.

        Args:
            arrays: source, source lengths, target in, target out.

        Returns:
            The same four; added rows have a source of one end mark and no target.

        Example:
            >>> ids, step = np.array([[5, 3]]), PairStep(nn.Identity(), 0.1)
            >>> [list(part.shape) for part in step.pad((ids, np.array([2]), ids, ids))]
            [[8, 8], [8], [8, 8], [8, 8]]
        """
        source, lengths, *targets = arrays
        rows = -len(source) % ROW_MULTIPLE

        def padded(ids: NDArray[Any]) -> NDArray[Any]:
            return np.pad(ids, ((0, rows), (0, -ids.shape[1] % LENGTH_MULTIPLE)))

        wide = padded(source)
        wide[len(source) :, 0] = EOS
        return [wide, np.pad(lengths, (0, rows), constant_values=1), *map(padded, targets)]
