"""Text classifier: bag of words, or GRU with a query vector, or one a step. Joulin et al. 2016; Yang et al. 2016.

`bag` is the linear classifier of Joulin et al. 2016, arXiv:1607.01759 (fastText): y = softmax(W mean_i E x_i + b).
`gru` is the word level of Yang et al. 2016, "Hierarchical Attention Networks for Document Classification", eq. 5-7:
h_i of a bidirectional GRU, u_i = tanh(W_w h_i + b_w), alpha = softmax(u_i . u_w), v = sum_i alpha_i h_i. Its reset gate
acts on the state before the state is mapped, as in Bahdanau et al. 2015, A.1.1; in eq. 3 of Yang et al. after that.

With `query_vectors` "step", each step t has a learned vector u_t of its own in place of u_w: alpha_ti =
softmax_i(u_i . u_t), s_t = sum_i alpha_ti h_i. The vector of a text is s_T, where T is its length, or the mean of all
s_t. u_t depends on t alone, and so the query of s_T on nothing but the length of the text. In Tixier 2018,
arXiv:1808.09772, chapter 7, all steps share one vector.
"""

from collections.abc import Mapping
from typing import Final, Literal, Self, final

import torch
from jaxtyping import Bool, Float
from pydantic import Field, model_validator
from torch import Tensor, nn

from heedful.attention.interface import Need
from heedful.attention.masks import padding
from heedful.config.base import MOST_SIZE, Config
from heedful.layers.dropout import dropout
from heedful.layers.embedding import Embedding
from heedful.layers.query_vectors import MultiQueryVectorAttention, StepQueryVectorAttention, TanhDot
from heedful.layers.recurrent_stack import BidirectionalStack
from heedful.models.inputs import Inputs, TokenInputs, token_inputs
from heedful.models.label_model import Encoded, LabelModel


class TextClassifierConfig(Config):
    """Configuration of a text classifier."""

    kind: Literal["text_classifier"] = "text_classifier"
    encoder: Literal["bag", "gru", "words"] = "bag"
    """Encoder: mean of the embeddings; or attention by learned query vectors, over the states of a bidirectional GRU or
    over the embeddings themselves."""
    num_queries: int = Field(default=1, ge=1, le=1_000)
    """Number of shared query vectors."""
    has_ngrams: bool = False
    """Whether a linear model of n-grams (`heedful.engines.ngram_model`) is fitted to the same texts, and the
    probabilities of both are mixed."""
    query_vectors: Literal["shared", "step"] = "shared"
    """Query vectors of the attention: some that all steps share, or, of a GRU, one for each step."""
    num_steps: int = Field(default=400, ge=1, le=65536)
    """Number of steps with a query vector of their own; later ones share the last."""
    pooling: Literal["last", "average"] = "last"
    """Vector of a text where each step has a query vector: that of the last step, or the mean over all steps."""
    embedding_size: int = Field(default=128, ge=1, le=MOST_SIZE)
    """Features of an embedding."""
    hidden_size: int = Field(default=64, ge=1, le=MOST_SIZE)
    """Features of each direction of the GRU."""
    num_layers: int = Field(default=1, ge=1, le=100)
    """Number of recurrent layers."""
    dropout: float = Field(default=0.3, ge=0.0, lt=1.0)
    """Dropout of embeddings and states."""

    @model_validator(mode="after")
    def _check_query_vectors(self) -> Self:
        if self.query_vectors == "step" and self.encoder != "gru":
            noun = "a bag of words has no attention" if self.encoder == "bag" else "words alone have no steps"
            raise ValueError(f"query_vectors step: {noun}; set encoder to gru")
        if self.pooling == "average" and self.query_vectors == "shared":
            raise ValueError(
                "pooling average: all steps are equal with a shared query vector; set query_vectors to step"
            )
        return self

    def build(self, num_tokens: int, num_labels: int) -> "TextClassifier":
        """Make the model with fresh parameters.

        Args:
            num_labels: number of labels.
        """
        return TextClassifier(self, num_tokens, num_labels)


