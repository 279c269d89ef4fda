"""The Transformer. Vaswani et al. 2017, "Attention is all you need", arXiv:1706.03762."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, Self, final

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.interface import Attended, Need, PreparedKey
from heedful.attention.masks import Mask, causal, padding, window
from heedful.config.base import MOST_SIZE, Config
from heedful.layers.dropout import dropout
from heedful.layers.embedding import Embedding, OutputLayer
from heedful.layers.feedforward import Activation, FeedForward
from heedful.layers.multihead import MultiheadAttention
from heedful.layers.normalizing import NormalizerLayer
from heedful.layers.positions import LearnedPositions, NoPositions, Positions, SinusoidalPositions
from heedful.layers.residual import NORM_EPSILON, NormOrder, Residual
from heedful.models.attention_config import (
    AttentionConfig,
    Role,
    build_normalizer,
    build_reinforcement,
    build_score,
    is_scaled_dot_softmax,
    require_suitable,
)
from heedful.models.attentive import near, visible_from
from heedful.models.inputs import Inputs, VectorInputs, token_inputs
from heedful.models.interface import Decoded, Memory, Seq2Seq, State


class TransformerConfig(Config):
    """Configuration of the Transformer; the paper's is norm = "post", positions = "sinusoidal", tie = "all".

    Example:
        >>> model = TransformerConfig(model_size=32).build(20, 30, is_shared=False)
        >>> sum(parameter.numel() for parameter in model.parameters())
        440256
    """

    kind: Literal["transformer"] = "transformer"
    num_encoder_layers: int = Field(default=3, ge=1, le=100)
    """Number of layers of the encoder."""
    num_decoder_layers: int = Field(default=3, ge=1, le=100)
    """Number of layers of the decoder."""
    model_size: int = Field(default=256, ge=2, le=MOST_SIZE)
    """Features of a state of any layer."""
    num_heads: int = Field(default=4, ge=1, le=MOST_SIZE)
    """Number of heads of each attention."""
    feedforward_size: int = Field(default=1024, ge=1, le=MOST_SIZE)
    """Features of the hidden layer of feed-forward networks."""
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Dropout of sub-layer outputs, and of embeddings with positions."""
    attention_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Dropout of attention weights."""
    feedforward_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Dropout of the hidden layer of feed-forward networks."""
    activation: Activation = "relu"
    """Activation of feed-forward networks."""
    norm: NormOrder = "pre"
    """Place of normalisation: before each sub-layer (pre) or after its residual connection (post, as in the paper)."""
    norm_epsilon: float = Field(default=NORM_EPSILON, gt=0.0, le=1.0)
    """Number added to variances by normalisation."""
    positions: Literal["sinusoidal", "sinusoidal_halves", "learned", "none"] = "sinusoidal"
    """Position codes; "sinusoidal_halves" has all sines before all cosines, as Marian's models have; "none" is for
    self-attention with a bias."""
    max_positions: int = Field(default=512, ge=1, le=MOST_SIZE)
    """Rows of the table of learned positions."""
    tie: Literal["all", "target", "none"] = "all"
    """Weights shared among source embedding, target embedding and output layer; "all" needs one vocabulary and falls
    back to "target" with two."""
    output_bias: bool = False
    """Whether the output layer has a bias."""
    has_copy: bool = False
    """Whether the output may copy source tokens; See et al. 2017, arXiv:1704.04368, eq. 9. Needs one vocabulary."""
    attention: AttentionConfig = AttentionConfig()
    """Attention of every decoder layer over the source."""
    encoder_attention: AttentionConfig = AttentionConfig()
    """Self-attention of every encoder layer."""
    decoder_attention: AttentionConfig = AttentionConfig()
    """Self-attention of every decoder layer, over the target so far."""

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.model_size % self.num_heads:
            raise ValueError(f"model_size {self.model_size} is not divisible by num_heads {self.num_heads}")
        if self.model_size % 2:
            raise ValueError(f"model_size {self.model_size} must be even")
        depth = self.model_size // self.num_heads
        require_suitable(self.attention, depth, depth, self.num_heads)
        require_suitable(self.encoder_attention, depth, depth, self.num_heads, "encoder", "encoder_attention")
        require_suitable(self.decoder_attention, depth, depth, self.num_heads, "decoder", "decoder_attention")
        return self

    def build(self, num_source_tokens: int, num_target_tokens: int, is_shared: bool) -> "Transformer":
        """Build a model with fresh parameters.

        Args:
            num_source_tokens: size of the source vocabulary.
            num_target_tokens: size of the target vocabulary.
            is_shared: whether both are one vocabulary.
        """
        return Transformer(self, num_source_tokens, num_target_tokens, is_shared)


