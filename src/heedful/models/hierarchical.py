"""Hierarchical attention network, from words to sentences to a document. Yang et al. 2016, NAACL, pages 1480-1489.

For the words w_it of sentence i, h_it of a bidirectional GRU (eq. 1-4), u_it = tanh(W_w h_it + b_w), alpha_it =
softmax_t(u_it . u_w), s_i = sum_t alpha_it h_it (eq. 5-7); the same with weights of its own for the sentences s_i of a
document (eq. 8-10); p = softmax(W_c v + b_c) (eq. 11). `pooling` "attention" is the paper's HN-ATT, "average" HN-AVE
and "max" HN-MAX.

A document is a sequence of tokens in which every sentence ends in EOS.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, final

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from heedful.attention.interface import Need
from heedful.attention.masks import padding
from heedful.config.base import MOST_SIZE, Config
from heedful.engines.documents import SHORTEST_SHARE
from heedful.layers.dropout import dropout
from heedful.layers.embedding import Embedding
from heedful.layers.query_vectors import MultiQueryVectorAttention, TanhDot
from heedful.layers.ragged_recurrence import run_ragged
from heedful.layers.recurrent import BidirectionalEncoder
from heedful.models.inputs import Inputs, TokenInputs, token_inputs
from heedful.models.label_model import Encoded, LabelModel
from heedful.text.vocabulary import EOS

Pooling = Literal["attention", "average", "max"]


class HierarchicalConfig(Config):
    """Configuration of a hierarchical attention network."""

    kind: Literal["hierarchical"] = "hierarchical"
    reads_sentences: ClassVar[bool] = True
    """Whether texts are split into sentences for the model."""
    pooling: Pooling = "attention"
    """Pooling of words and of sentences: one learned query vector each, their mean, or their largest features."""
    embedding_size: int = Field(default=128, ge=1, le=MOST_SIZE)
    """200 in the paper, from word2vec."""
    hidden_size: int = Field(default=50, ge=1, le=MOST_SIZE)
    """Features of each direction of both encoders."""
    dropout: float = Field(default=0.3, ge=0.0, lt=1.0)
    """Dropout of embeddings and states."""
    has_ngrams: bool = False
    """Whether a linear model of n-grams (`heedful.engines.ngram_model`) is fitted to the same texts, and the
    probabilities of both are mixed."""

    def build(self, num_tokens: int, num_labels: int) -> "HierarchicalClassifier":
        """Make the model with fresh parameters.

        Args:
            num_labels: number of labels.
        """
        return HierarchicalClassifier(self, num_tokens, num_labels)


PRESETS: Final[Mapping[str, HierarchicalConfig]] = {
    "hierarchical": HierarchicalConfig(),
    "hierarchical-average": HierarchicalConfig(pooling="average"),
    "hierarchical-max": HierarchicalConfig(pooling="max"),
}


@final
@dataclass(frozen=True)
class Sentences:
    """Layout of a batch of documents: their real positions one after another, cut into sentences."""

    is_real: Tensor
    """[document, position] bool"""
    lengths: Int[Tensor, " sentence"]
    """[sentence] number of tokens, EOS included."""
    counts: Int[Tensor, " document"]
    """[document] number of sentences."""

    @classmethod
    def of(cls, tokens: TokenInputs) -> "Sentences":
        """Find the sentences of documents.

        Args:
            tokens: documents whose sentences end in EOS; what follows the last EOS is a sentence too.
        """
        positions = torch.arange(tokens.ids.shape[1], device=tokens.ids.device)
        is_real = positions < tokens.lengths[:, None]
        is_end = ((tokens.ids == EOS) & is_real) | (positions == tokens.lengths[:, None] - 1)
        ends = is_end[is_real].nonzero().squeeze(-1)
        return cls(is_real, torch.diff(ends, prepend=ends.new_full((1,), -1)), is_end.sum(dim=1))


@final
class Level(nn.Module):
    """Level of the hierarchy: encodes sequences of items, such as words, and pools each sequence into one vector."""

    def __init__(self, item_size: int, hidden_size: int, pooling: Pooling) -> None:
        """Draw the parameters.

        Args:
            hidden_size: features of each direction of the encoder.
            pooling: how the encoded items of a sequence make its vector.
        """
        super().__init__()
        self.pooling: Final = pooling
        self.encoder = BidirectionalEncoder(item_size, hidden_size, reset="after")
        size = 2 * hidden_size
        self.attention = (
            MultiQueryVectorAttention(1, TanhDot(size, size, has_bias=True)) if pooling == "attention" else None
        )

    def forward(
        self, items: Float[Tensor, "item item_size"], lengths: Int[Tensor, " sequence"]
    ) -> tuple[Float[Tensor, "sequence _"], Float[Tensor, " item"] | None]:
        """Pool sequences.

        Args:
            items: [item, item_size] items of all sequences, one sequence after another.
            lengths: [sequence] number of items of each, at least 1.

        Returns:
            [sequence, 2 * hidden_size] vectors; and [item] attention weights, which sum to 1 in each sequence, or None
            without attention.

        Cost: that of the encoder, which has no padding; to be pooled, sequences of similar length are padded to the
            longest of them, so that at most 15 % of the positions of a block are padding.
        """
        states = run_ragged(self.encoder, items, lengths)
        starts = lengths.cumsum(0) - lengths
        order = torch.argsort(lengths, descending=True, stable=True)
        vectors: list[Tensor] = []
        weights = items.new_zeros(len(items))
        for block in _blocks(lengths[order]):
            rows = order[block]
            own = lengths[rows]
            positions = torch.arange(int(own[0]), device=own.device)
            real = positions < own[:, None]
            indices = torch.where(real, starts[rows][:, None] + positions, 0)
            vector, weight = self._pooled(states[indices], own)
            vectors.append(vector)
            if weight is not None:
                weights[indices[real]] = weight[real].to(weights.dtype)  # of lower precision under autocast
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(len(order), device=order.device)
        return torch.cat(vectors)[inverse], None if self.attention is None else weights

    def pool(
        self, items: Float[Tensor, "sequence position item_size"], lengths: Int[Tensor, " sequence"]
    ) -> tuple[Float[Tensor, "sequence _"], Float[Tensor, "sequence position"] | None]:
        """Encode and pool padded sequences.

        Args:
            items: [sequence, position, item_size].
            lengths: [sequence] number of items of each, at least 1.

        Returns:
            [sequence, 2 * hidden_size] vectors; and [sequence, position] attention weights, or None without attention.
        """
        return self._pooled(self.encoder(items, lengths), lengths)

    def _pooled(
        self, states: Float[Tensor, "sequence position _"], lengths: Int[Tensor, " sequence"]
    ) -> tuple[Tensor, Tensor | None]:
        if self.attention is not None:
            vector, attended = self.attention(states, states, padding(lengths), ("weights",))
            return vector, None if attended.weights is None else attended.weights[:, 0]
        real = (torch.arange(states.shape[1], device=states.device) < lengths[:, None])[..., None]
        if self.pooling == "max":
            return states.masked_fill(~real, -torch.inf).amax(dim=1), None
        return states.masked_fill(~real, 0.0).sum(dim=1) / lengths[:, None], None


def _blocks(lengths: Tensor) -> Iterator[slice]:
    """Blocks of sequences of similar length, from lengths in descending order."""
    sizes = lengths.tolist()
    start = 0
    for end in range(1, len(sizes) + 1):
        if end == len(sizes) or sizes[end] < SHORTEST_SHARE * sizes[start]:
            yield slice(start, end)
            start = end


@final
class HierarchicalClassifier(LabelModel):
    """Module that scores the labels of documents."""

    def __init__(self, config: HierarchicalConfig, num_tokens: int, num_labels: int) -> None:
        """Draw the parameters.

        Args:
            num_labels: number of labels.
        """
        super().__init__()
        self.config: Final = config
        self.has_attention = config.pooling == "attention"
        self.embedding = Embedding(num_tokens, config.embedding_size)
        self.words = Level(config.embedding_size, config.hidden_size, config.pooling)
        self.sentences = Level(2 * config.hidden_size, config.hidden_size, config.pooling)
        self.output = nn.Linear(2 * config.hidden_size, num_labels)

    def encode(self, inputs: Inputs, need: tuple[Need, ...] = ()) -> Encoded:
        """Encode documents.

        Args:
            inputs: token ids; every sentence ends in EOS.
            need: ("weights",) to request attention.

        Returns:
            Vectors; the weight of a position is the product of the weight of the word in its sentence and that of the
        """
        tokens = token_inputs(inputs)
        layout = Sentences.of(tokens)
        words = self._dropout(self.embedding(tokens.ids[layout.is_real]))
        sentences, word_weights = self.words(words, layout.lengths)
        documents, sentence_weights = self.sentences(self._dropout(sentences), layout.counts)
        if word_weights is None or sentence_weights is None or "weights" not in need:
            return Encoded(documents)
        weights = word_weights.new_zeros(tokens.ids.shape)
        weights[layout.is_real] = word_weights * sentence_weights.repeat_interleave(layout.lengths)
        return Encoded(documents, weights)

    def scores(self, encoded: Encoded) -> Float[Tensor, "document label"]:
        return self.output(self._dropout(encoded.vectors))

    def _dropout(self, vectors: Tensor) -> Tensor:
        return dropout(vectors, self.config.dropout, self.training)