PRESETS: Final[Mapping[str, TextClassifierConfig]] = {
    "classifier": TextClassifierConfig(
        encoder="gru", num_queries=4, embedding_size=128, hidden_size=64, has_ngrams=True
    ),
    "classifier-words": TextClassifierConfig(encoder="words", num_queries=4, embedding_size=128, has_ngrams=True),
    "bag": TextClassifierConfig(encoder="bag", embedding_size=128),
    "text_classifier": TextClassifierConfig(encoder="gru", embedding_size=128, hidden_size=64),
    "text_classifier-steps": TextClassifierConfig(
        encoder="gru", query_vectors="step", embedding_size=128, hidden_size=64
    ),
}


@final
class TextClassifier(LabelModel):
    """Module that scores the labels of a text."""

    def __init__(self, config: TextClassifierConfig, num_tokens: int, num_labels: int) -> None:
        """Draw the parameters.

        Args:
            num_labels: number of labels.
        """
        super().__init__()
        self.config: Final = config
        size = config.embedding_size
        self.embedding = Embedding(num_tokens, size)
        self.encoder: BidirectionalStack | None = None
        self.attention: MultiQueryVectorAttention | StepQueryVectorAttention | None = None
        if config.encoder == "gru":
            self.encoder = BidirectionalStack("gru", size, config.hidden_size, config.num_layers, config.dropout)
            size = 2 * config.hidden_size
        self.has_attention = config.encoder != "bag"
        num_vectors = 1
        if self.has_attention:
            score = TanhDot(size, size, has_bias=True)
            if config.query_vectors == "step":
                self.attention = StepQueryVectorAttention(config.num_steps, score)
            else:
                num_vectors = config.num_queries
                self.attention = MultiQueryVectorAttention(num_vectors, score)
        self.output = nn.Linear(num_vectors * size, num_labels)

    def encode(self, inputs: Inputs, need: tuple[Need, ...] = ()) -> Encoded:
        """Encode texts.

        Args:
            inputs: token ids.
            need: ("weights",) to request attention.

        Returns:
            Vectors, and attention weights if requested, their mean over several query vectors: where each step has one,
            the weights of the last step, or their mean over the steps.
        """
        tokens = token_inputs(inputs)
        embedded = self._dropout(self.embedding(tokens.ids))
        if self.attention is None:
            return Encoded(_mean(embedded, _is_real(tokens)))
        states = embedded if self.encoder is None else self.encoder.run(embedded, tokens.lengths)[0]
        mask = padding(tokens.lengths)
        if isinstance(self.attention, MultiQueryVectorAttention):
            vectors, attended = self.attention(states, states, mask, need)
            return Encoded(vectors, None if attended.weights is None else attended.weights.mean(dim=1))
        if self.config.pooling == "last":
            attended = self.attention(tokens.lengths[:, None] - 1, states, states, mask, need)
            return Encoded(attended.context[:, 0], None if attended.weights is None else attended.weights[:, 0])
        steps, is_real = torch.arange(tokens.ids.shape[1], device=tokens.ids.device), _is_real(tokens)
        attended = self.attention(steps, states, states, mask, need)
        weights = None if attended.weights is None else _mean(attended.weights, is_real)
        return Encoded(_mean(attended.context, is_real), weights)

    def scores(self, encoded: Encoded) -> Float[Tensor, "text label"]:
        return self.output(self._dropout(encoded.vectors))

    def _dropout(self, vectors: Tensor) -> Tensor:
        return dropout(vectors, self.config.dropout, self.training)


def _is_real(tokens: TokenInputs) -> Bool[Tensor, "text position"]:
    return torch.arange(tokens.ids.shape[1], device=tokens.ids.device) < tokens.lengths[:, None]


def _mean(rows: Float[Tensor, "text position _"], is_real: Bool[Tensor, "text position"]) -> Float[Tensor, "text _"]:
    """Mean over the real positions."""
    return rows.masked_fill(~is_real[..., None], 0.0).sum(dim=1) / is_real.sum(dim=1)[:, None]
