"""Structured self-attentive embedding: several hops of attention over a text. Lin et al. 2017, arXiv:1703.03130.

H of a bidirectional LSTM (eq. 1-4), A = softmax(W_s2 tanh(W_s1 H^T)) with one row for each of r hops (eq. 6), M = A H
(eq. 7), and a penalty |A A^T - I|^2 (eq. 8) that keeps hops apart. A layer of rectified units follows M, as in section
4.1.
"""

from collections.abc import Mapping
from typing import Final, Literal, final

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from heedful.attention.interface import Need
from heedful.attention.masks import padding
from heedful.config.base import MOST_SIZE, Config
from heedful.layers.dropout import dropout
from heedful.layers.embedding import Embedding
from heedful.layers.query_vectors import MultiQueryVectorAttention, TanhDot, overlap_penalty
from heedful.layers.recurrent_stack import BidirectionalStack
from heedful.models.inputs import Inputs, token_inputs
from heedful.models.label_model import Encoded, LabelModel


class SelfAttentiveConfig(Config):
    """Configuration of a structured self-attentive classifier."""

    kind: Literal["self_attentive"] = "self_attentive"
    embedding_size: int = Field(default=100, ge=1, le=MOST_SIZE)
    """Features of an embedding."""
    hidden_size: int = Field(default=100, ge=1, le=MOST_SIZE)
    """Features of each direction of the LSTM, the paper's u; 300 there."""
    num_hops: int = Field(default=8, ge=1, le=1_000)
    """Number of rows of A, the paper's r; 30 there."""
    attention_size: int = Field(default=100, ge=1, le=MOST_SIZE)
    """Hidden features of the attention, the paper's d_a; 350 there."""
    penalty: float = Field(default=1.0, ge=0.0, le=1e6)
    """Coefficient of the penalty; 1 in the paper, 0.3 for entailment."""
    classifier_size: int = Field(default=256, ge=1, le=MOST_SIZE)
    """Rectified units before the label layer; 2,000 or 3,000 in the paper."""
    dropout: float = Field(default=0.3, ge=0.0, lt=1.0)
    """Dropout of embeddings and states."""

    def build(self, num_tokens: int, num_labels: int) -> "SelfAttentiveClassifier":
        """Make the model with fresh parameters.

        Args:
            num_labels: number of labels.
        """
        return SelfAttentiveClassifier(self, num_tokens, num_labels)


PRESETS: Final[Mapping[str, SelfAttentiveConfig]] = {"self_attentive": SelfAttentiveConfig()}


@final
class SelfAttentiveClassifier(LabelModel):
    """Module that scores the labels of texts by a matrix of hops."""

    has_attention = True

    def __init__(self, config: SelfAttentiveConfig, num_tokens: int, num_labels: int) -> None:
        """Draw the parameters.

        Args:
            num_labels: number of labels.
        """
        super().__init__()
        self.config: Final = config
        size = 2 * config.hidden_size
        self.embedding = Embedding(num_tokens, config.embedding_size)
        self.encoder = BidirectionalStack("lstm", config.embedding_size, config.hidden_size, 1, config.dropout)
        self.attention = MultiQueryVectorAttention(config.num_hops, TanhDot(config.attention_size, size))
        self.hidden = nn.Linear(config.num_hops * size, config.classifier_size)
        self.output = nn.Linear(config.classifier_size, num_labels)

    def encode(self, inputs: Inputs, need: tuple[Need, ...] = ()) -> Encoded:
        """Encode texts.

        Args:
            inputs: token ids.
            need: ("weights",) to request attention.

        Returns:
            [text, num_hops * 2 * hidden_size] rows of M; the weight of a position is the mean over the hops.
        """
        tokens = token_inputs(inputs)
        states, _ = self.encoder.run(self.embedding(tokens.ids), tokens.lengths)
        has_penalty = self.training and self.config.penalty > 0
        wanted: tuple[Need, ...] = ("weights",) if has_penalty or "weights" in need else ()
        vectors, attended = self.attention(states, states, padding(tokens.lengths), wanted)
        if attended.weights is None:
            return Encoded(vectors)
        penalty = self.config.penalty * overlap_penalty(attended.weights) if has_penalty else None
        return Encoded(vectors, attended.weights.mean(dim=-2), penalty)

    def scores(self, encoded: Encoded) -> Float[Tensor, "text label"]:
        hidden = torch.relu(self.hidden(self._dropout(encoded.vectors)))
        return self.output(self._dropout(hidden))

    def _dropout(self, vectors: Tensor) -> Tensor:
        return dropout(vectors, self.config.dropout, self.training)
