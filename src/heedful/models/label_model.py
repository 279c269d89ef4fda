"""Interface of classifiers: modules that score the labels of texts, or the positions where a span starts and ends."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.interface import Attended, Need
from heedful.engines.label_arrays import LabelArrays, LabelRun
from heedful.models.inputs import Inputs, inputs_on
from heedful.search.inputs import InputArrays


class Encoded(NamedTuple):
    """Encoded texts.

    Example:
        >>> Encoded(torch.zeros(2, 8)).weights is None
        True
    """

    vectors: Float[Tensor, "text size"]
    """[text, size]"""
    weights: Float[Tensor, "text *step position"] | None = None
    """[text, position] or [text, step, position] attention weights; None without attention."""
    penalty: Float[Tensor, " text"] | None = None
    """[text] addend of the training loss; None = 0."""
    positions: Float[Tensor, "text end position"] | None = None
    """[text, end, position] scores of each position as start and as end of an answer; None where answers are labels."""
    attended: tuple[Attended, ...] = ()
    """Results of attention with one query, where keys may be drawn; for `extra_losses`."""


class LabelModel(nn.Module, ABC):
    """Module that scores the labels of texts, with one vector for each text before its last layer.

    Where answers are spans of a text, its positions are the labels, and there are two of them: start and end.

    Example:
        >>> from heedful.models.inputs import TokenInputs
        >>> from heedful.models.text_classifier import TextClassifierConfig
        >>> model = TextClassifierConfig(encoder="words").build(20, 3).eval()
        >>> scores, encoded = model(TokenInputs(torch.tensor([[5, 6, 3]]), torch.tensor([3])), need=("weights",))
        >>> list(scores.shape), list(encoded.weights.shape)
        ([1, 3], [1, 3])
    """

    has_attention: bool
    """Whether `forward` gives attention weights."""
    answers_with_spans: ClassVar[bool] = False
    """Whether the labels of a text are its positions."""
    has_label_sets: bool = False
    """Whether a text may have any number of labels, whose scores are logits, each by itself."""

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
    def scores(self, encoded: Encoded) -> Float[Tensor, "text *end label"]:
        """Score labels.

        Args:
            encoded: result of `encode`.

        Returns:
            [text, *end, label] unnormalised log probabilities; spans have an axis of start and end.
        """

    def forward(self, inputs: Inputs, need: tuple[Need, ...] = ()) -> tuple[Float[Tensor, "text *end label"], Encoded]:
        """Score the labels of texts.

        Args:
            inputs: texts of the kind that the model reads.
            need: ("weights",) to request attention.

        Returns:
            [text, *end, label] unnormalised log probabilities, and the encoded texts.
        """
        encoded = self.encode(inputs, need)
        return self.scores(encoded), encoded

    def log_probs(self, scores: Float[Tensor, "text *end label"]) -> Float[Tensor, "text *end label"]:
        """Normalise scores over the labels, or each by itself where a text may have several.

        Args:
            scores: result of `scores`.

        Returns:
            Log probabilities in nats.
        """
        return functional.logsigmoid(scores) if self.has_label_sets else torch.log_softmax(scores, dim=-1)

    def extra_losses(self, encoded: Encoded, log_probs: Float[Tensor, " text *end"]) -> dict[str, Tensor]:
        """Compute the losses beside the likelihood and the penalty, each summed over the batch.

        Args:
            encoded: result of `encode`.
            log_probs: [text, *end] log probabilities of the right labels, in nats.

        Returns:
            Named scalars; none by default.
        """
        return {}


def label_run(model: LabelModel) -> LabelRun:
    """Make the function that classifies one batch with PyTorch.

    Returns:
        A function for `heedful.engines.labels.run_labels`.
    """
    device = next(model.parameters()).device

    def run(texts: InputArrays) -> LabelArrays:
        with torch.inference_mode():
            scores, encoded = model(inputs_on(device, texts), ("weights",))
            log_probs = model.log_probs(scores.float())
            results = (log_probs, encoded.vectors, encoded.weights)
            return LabelArrays(*(each.float().cpu().numpy() for each in results if each is not None))

    return run
