"""Text classifier: a bag of words, or a bidirectional GRU with attention. Joulin et al. 2016; Yang et al. 2016.

`bag` is the linear classifier of Joulin et al. 2016, arXiv:1607.01759 (fastText): y = softmax(W mean_i E x_i + b).
`gru` is the word level of Yang et al. 2016, "Hierarchical Attention Networks for Document Classification", eq. 1-7:
h_i of a bidirectional GRU, u_i = tanh(W_w h_i + b_w), alpha = softmax(u_i . u_w), v = sum_i alpha_i h_i.
"""

from collections.abc import Mapping
from typing import Final, Literal, final

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from heedful.attention.interface import Need
from heedful.attention.masks import padding
from heedful.config import MOST_SIZE, Config
from heedful.layers.dropout import dropout
from heedful.layers.embedding import Embedding
from heedful.layers.query_vectors import MultiQueryVectorAttention, TanhDot
from heedful.layers.recurrent_stack import BidirectionalStack
from heedful.models.inputs import Inputs, token_inputs
from heedful.models.label_model import Encoded, LabelModel


class TextClassifierConfig(Config):
    """Configuration of a text classifier."""

    kind: Literal["text_classifier"] = "text_classifier"
    encoder: Literal["bag", "gru"] = "bag"
    """Encoder: mean of the embeddings, or a bidirectional GRU with attention by one learned query vector."""
    embedding_size: int = Field(default=128, ge=1, le=MOST_SIZE)
    hidden_size: int = Field(default=64, ge=1, le=MOST_SIZE)
    """Features of each direction of the GRU."""
    num_layers: int = Field(default=1, ge=1, le=100)
    dropout: float = Field(default=0.3, ge=0.0, lt=1.0)

    def build(self, num_tokens: int, num_labels: int) -> "TextClassifier":
        """Make the model with fresh parameters.

        Args:
            num_tokens: size of the vocabulary.
            num_labels: number of labels.

        Returns:
            The model.
        """
        return TextClassifier(self, num_tokens, num_labels)


PRESETS: Final[Mapping[str, TextClassifierConfig]] = {
    "bag": TextClassifierConfig(encoder="bag", embedding_size=128),
    "text_classifier": TextClassifierConfig(encoder="gru", embedding_size=128, hidden_size=64),
}


@final
class TextClassifier(LabelModel):
    """Module that scores the labels of a text."""

    def __init__(self, config: TextClassifierConfig, num_tokens: int, num_labels: int) -> None:
        """Draw the parameters.

        Args:
            config: configuration.
            num_tokens: size of the vocabulary.
            num_labels: number of labels.
        """
        super().__init__()
        self.config: Final = config
        size = config.embedding_size
        self.embedding = Embedding(num_tokens, size)
        self.encoder: BidirectionalStack | None = None
        self.attention: MultiQueryVectorAttention | None = None
        if config.encoder == "gru":
            self.encoder = BidirectionalStack("gru", size, config.hidden_size, config.num_layers, config.dropout)
            size = 2 * config.hidden_size
            self.attention = MultiQueryVectorAttention(1, TanhDot(size, size, has_bias=True))
        self.has_attention = self.attention is not None
        self.output = nn.Linear(size, num_labels)

    def encode(self, inputs: Inputs, need: tuple[Need, ...] = ()) -> Encoded:
        tokens = token_inputs(inputs)
        embedded = self._dropout(self.embedding(tokens.ids))
        if self.encoder is None or self.attention is None:
            real = torch.arange(tokens.ids.shape[1], device=tokens.ids.device) < tokens.lengths[:, None]
            return Encoded(embedded.masked_fill(~real[..., None], 0.0).sum(dim=1) / tokens.lengths[:, None])
        states, _ = self.encoder.run(embedded, tokens.lengths)
        vectors, attended = self.attention(states, states, padding(tokens.lengths), need)
        return Encoded(vectors, None if attended.weights is None else attended.weights[:, 0])

    def scores(self, encoded: Encoded) -> Float[Tensor, "text label"]:
        return self.output(self._dropout(encoded.vectors))

    def _dropout(self, vectors: Tensor) -> Tensor:
        return dropout(vectors, self.config.dropout, self.training)
