"""Maximum likelihood of target sequences with teacher forcing, label-smoothed, over real tokens only."""

from typing import final

from torch import Tensor

from heedful.models.inputs import TokenInputs
from heedful.models.interface import Seq2Seq
from heedful.training.loss import LossSum, TrainingStep
from heedful.training.sequence_loss import sequence_loss


@final
class PairStep(TrainingStep):
    """A sequence-to-sequence model and the loss of its targets."""

    def __init__(
        self, model: Seq2Seq, label_smoothing: float, alignment_weight: float = 0.0, steps_later: int = 0
    ) -> None:
        """Combine model and loss.

        Args:
            model: a sequence-to-sequence model.
            label_smoothing: share of probability spread evenly over the vocabulary, in [0, 1);
                Szegedy et al. 2016: (1 - e) on the gold token, e / V on each.
            alignment_weight: weight of the guided alignment loss; see `alignment_loss`.
            steps_later: number of steps between the one that predicts a token and the one whose attention is taught its
                links; 1 = the step that reads the token, Chen et al. 2020, arXiv:2004.14837, section 3.
        """
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.alignment_weight = alignment_weight
        self.steps_later = steps_later

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
        if taught is not None and self.steps_later:
            # EOS has no links, so every taught step is one of the target.
            taught = taught + taught.new_tensor([0, self.steps_later, 0])
        inputs = TokenInputs(source, source_lengths)
        return sequence_loss(model, inputs, target_in, target_out, self.label_smoothing, taught, self.alignment_weight)
