"""Interface of classifiers: modules that score the labels of texts."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.attention.interface import Attended, Need
from heedful.models.inputs import Inputs, inputs_on
from heedful.runtime.label_arrays import LabelArrays, LabelRun
from heedful.search.inputs import InputArrays


class Encoded(NamedTuple):
    """Encoded texts."""

    vectors: Float[Tensor, "text size"]
    """[text, size]"""
    weights: Float[Tensor, "text *step position"] | None = None
    """[text, position] or [text, step, position] attention weights; None without attention."""
    penalty: Float[Tensor, " text"] | None = None
    """[text] addend of the training loss; None = 0."""
    attended: tuple[Attended, ...] = ()
    """Results of attention with one query, where keys may be drawn; for `extra_losses`."""


class LabelModel(nn.Module, ABC):
    """Module that scores the labels of texts, with one vector for each text before its last layer."""

    has_attention: bool
    """Whether `forward` gives attention weights."""

    @abstractmethod
    def encode(self, inputs: Inputs, need: tuple[Need, ...] = ()) -> Encoded:
        """Encode texts.

        Args:
            inputs: texts of the kind that the model reads.
            need: ("weights",) to request attention.

        Returns:
            Vectors, and attention weights if requested and the model has attention.
        """

    @abstractmethod
    def scores(self, vectors: Float[Tensor, "text size"]) -> Float[Tensor, "text label"]:
        """Score labels.

        Args:
            vectors: [text, size] from `encode`.

        Returns:
            [text, label] unnormalised log probabilities.
        """

    def forward(self, inputs: Inputs, need: tuple[Need, ...] = ()) -> tuple[Float[Tensor, "text label"], Encoded]:
        """Score the labels of texts.

        Args:
            inputs: texts of the kind that the model reads.
            need: ("weights",) to request attention.

        Returns:
            [text, label] unnormalised log probabilities, and the encoded texts.
        """
        encoded = self.encode(inputs, need)
        return self.scores(encoded.vectors), encoded

    def extra_losses(self, encoded: Encoded, log_probs: Float[Tensor, " text"]) -> dict[str, Tensor]:
        """Compute the losses beside the likelihood and the penalty, each summed over the batch.

        Args:
            encoded: result of `encode`.
            log_probs: [text] log probabilities of the right labels, in nats.

        Returns:
            Named scalars; none by default.
        """
        return {}


def label_run(model: LabelModel) -> LabelRun:
    """Make the function that classifies one batch with PyTorch.

    Args:
        model: in evaluation mode.

    Returns:
        A function for `heedful.runtime.labels.run_labels`.
    """
    device = next(model.parameters()).device

    def run(texts: InputArrays) -> LabelArrays:
        with torch.inference_mode():
            scores, encoded = model(inputs_on(device, texts), ("weights",))
            log_probs = torch.log_softmax(scores.float(), dim=-1)
            results = (log_probs, encoded.vectors, encoded.weights)
            return LabelArrays(*(each.float().cpu().numpy() for each in results if each is not None))

    return run