PRESETS: Final[dict[str, TransformerConfig]] = {
    "mini": TransformerConfig(
        num_encoder_layers=1, num_decoder_layers=1, model_size=64, num_heads=2, feedforward_size=256
    ),
    "tiny": TransformerConfig(
        num_encoder_layers=2, num_decoder_layers=2, model_size=128, num_heads=4, feedforward_size=512
    ),
    "small": TransformerConfig(),
    "base": TransformerConfig(
        num_encoder_layers=6, num_decoder_layers=6, model_size=512, num_heads=8, feedforward_size=2048
    ),
    "big": TransformerConfig(
        num_encoder_layers=6, num_decoder_layers=6, model_size=1024, num_heads=16, feedforward_size=4096, dropout=0.3
    ),
}


ALIGNMENT: Final = "decoder.alignment"
"""Name of the attention that gives alignments: the mean of the last two layers."""


@dataclass(frozen=True)
class TransformerMemory(Memory):
    """Keys and values of every decoder layer's attention over the source."""

    keys: tuple[PreparedKey, ...]
    """Keys of each layer, [source, head, position, depth]."""
    values: tuple[Float[Tensor, "source head position depth"], ...]


@dataclass(frozen=True)
class TransformerState(State):
    """Keys and values of every decoder layer's attention over the output so far."""

    keys: tuple[Float[Tensor, "source hypothesis head position depth"], ...]
    """Keys of each layer, [source, hypothesis, head, position, depth]."""
    values: tuple[Float[Tensor, "source hypothesis head position depth"], ...]
    place: tuple[Int[Tensor, "source hypothesis"], ...] = ()
    """Number of tokens so far, [source, hypothesis], where keys and values have room for more; empty where they are as
    many."""


Attend = Callable[[Tensor], Tensor]


@final
class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each with add & norm; section 3.1."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        size, order, epsilon = config.model_size, config.norm, config.norm_epsilon
        self.self_attention = _attention(config, config.encoder_attention, "encoder")
        self.feedforward = FeedForward(size, config.feedforward_size, config.feedforward_dropout, config.activation)
        self.around_attention = Residual(size, config.dropout, order, epsilon)
        self.around_feedforward = Residual(size, config.dropout, order, epsilon)

    def forward(self, vectors: Float[Tensor, "*batch size"], attend_self: Attend) -> Float[Tensor, "*batch size"]:
        """Map [*, size] to the same shape, with the attention for padded or packed positions."""
        return self.around_feedforward(self.around_attention(vectors, attend_self), self.feedforward)


@final
class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the source, then feed-forward; section 3.1."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        size, order, epsilon = config.model_size, config.norm, config.norm_epsilon
        self.self_attention = _attention(config, config.decoder_attention, "decoder")
        self.cross_attention = _attention(config, config.attention, "source")
        self.feedforward = FeedForward(size, config.feedforward_size, config.feedforward_dropout, config.activation)
        self.around_self = Residual(size, config.dropout, order, epsilon)
        self.around_cross = Residual(size, config.dropout, order, epsilon)
        self.around_feedforward = Residual(size, config.dropout, order, epsilon)

    def forward(
        self, vectors: Float[Tensor, "*batch size"], attend_self: Attend, attend_source: Attend
    ) -> Float[Tensor, "*batch size"]:
        """Map [*, size] to the same shape, with the attention for a step, a whole target or packed targets."""
        vectors = self.around_self(vectors, attend_self)
        return self.around_feedforward(self.around_cross(vectors, attend_source), self.feedforward)


