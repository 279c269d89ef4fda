"""Bidirectional attention flow: an answer is a span of a passage. Seo et al. 2017, arXiv:1611.01603.

For the tokens of the passage, h_t, and of the question, u_j, both of one bidirectional LSTM, s_tj = w . [h_t; u_j;
h_t * u_j] (eq. 1); passage to question, a_t = softmax_j(s_tj), u~_t = sum_j a_tj u_j; question to passage, b =
softmax_t(max_j s_tj), h~ = sum_t b_t h_t; g_t = [h_t; u~_t; h_t * u~_t; h_t * h~] (eq. 2). M is a bidirectional LSTM
over G and M2 another over M; p1 = softmax_t(w_1 . [g_t; m_t]) (eq. 3) and p2 = softmax_t(w_2 . [g_t; m2_t]) (eq. 4) are
the start and the end of the answer, whose loss is -log p1(start) - log p2(end) (eq. 5). The answer is the span start <=
end with the largest p1(start) p2(end).

Tokens are subword pieces, so that there are no character embeddings, and no highway layer that joins them to those of
words. Score and normalizer of a_t are those of `attention`; uniform weights are average pooling.
"""

from collections.abc import Mapping
from typing import ClassVar, Final, Literal, Self, final

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from heedful.attention.dispatch import attend
from heedful.attention.interface import Need
from heedful.attention.kernels.plain import PlainScores
from heedful.attention.masks import padding
from heedful.attention.softmax import Softmax
from heedful.config.base import MOST_SIZE, Config
from heedful.layers.dropout import dropout
from heedful.layers.embedding import Embedding
from heedful.layers.normalizing import NormalizerLayer
from heedful.layers.recurrent import BidirectionalEncoder
from heedful.models.attention_config import AttentionConfig, build_normalizer, build_score, require_suitable
from heedful.models.inputs import Inputs, PassageInputs
from heedful.models.label_model import Encoded, LabelModel


class BidafConfig(Config):
    """Configuration of bidirectional attention flow."""

    kind: Literal["bidaf"] = "bidaf"
    gives_spans: ClassVar[bool] = True
    """Whether answers are spans of the facts."""
    attention: AttentionConfig = AttentionConfig(score="trilinear")
    """Attention of the passage to the question; the trilinear score with softmax in the paper."""
    embedding_size: int = Field(default=64, ge=1, le=MOST_SIZE)
    """Features of an embedding."""
    hidden_size: int = Field(default=64, ge=1, le=MOST_SIZE)
    """Features of each direction of all recurrent layers, the paper's d; 100 there."""
    num_layers: int = Field(default=2, ge=1, le=100)
    """Number of recurrent layers between the attention and the start of the answer; 2 in the paper."""
    dropout: float = Field(default=0.2, ge=0.0, lt=1.0)
    """Dropout of the inputs of all recurrent layers and of the output layer."""

    @model_validator(mode="after")
    def _check_attention(self) -> Self:
        if self.attention.window != "global":
            raise ValueError(
                f"attention.window {self.attention.window}: positions of a passage are not those of its question"
            )
        if self.attention.bias != "none":
            raise ValueError(
                f"attention.bias {self.attention.bias}: positions of a passage are not those of its question"
            )
        if build_normalizer(self.attention).scope == "matrix":
            raise ValueError(
                f"attention.normalizer {self.attention.normalizer}: it is for the words of one text, not for those of "
                "passage and question"
            )
        require_suitable(self.attention, 2 * self.hidden_size, 2 * self.hidden_size, role="encoder")
        return self

    def build(self, num_tokens: int, num_labels: int) -> "Bidaf":
        """Make the model with fresh parameters.

        Args:
            num_labels: unused; answers are spans.
        """
        return Bidaf(self, num_tokens)


PRESETS: Final[Mapping[str, BidafConfig]] = {
    "bidaf": BidafConfig(),
    "bidaf-average": BidafConfig(attention=AttentionConfig(score="uniform")),
}


@final
class Bidaf(LabelModel):
    """Module that scores every position of a passage as the start and as the end of an answer."""

    has_attention = True
    answers_with_spans = True

    def __init__(self, config: BidafConfig, num_tokens: int) -> None:
        """Draw the parameters."""
        super().__init__()
        self.config: Final = config
        size = 2 * config.hidden_size
        self.embedding = Embedding(num_tokens, config.embedding_size)
        self.contextual = _encoder(config.embedding_size, config)
        self.score = build_score(config.attention, size, size, role="encoder")
        self.normalizer = NormalizerLayer(build_normalizer(config.attention))
        sizes = [4 * size, *[size] * (config.num_layers - 1)]
        self.modelling = nn.ModuleList([_encoder(each, config) for each in sizes])
        self.ending = _encoder(size, config)
        self.outputs = nn.ModuleList([nn.Linear(5 * size, 1, bias=False) for _ in range(2)])

    def encode(self, inputs: Inputs, need: tuple[Need, ...] = ()) -> Encoded:
        """Attend from passage to question and from question to passage.

        Args:
            need: ("weights",) to request attention.

        Returns:
            [source, 2 * hidden_size] the context h~ of the question; [source, 1, position] the weights b; and [source,
            end, position] scores of both ends of the answer.

        Raises:
            TypeError: the inputs are of another kind.
        """
        if not isinstance(inputs, PassageInputs):
            raise TypeError(f"this model reads passages, got {type(inputs).__name__}")
        question = self.contextual(self._dropout(self.embedding(inputs.question)), inputs.question_lengths)
        passage = self.contextual(self._dropout(self.embedding(inputs.passage)), inputs.passage_lengths)
        key = self.score.prepare(question)
        mask, normalizer = padding(inputs.question_lengths), self.normalizer()
        context = attend(passage, key, question, score=self.score, mask=mask, normalizer=normalizer).context
        scores, is_within = PlainScores().scores(self.score.lower(passage, key))
        is_asked = _is_real(inputs.question, inputs.question_lengths)[:, None]
        is_passage = _is_real(inputs.passage, inputs.passage_lengths)
        allowed = is_asked if is_within is None else is_asked & is_within
        best = scores.masked_fill(~allowed, -torch.inf).amax(dim=-1)
        # A kernel of limited reach may exclude all words of the question.
        is_reached = (allowed.any(dim=-1) & is_passage)[:, None]
        weights = Softmax().weigh(best[:, None].masked_fill(~is_reached, 0.0), is_reached)
        shared = weights @ passage
        joined = torch.cat((passage, context, passage * context, passage * shared), dim=-1)
        states = joined
        for layer in self.modelling:
            states = layer(self._dropout(states), inputs.passage_lengths)
        both = states, self.ending(self._dropout(states), inputs.passage_lengths)
        ends = [
            output(self._dropout(torch.cat((joined, own), dim=-1)))[..., 0]
            for output, own in zip(self.outputs, both, strict=True)
        ]
        positions = torch.stack(ends, dim=1).masked_fill(~is_passage[:, None], -torch.inf)
        return Encoded(shared[:, 0], weights, positions=positions)

    def scores(self, encoded: Encoded) -> Float[Tensor, "source end position"]:
        if encoded.positions is None:
            raise TypeError("these vectors are not of a passage")
        return encoded.positions

    def _dropout(self, vectors: Tensor) -> Tensor:
        return dropout(vectors, self.config.dropout, self.training)


def _encoder(input_size: int, config: BidafConfig) -> BidirectionalEncoder:
    return BidirectionalEncoder(input_size, config.hidden_size, cell="lstm")


def _is_real(ids: Int[Tensor, "source position"], lengths: Int[Tensor, " source"]) -> Tensor:
    return torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
