"""Attention, global and local. Luong, Pham and Manning 2015, arXiv:1508.04025; words and heads: Kim et al. 2017.

The query is the *current* state of the highest layer; input feeding passes the attentional vector of the previous step
to the lowest layer, beside the word.
"""

from dataclasses import dataclass
from typing import Final, Literal, Self, final

import torch
from jaxtyping import Float, Int
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from heedful.attention.interface import Attended, Need, PreparedKey
from heedful.attention.masks import Mask
from heedful.attention.stepwise import StepwiseValue
from heedful.attention.tile_autograd import join
from heedful.config.base import MOST_SIZE, Config
from heedful.config.plugins import is_custom
from heedful.layers.dropout import dropout
from heedful.layers.embedding import Embedding, OutputLayer
from heedful.layers.initialization import draw_uniform
from heedful.layers.recurrent import Cell, ResetPlacement, reverse_within, widen_forget_gates
from heedful.layers.recurrent_stack import BidirectionalStack, RecurrentStack, StackState
from heedful.layers.self_attentive_words import SelfAttentiveWords
from heedful.models.attention_config import (
    AttentionConfig,
    WindowKind,
    build_normalizer,
    build_score,
    require_suitable,
    upgrade_attention,
)
from heedful.models.attentive import AttentiveSeq2Seq, Coverage, visible_from
from heedful.models.custom_encoder import build_custom_encoder, check_encoder, custom_output_size
from heedful.models.inputs import Inputs, token_inputs
from heedful.models.interface import Decoded, Memory, State


class LuongAttention(AttentionConfig):
    """Attention of Luong et al. 2015: by default the bilinear score in the predicted window."""

    score: str = "general"
    window: WindowKind = "local-p"


class HeadAttention(AttentionConfig):
    """Attention of a word to its head: by default the syntactic attention of Kim et al. 2017."""

    score: str = "additive"
    normalizer: str = "projective_tree"
    is_bounded: bool = True
    """Whether weights follow from tanh of the score, as in the paper."""