@final
class Transformer(Seq2Seq):
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, in stacked layers of an encoder and a decoder.

    Symbols of the paper: N layers, num_encoder_layers and num_decoder_layers; d_model = model_size; h = num_heads, with
    d_k = d_v = d_model / h; d_ff = feedforward_size of FFN(x) = max(0, x W_1 + b_1) W_2 + b_2; P_drop = dropout.
    A sub-layer is LayerNorm(x + Sublayer(x)) where norm = "post", as in the paper, and x + Sublayer(LayerNorm(x)) where
    norm = "pre".

    Example:
        >>> from heedful.models.inputs import TokenInputs
        >>> model = TransformerConfig(model_size=8, num_heads=2).build(20, 30, is_shared=False).eval()
        >>> source = TokenInputs(torch.tensor([[5, 6, 3]]), torch.tensor([3]))
        >>> list(model.logits(model(source, torch.tensor([[2, 7]])).features).shape)
        [1, 2, 30]
    """

    def __init__(
        self, config: TransformerConfig, num_source_tokens: int, num_target_tokens: int, is_shared: bool
    ) -> None:
        super().__init__()
        self.config = config
        size = config.model_size
        self.source_embedding = Embedding(num_source_tokens, size, math.sqrt(size))
        one_table = is_shared and config.tie == "all"
        self.target_embedding = (
            self.source_embedding if one_table else Embedding(num_target_tokens, size, math.sqrt(size))
        )
        tied_to = None if config.tie == "none" else self.target_embedding
        self.output = OutputLayer(num_target_tokens, size, config.output_bias, tied_to)
        self.source_positions = _positions(config)
        self.target_positions = _positions(config)
        self.encoder_layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_encoder_layers))
        self.decoder_layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_decoder_layers))
        # Post-norm layers already end in a normalisation.
        self.encoder_norm = nn.LayerNorm(size, eps=config.norm_epsilon) if config.norm == "pre" else nn.Identity()
        self.decoder_norm = nn.LayerNorm(size, eps=config.norm_epsilon) if config.norm == "pre" else nn.Identity()
        # With two layers, their mean aligns better than either; with three, the last two are equally good.
        self.alignment = ALIGNMENT
        self.reinforcement = build_reinforcement(config.attention)
        if config.has_copy:
            self.add_copy_gate(size, is_shared)

    def encode(self, inputs: Inputs) -> TransformerMemory:
        if isinstance(inputs, VectorInputs):
            vectors, source_lengths, source = inputs.vectors, inputs.lengths, ()
        else:
            tokens = token_inputs(inputs)
            vectors = self.source_positions(self.source_embedding(tokens.ids))
            source_lengths, source = tokens.lengths, self.copied_source(tokens)
        mask = padding(source_lengths)
        own = self.config.encoder_attention
        if own.window != "global":
            mask = mask & window(own.half_width, own.half_width)
        vectors = self.drop(vectors)
        for layer in self.encoder:

            def attend_self(inputs: Tensor, layer: EncoderLayer = layer) -> Tensor:
                query, key, value = layer.self_attention.project(inputs, 0, 3)
                return layer.self_attention.attend(query, key, value, mask)[0]

            vectors = layer(vectors, attend_self)
        vectors = self.encoder_norm(vectors)
        pairs = [(layer, *layer.cross_attention.project(vectors, 1, 3)) for layer in self.decoder]
        keys = tuple(layer.cross_attention.score.prepare(key) for layer, key, _ in pairs)
        values = tuple(value for _, _, value in pairs)
        return TransformerMemory(source_lengths, keys, values, source=source)

    def start(self, memory: Memory, num_hypotheses: int = 1) -> TransformerState:
        config = self.config
        shape = (memory.lengths.shape[0], num_hypotheses, config.num_heads, 0, config.model_size // config.num_heads)
        weight = self.target_embedding.weight
        empty = tuple(weight.new_zeros(shape) for _ in range(config.num_decoder_layers))
        return TransformerState(empty, empty)

    def fixed_state(self, state: State, room: int) -> tuple[State, int] | None:
        # Windows and biases count positions from the last key, which is not the newest one where there is room.
        if not isinstance(state, TransformerState) or not is_scaled_dot_softmax(self.config.decoder_attention):
            return None
        num_said = state.keys[0].shape[-2]
        if self.config.positions == "learned":
            room = max(num_said + 1, min(room, self.config.max_positions))
        self.target_positions.codes(0, room)  # may be refused, and stands ready
        keys, values = (
            tuple(functional.pad(part, (0, 0, 0, room - num_said)) for part in parts)
            for parts in (state.keys, state.values)
        )
        start = torch.full(keys[0].shape[:2], num_said, device=keys[0].device)
        return TransformerState(keys, values, state.place or (start,)), room

    def step(
        self, tokens: Int[Tensor, "source hypothesis"], state: State, memory: Memory, need: tuple[Need, ...] = ()
    ) -> tuple[Decoded, TransformerState]:
        state, memory = _mine(state, memory)
        attended: dict[str, Attended] = {}
        wanted = (*need, *self.copy_need)
        keys, values = list(state.keys), list(state.values)
        embedded = self.target_embedding(tokens)[:, :, None]  # [source, hypothesis, 1, size]
        num_said = state.keys[0].shape[-2]
        position = state.place[0].clamp(max=num_said - 1) if state.place else None
        if position is not None:
            vectors = embedded + self.target_positions.at(position)[:, :, None].to(embedded.dtype)
            own: Mask | None = padding(position.flatten() + 1)
        else:
            vectors, own = self.target_positions(embedded, start=num_said), self._own_window(None)
        mask = padding(memory.lengths)
        if self.config.attention.window != "global":
            centre = torch.full_like(tokens, num_said) if position is None else position
            mask = mask & near(self.config.attention, centre, memory.lengths, memory.values[0].shape[-2])
        for index, layer in enumerate(self.decoder):

            def attend_self(inputs: Tensor, index: int = index, layer: DecoderLayer = layer) -> Tensor:
                query, key, value = layer.self_attention.project(inputs, 0, 3)
                for parts, part in ((keys, key), (values, value)):
                    if position is not None:
                        parts[index].index_copy_(-2, position[:1, 0], part)
                    else:
                        parts[index] = torch.cat((parts[index], part), dim=-2)
                # One sequence per hypothesis; all earlier tokens may be attended.
                query, key, value = (part.flatten(0, 1) for part in (query, keys[index], values[index]))
                mapped, attended[f"decoder.{index}.self"] = layer.self_attention.attend(query, key, value, own, need)
                return mapped.unflatten(0, tokens.shape)

            def attend_source(inputs: Tensor, index: int = index, layer: DecoderLayer = layer) -> Tensor:
                # All hypotheses of a source are queries to the same keys, so keys are never copied.
                (query,) = layer.cross_attention.project(inputs.squeeze(2), 0, 1)
                mapped, attended[f"decoder.{index}.cross"] = layer.cross_attention.attend(
                    query, memory.keys[index], memory.values[index], mask, wanted
                )
                return mapped[:, :, None]

            vectors = layer(vectors, attend_self, attend_source)
        features = self.decoder_norm(vectors).squeeze(2)
        after = TransformerState(tuple(keys), tuple(values), tuple(each + 1 for each in state.place))
        return self.with_copying(features, self._with_alignment(attended), memory), after

    def forward(self, inputs: Inputs, target_in: Int[Tensor, "batch target"], need: tuple[Need, ...] = ()) -> Decoded:
        memory = self.encode(inputs)
        attended: dict[str, Attended] = {}
        wanted = (*need, *self.reinforcement.need, *self.copy_need)
        vectors = self.drop(self.target_positions(self.target_embedding(target_in)))
        before, over_source = self._own_window(causal()), visible_from(self.config.attention, 0, memory.lengths)
        for index, layer in enumerate(self.decoder):

            def attend_self(inputs: Tensor, index: int = index, layer: DecoderLayer = layer) -> Tensor:
                query, key, value = layer.self_attention.project(inputs, 0, 3)
                mapped, attended[f"decoder.{index}.self"] = layer.self_attention.attend(query, key, value, before, need)
                return mapped

            def attend_source(inputs: Tensor, index: int = index, layer: DecoderLayer = layer) -> Tensor:
                (query,) = layer.cross_attention.project(inputs, 0, 1)
                mapped, attended[f"decoder.{index}.cross"] = layer.cross_attention.attend(
                    query, memory.keys[index], memory.values[index], over_source, wanted
                )
                return mapped

            vectors = layer(vectors, attend_self, attend_source)
        return self.with_copying(self.decoder_norm(vectors), self._with_alignment(attended), memory)

    def extra_losses(
        self, decoded: Decoded, token_log_probs: Float[Tensor, "batch target"], real: Bool[Tensor, "batch target"]
    ) -> dict[str, Tensor]:
        return self.reinforcement(decoded.attended.values(), token_log_probs, real)

    @property
    def has_papers_form(self) -> bool:
        """Whether attention and output are those of the paper, which fast forms and other engines require."""
        config = self.config
        attentions = (config.attention, config.encoder_attention, config.decoder_attention)
        return not config.has_copy and all(is_scaled_dot_softmax(each) for each in attentions)

    def _own_window(self, before: Mask | None) -> Mask | None:
        """Mask of the decoder's self-attention window; None = all earlier positions."""
        config = self.config.decoder_attention
        if config.window == "global":
            return before
        near_ones = window(config.half_width, 0)
        return near_ones if before is None else before & near_ones

    def _with_alignment(self, attended: dict[str, Attended]) -> dict[str, Attended]:
        """Add the mean weights of the last two layers, per head, if weights were requested."""
        first = max(0, self.config.num_decoder_layers - 2)
        layers = [attended[f"decoder.{index}.cross"] for index in range(first, self.config.num_decoder_layers)]
        weights = [layer.weights for layer in layers if layer.weights is not None]
        if not weights:
            return attended
        mean = torch.stack(weights).mean(dim=0)
        return attended | {ALIGNMENT: Attended(layers[-1].context, layers[-1].kernel, weights=mean)}

    @property
    def encoder(self) -> list[EncoderLayer]:
        """Encoder layers, the lowest first."""
        return [layer for layer in self.encoder_layers if isinstance(layer, EncoderLayer)]

    @property
    def decoder(self) -> list[DecoderLayer]:
        """Decoder layers, the lowest first."""
        return [layer for layer in self.decoder_layers if isinstance(layer, DecoderLayer)]

    def drop(self, vectors: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch size"]:
        """Apply dropout to embeddings while training.

        Args:
            vectors: [*batch, size].

        Returns:
            [*batch, size].
        """
        return dropout(vectors, self.config.dropout, self.training)


def _attention(config: TransformerConfig, attention: AttentionConfig, role: Role) -> MultiheadAttention:
    depth = config.model_size // config.num_heads
    layer = MultiheadAttention(config.model_size, config.num_heads, config.attention_dropout)
    layer.score = build_score(attention, depth, depth, config.num_heads, role)
    layer.normalizer = NormalizerLayer(build_normalizer(attention), config.num_heads)
    layer.draw_each_projection()
    return layer


def _positions(config: TransformerConfig) -> Positions:
    if config.positions == "none":
        return NoPositions(config.model_size)
    if config.positions == "learned":
        return LearnedPositions(config.model_size, config.max_positions)
    return SinusoidalPositions(config.model_size, config.positions == "sinusoidal_halves")


def _mine(state: State, memory: Memory) -> tuple[TransformerState, TransformerMemory]:
    """Narrow the types of memory and state.

    Raises:
        TypeError: the state belongs to another model, which is a programming error.
    """
    if not isinstance(state, TransformerState) or not isinstance(memory, TransformerMemory):
        raise TypeError(f"transformer: got {type(state).__name__} and {type(memory).__name__}")
    return state, memory