class LuongConfig(Config):
    """Configuration of Luong's models; the paper's sizes are in the preset luong-paper.

    Example:
        >>> model = LuongConfig(attention={"score": "general"}).build(20, 30, is_shared=False)
        >>> sum(parameter.numel() for parameter in model.parameters())
        2646272
    """

    kind: Literal["luong"] = "luong"
    cell: Cell = "lstm"
    """Recurrent unit: lstm or gru."""
    num_layers: int = Field(default=2, ge=1, le=100)
    """Layers of a recurrent encoder and of the decoder."""
    encoder: str = "recurrent"
    """Encoder: the paper's recurrent one; words = the embeddings x_j alone; heads = each word beside its soft head,
    [x_j; c_j], as in Kim et al. 2017, arXiv:1702.00887, section 4.1; or module:Class of one outside the package. All
    but the first start the decoder with zeros."""
    head_attention: HeadAttention = HeadAttention()
    """Attention of words to their heads, where encoder = "heads": projective_tree is the paper's structured attention,
    softmax its simple attention."""
    reader_size: int = Field(default=128, ge=2, le=MOST_SIZE)
    """Features of the states h_j that heads are scored by, where encoder = "heads"; even, half in each direction."""
    embedding_size: int = Field(default=256, ge=1, le=MOST_SIZE)
    """Features of an embedding."""
    hidden_size: int = Field(default=256, ge=1, le=MOST_SIZE)
    """Size n of each layer; a bidirectional encoder has half of it in each direction."""
    is_bidirectional: bool = False
    """Whether the encoder reads in both directions; the paper's reads in one."""
    is_source_reversed: bool = True
    """Whether the words of a source are read in reverse, as in the paper; EOS stays at the end. States are put back to
    the positions of their words, so windows and alignments count words from the left."""
    attention: LuongAttention = LuongAttention()
    """Attention over the source; the paper has the scores dot, general, concat and location, the last with the global
    window only."""
    is_end_attended: bool = True
    """Whether the EOS of a source is attended to and counts in S; the authors' code excludes it."""
    has_feeding: bool = True
    """Whether input feeding is used. Without it a training step runs the decoder over the whole target at once."""
    reset: ResetPlacement = "before"
    """Form of the reset gate of gated units; see RNNsearch."""
    dropout: float = Field(default=0.2, ge=0.0, lt=1.0)
    """Dropout of the inputs of every layer, fed vectors included; none between steps."""
    output_dropout: float = Field(default=0.2, ge=0.0, lt=1.0)
    """Dropout of the attentional vectors before the vocabulary; not in the authors' code."""
    output_bias: bool = False
    """Whether the output layer has a bias."""
    has_copy: bool = False
    """Whether the output may copy source tokens; See et al. 2017, arXiv:1704.04368, eq. 9. Needs one vocabulary."""
    init_range: float = Field(default=0.1, gt=0.0, le=1e6)
    """Range of initial parameters, uniform from -init_range to init_range."""
    forget_bias: float = Field(default=1.0, ge=-100.0, le=100.0)
    """Addend of the initial biases of forget gates; 0 in the paper."""

    @property
    def annotation_size(self) -> int:
        """Features of a source state h_s."""
        if is_custom(self.encoder):
            return custom_output_size(self.encoder, self.embedding_size, self.hidden_size)
        sizes = {"recurrent": self.hidden_size, "words": self.embedding_size, "heads": 2 * self.embedding_size}
        return sizes[self.encoder]

    @field_validator("encoder")
    @classmethod
    def _check_encoder(cls, name: str) -> str:
        return check_encoder(name, ("recurrent", "words", "heads"))

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Names of settings that nothing reads, because of others."""
        return () if self.encoder == "heads" else ("head_attention",)

    @model_validator(mode="before")
    @classmethod
    def _upgrade(cls, table: object) -> object:
        return upgrade_attention(table)

    @model_validator(mode="after")
    def _check_choices(self) -> Self:
        if self.is_bidirectional and self.hidden_size % 2:
            raise ValueError(f"hidden_size {self.hidden_size} must be even with a bidirectional encoder")
        if self.encoder == "heads":
            if self.reader_size % 2:
                raise ValueError(f"reader_size {self.reader_size} must be even")
            if self.head_attention.window == "local-p":
                raise ValueError("head_attention.window local-p: only a decoder's state predicts a centre")
            sizes = (self.reader_size, self.reader_size)
            require_suitable(self.head_attention, *sizes, role="encoder", name="head_attention")
        require_suitable(self.attention, self.hidden_size, self.annotation_size)
        return self

    def build(self, num_source_tokens: int, num_target_tokens: int, is_shared: bool) -> "Luong":
        """Build a model with fresh parameters.

        Args:
            num_source_tokens: size of the source vocabulary.
            num_target_tokens: size of the target vocabulary.
            is_shared: whether both are one vocabulary; each side has its own embedding anyway.
        """
        return Luong(self, num_source_tokens, num_target_tokens, is_shared)


PRESETS: Final[dict[str, LuongConfig]] = {
    "luong": LuongConfig(),
    "syntactic": LuongConfig(
        encoder="heads",
        num_layers=1,
        embedding_size=128,
        attention=LuongAttention(window="global"),
    ),
    "luong-paper": LuongConfig(
        num_layers=4, embedding_size=1000, hidden_size=1000, dropout=0.2, output_dropout=0.0, forget_bias=0.0
    ),
}
"""luong-paper as the paper trains it, section 4.1: training.optimizer.kind = "sgd", mean_over = "pairs", schedule.kind
= "halving", halve_in = "epochs", halve_after = 8, halve_every = 1; training.clip_norm = 5, label_smoothing = 0,
average = 0, max_epochs = 12. Without dropout: halve_after = 5, max_epochs = 10."""


@dataclass(frozen=True)
class LuongMemory(Memory):
    """Source states, with the prepared keys of the score."""

    annotations: Float[Tensor, "source position size"]
    """[source, position, hidden] states h_s, at the positions of their words."""
    prepared: PreparedKey
    states: StackState
    """Final states of the encoder's layers, each [source, hidden]."""


@dataclass(frozen=True)
class LuongState(State):
    """Decoder state, each tensor [source, hypothesis, *]."""

    layers: StackState
    fed: tuple[Float[Tensor, "source hypothesis hidden"], ...]
    """Attentional vector h~_{t-1}; empty without input feeding."""
    place: tuple[Int[Tensor, "source hypothesis"], ...]
    """Target position t; empty unless the window is local-m."""
    coverage: tuple[Float[Tensor, "source hypothesis position"], ...] = ()
    """Weights of earlier steps, as `AttentiveSeq2Seq.attend_source` gives them; empty unless a step depends on them."""


@final
class Luong(AttentiveSeq2Seq):
    """h_t -> a_t -> c_t -> h~_t: a stacked encoder and decoder, with attention on top.

    Symbols of the paper: source states h_s, s = 1..S; decoder state h_t; alignment a_t(s) = softmax_s(score(h_t, h_s));
    context c_t = sum_s a_t(s) h_s; attentional vector h~_t = tanh(W_c [c_t; h_t]); words softmax(W_s h~_t). Windows
    [p_t - D, p_t + D]: local-m has p_t = t; local-p has p_t = S sigmoid(v_p . tanh(W_p h_t)), and a_t(s) times
    exp(-(s - p_t)^2 / (2 sigma^2)), sigma = D / 2. Scores: dot h_t . h_s; general h_t W_a h_s; concat
    v_a . tanh(W_a [h_t; h_s]); location a_t = softmax(W_a h_t).

    Example:
        >>> from heedful.models.inputs import TokenInputs
        >>> model = LuongConfig(num_layers=1, hidden_size=8).build(20, 30, is_shared=False).eval()
        >>> source = TokenInputs(torch.tensor([[5, 6, 3]]), torch.tensor([3]))
        >>> list(model.logits(model(source, torch.tensor([[2, 7]])).features).shape)
        [1, 2, 30]
    """

    def __init__(
        self, config: LuongConfig, num_source_tokens: int, num_target_tokens: int, is_shared: bool = False
    ) -> None:
        super().__init__()
        self.config = config
        embedding, hidden = config.embedding_size, config.hidden_size
        stack = (config.num_layers, config.dropout, config.reset)
        self.source_embedding = Embedding(num_source_tokens, embedding)
        self.target_embedding = Embedding(num_target_tokens, embedding)
        self.encoder = _build_encoder(config)
        self.decoder = RecurrentStack(config.cell, embedding, hidden, *stack)
        gates = self.decoder.units[0].input_map.out_features
        # The fed columns of the lowest layer's input matrix, separate because fed vectors are known only step by step.
        self.feed_map = nn.Linear(hidden, gates, bias=False) if config.has_feeding else None
        self.add_attention(config.attention, hidden, config.annotation_size)
        self.combine = nn.Linear(config.annotation_size + hidden, hidden, bias=False)  # W_c
        self.output = OutputLayer(num_target_tokens, hidden, config.output_bias)
        self.alignment = "cross"
        if config.has_copy:
            self.add_copy_gate(hidden, is_shared)
        draw_uniform(self, config.init_range)
        widen_forget_gates(self, config.forget_bias)

    def encode(self, inputs: Inputs) -> LuongMemory:
        tokens = token_inputs(inputs)
        source, source_lengths = tokens.ids, tokens.lengths
        if isinstance(self.encoder, (RecurrentStack, BidirectionalStack)):
            annotations, states = self._read(self.encoder, source, source_lengths)
        else:
            annotations = dropout(self.source_embedding(source), self.config.dropout, self.training)
            states = tuple(unit.begin(annotations) for unit in self.decoder.units)
            if isinstance(self.encoder, SelfAttentiveWords):
                annotations, _ = self.encoder(annotations, source_lengths)
            elif self.encoder is not None:
                annotations = self.encoder(annotations, source_lengths)
        prepared = self.prepare_keys(annotations, source_lengths, source)
        return LuongMemory(source_lengths, annotations, prepared, states, source=self.copied_source(tokens))

    def _read(
        self, encoder: RecurrentStack | BidirectionalStack, source: Tensor, lengths: Tensor
    ) -> tuple[Tensor, StackState]:
        """Source states at the positions of their words, and the final states of the layers."""
        num_words = lengths - 1
        if self.config.is_source_reversed:
            source = reverse_within(source, num_words)
        annotations, states = encoder.run(self.source_embedding(source), lengths)
        return reverse_within(annotations, num_words) if self.config.is_source_reversed else annotations, states

    def start(self, memory: Memory, num_hypotheses: int = 1) -> LuongState:
        memory = _mine(memory)

        def spread(vectors: Tensor) -> Tensor:
            return vectors[:, None].expand(-1, num_hypotheses, -1)

        layers = tuple(tuple(spread(part) for part in layer) for layer in memory.states)
        output = layers[-1][0]
        fed = (torch.zeros_like(output),) if self.config.has_feeding else ()
        coverage = self.first_coverage(output, memory.annotations.shape[1])
        return LuongState(layers, fed, self.first_places(output), coverage)

    def step(
        self, tokens: Int[Tensor, "source hypothesis"], state: State, memory: Memory, need: tuple[Need, ...] = ()
    ) -> tuple[Decoded, LuongState]:
        memory = _mine(memory)
        if not isinstance(state, LuongState):
            raise TypeError(f"luong: got {type(state).__name__}")
        mapped = self.decoder.units[0].input_map(self.target_embedding(tokens))
        layers = self._advance(mapped, state.fed, state.layers)
        mask = self.visible_at(state.place, self._num_attended(memory), memory.annotations.shape[1])
        vectors, attended, coverage = self._attend(
            layers[-1][0], mask, memory, memory.annotations, need, state.coverage
        )
        after = LuongState(
            layers,
            (vectors,) if state.fed else (),
            tuple(position + 1 for position in state.place),
            coverage,
        )
        return self.with_copying(vectors, {"cross": attended}, memory), after

    def forward(self, inputs: Inputs, target_in: Int[Tensor, "batch target"], need: tuple[Need, ...] = ()) -> Decoded:
        memory = self.encode(inputs)
        embedded = self.target_embedding(target_in)
        if self.feed_map is None and not self.attention.remembers_weights:
            query, _ = self.decoder.run(embedded, start=memory.states)
            mask = visible_from(self.attention, 0, self._num_attended(memory))
            vectors, attended, _ = self._attend(query, mask, memory, memory.annotations, need)
        else:
            vectors, attended = self._unroll(embedded, memory, need)
        features = dropout(vectors, self.config.output_dropout, self.training)
        return self.with_copying(features, {"cross": attended}, memory)

    def _unroll(self, embedded: Tensor, memory: LuongMemory, need: tuple[Need, ...]) -> tuple[Tensor, Attended]:
        """Attentional vectors [batch, target, hidden], step by step: with input feeding or coverage."""
        state = self.start(memory)
        layers, fed, coverage = state.layers, state.fed, state.coverage
        vectors: list[Tensor] = []
        steps: list[Attended] = []
        # The loop contains only the recurrence: words are mapped before it, logits computed after it.
        mapped = self.decoder.units[0].input_map(dropout(embedded, self.config.dropout, self.training))
        values = self.share_values(memory.annotations)
        for position, each in enumerate(mapped.split(1, dim=1)):
            layers = self._advance(each, fed, layers)
            mask = visible_from(self.attention, position, self._num_attended(memory))
            vector, attended, coverage = self._attend(layers[-1][0], mask, memory, values, need, coverage)
            fed = (vector,)
            vectors.append(vector)
            steps.append(attended)
        return torch.cat(vectors, dim=1), join(steps)

    def _advance(self, mapped: Tensor, fed: tuple[Tensor, ...], layers: StackState) -> StackState:
        if self.feed_map is not None:
            mapped = mapped + self.feed_map(dropout(fed[0], self.config.dropout, self.training))
        return self.decoder.step(mapped, layers)

    def _attend(
        self,
        query: Tensor,
        mask: Mask,
        memory: LuongMemory,
        values: Tensor | StepwiseValue,
        need: tuple[Need, ...],
        coverage: Coverage = (),
    ) -> tuple[Tensor, Attended, Coverage]:
        """Attentional vectors h~_t and weights a_t from h_t [source, hypothesis or target, hidden]."""
        attended, after = self.attend_source(
            query, memory.prepared, values, self._num_attended(memory), mask, need, coverage
        )
        return torch.tanh(self.combine(torch.cat((attended.context, query), dim=-1))), attended, after

    def _num_attended(self, memory: LuongMemory) -> Tensor:
        return memory.lengths if self.config.is_end_attended else memory.lengths - 1


def _build_encoder(config: LuongConfig) -> nn.Module | None:
    """Encoder of the words; None = the words themselves."""
    if config.encoder == "words":
        return None
    embedding, hidden = config.embedding_size, config.hidden_size
    if is_custom(config.encoder):
        return build_custom_encoder(config.encoder, embedding, hidden)
    if config.encoder == "heads":
        score = build_score(config.head_attention, config.reader_size, config.reader_size, role="encoder")
        normalizer = build_normalizer(config.head_attention)
        is_bounded = config.head_attention.is_bounded
        return SelfAttentiveWords(embedding, config.reader_size, score, normalizer, config.cell, is_bounded)
    stack = (config.num_layers, config.dropout, config.reset)
    if config.is_bidirectional:
        return BidirectionalStack(config.cell, embedding, hidden // 2, *stack)
    return RecurrentStack(config.cell, embedding, hidden, *stack)


def _mine(memory: Memory) -> LuongMemory:
    if not isinstance(memory, LuongMemory):
        raise TypeError(f"luong: got {type(memory).__name__}")
    return memory
