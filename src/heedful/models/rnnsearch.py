"""RNNsearch: jointly learning to align and translate. Bahdanau, Cho and Bengio 2015, arXiv:1409.0473.

The query is the state *before* the step, and the context enters the cell.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal, Self, final

import torch
from jaxtyping import Float, Int
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.interface import Attended, Need, PreparedKey
from heedful.attention.masks import Mask
from heedful.attention.stepwise import StepwiseValue
from heedful.attention.tile_autograd import join
from heedful.config.base import MOST_SIZE, Config
from heedful.config.plugins import is_custom
from heedful.layers.convolution import ConvolutionalEncoder
from heedful.layers.dropout import dropout
from heedful.layers.embedding import Embedding, OutputLayer, draw_normal
from heedful.layers.initialization import draw_small
from heedful.layers.recurrent import BidirectionalEncoder, GatedRecurrentUnit, ResetPlacement, at_end
from heedful.models.attention_config import AttentionConfig, require_suitable, upgrade_attention
from heedful.models.attentive import AttentiveSeq2Seq, Coverage, visible_from
from heedful.models.custom_encoder import build_custom_encoder, check_encoder, custom_output_size
from heedful.models.inputs import Inputs, token_inputs
from heedful.models.interface import Decoded, Memory, State


class RNNsearchAttention(AttentionConfig):
    """Attention of Bahdanau et al. 2015: by default the additive score over the whole source."""

    score: str = "additive"
    hidden_size: int = Field(default=256, ge=0, le=MOST_SIZE)
    """n', hidden units of the alignment model; 0 = the size of a query."""


class RNNsearchConfig(Config):
    """Configuration of RNNsearch; the paper's sizes are in the preset rnnsearch-paper. Dropout is not in the paper.

    Example:
        >>> model = RNNsearchConfig(hidden_size=32).build(20, 30, is_shared=False)
        >>> sum(parameter.numel() for parameter in model.parameters())
        316510
    """

    kind: Literal["rnnsearch"] = "rnnsearch"
    embedding_size: int = Field(default=256, ge=1, le=MOST_SIZE)
    """Size m of the embeddings."""
    hidden_size: int = Field(default=384, ge=1, le=MOST_SIZE)
    """Size n of each direction of the encoder, and of the decoder."""
    attention: RNNsearchAttention = RNNsearchAttention()
    """The alignment model."""
    maxout_size: int = Field(default=256, ge=1, le=MOST_SIZE)
    """Size l of the maxout layer, where readout = "maxout"."""
    encoder: str = "recurrent"
    """Encoder: recurrent = the paper's bidirectional one; convolutional = that of Gehring et al. 2017; or module:Class
    of one outside the package."""
    num_convolutions: int = Field(default=4, ge=1, le=100)
    """Layers of a convolutional encoder, of hidden_size features inside."""
    convolution_width: int = Field(default=3, ge=1, le=MOST_SIZE)
    """Width of a convolution, odd."""
    max_positions: int = Field(default=512, ge=1, le=MOST_SIZE)
    """Longest source of a convolutional encoder, in tokens."""
    decoder: Literal["gru", "conditional"] = "gru"
    """gru: one unit that reads word and context, as in the paper; conditional: one unit reads the word, its new state
    is the query, and a second unit reads the context: Sennrich et al. 2017, arXiv:1703.04357, section 4."""
    readout: Literal["maxout", "state"] = "maxout"
    """maxout: of a state, y_{i-1} and c_i, as in the paper; state: softmax of the new state s_i alone."""
    readout_state: Literal["before", "after"] = "before"
    """State in the maxout readout: s_{i-1}, as in the paper's appendix, or s_i, as in its eq. 4."""
    initial_state: Literal["backward", "last", "mean"] = "backward"
    """The tanh of a linear map: backward: of the backward state of the first word, as in the paper; last: of the last
    states of both directions; mean: of the mean of all states, the only one for an encoder that is not recurrent."""
    reset: ResetPlacement = "before"
    """Form of the reset gate: before the state's map, as in the paper, or after it, as in cuDNN."""
    has_copy: bool = False
    """Whether the output may copy source tokens; See et al. 2017, arXiv:1704.04368, eq. 9. Needs one vocabulary."""
    dropout: float = Field(default=0.2, ge=0.0, lt=1.0)
    """Dropout of embeddings, annotations and readout."""
    initialization: Literal["scaled", "paper"] = "scaled"
    """scaled: by the sizes of each map; paper: N(0, 0.01^2), N(0, 0.001^2) in the alignment model, recurrent maps
    orthogonal, v_a and biases 0."""

    @property
    def annotation_size(self) -> int:
        """Features of an annotation h_j."""
        if is_custom(self.encoder):
            return custom_output_size(self.encoder, self.embedding_size, self.hidden_size)
        return self.embedding_size if self.encoder == "convolutional" else 2 * self.hidden_size

    @field_validator("encoder")
    @classmethod
    def _check_encoder(cls, name: str) -> str:
        return check_encoder(name, ("recurrent", "convolutional"))

    @model_validator(mode="before")
    @classmethod
    def _upgrade(cls, table: object) -> object:
        return upgrade_attention(table)

    @model_validator(mode="after")
    def _check_choices(self) -> Self:
        if self.convolution_width % 2 == 0:
            raise ValueError(f"convolution_width {self.convolution_width} must be odd")
        if self.encoder != "recurrent" and self.initial_state != "mean":
            kind = self.encoder if is_custom(self.encoder) else f"a {self.encoder} encoder"
            raise ValueError(f'{kind} has no last state: set initial_state to "mean"')
        require_suitable(self.attention, self.hidden_size, self.annotation_size)
        return self

    def build(self, num_source_tokens: int, num_target_tokens: int, is_shared: bool) -> "RNNsearch":
        """Build a model with fresh parameters.

        Args:
            num_source_tokens: size of the source vocabulary.
            num_target_tokens: size of the target vocabulary.
            is_shared: whether both are one vocabulary; each side has its own embedding anyway.
        """
        return RNNsearch(self, num_source_tokens, num_target_tokens, is_shared)


PRESETS: Final[dict[str, RNNsearchConfig]] = {
    "rnnsearch-tiny": RNNsearchConfig(
        embedding_size=64, hidden_size=128, maxout_size=64, attention=RNNsearchAttention(hidden_size=128)
    ),
    "rnnsearch": RNNsearchConfig(),
    "rnnsearch-paper": RNNsearchConfig(
        embedding_size=620,
        hidden_size=1000,
        attention=RNNsearchAttention(hidden_size=1000),
        maxout_size=500,
        dropout=0.0,
        initialization="paper",
    ),
    # Sizes of the lesson "Bahdanau attention" of Dive into Deep Learning, whose decoder has two layers.
    "d2l-rnnsearch": RNNsearchConfig(
        embedding_size=32,
        hidden_size=32,
        attention=RNNsearchAttention(hidden_size=32),
        readout="state",
        reset="after",
        dropout=0.1,
    ),
}
"""rnnsearch-paper as the paper trains it, B.2: training.optimizer.kind = "adadelta", mean_over = "pairs";
training.clip_norm = 1, label_smoothing = 0, average = 0."""


@dataclass(frozen=True)
class RNNsearchMemory(Memory):
    """Annotations, with the prepared keys of the alignment model."""

    annotations: Float[Tensor, "source position size"]
    """[source, position, size] annotations h_j; after `prepare_steps`, their maps for cell and readout,
    concatenated."""
    prepared: PreparedKey
    """Mapped annotations U_a h_j."""
    is_mapped: bool = False


@dataclass(frozen=True)
class RNNsearchState(State):
    """Decoder state s_{i-1}, [source, hypothesis, hidden]."""

    hidden: Float[Tensor, "source hypothesis hidden"]
    place: tuple[Int[Tensor, "source hypothesis"], ...] = ()
    """i, [source, hypothesis]; empty unless the window is local-m."""
    coverage: tuple[Float[Tensor, "source hypothesis position"], ...] = ()
    """Weights of earlier steps, as `AttentiveSeq2Seq.attend_source` gives them; empty unless a step depends on them."""


@final
class RNNsearch(AttentiveSeq2Seq):
    """s_{i-1} -> a_i -> c_i -> s_i: a bidirectional encoder, and a decoder that searches the source at each word.

    Symbols of the paper: source words x_j, j = 1..T_x; annotations h_j, both directions' states side by side; energies
    e_ij = v_a . tanh(W_a s_{i-1} + U_a h_j); alignment a_ij = softmax_j(e_ij); context c_i = sum_j a_ij h_j; decoder
    state s_i = f(s_{i-1}, y_{i-1}, c_i); readout t_i = maxout(U_o s_{i-1} + V_o E y_{i-1} + C_o c_i); words
    softmax(W_o t_i). Sizes: n hidden units, m of an embedding, n' of the alignment model, l of the maxout.

    Example:
        >>> from heedful.models.inputs import TokenInputs
        >>> model = RNNsearchConfig(hidden_size=8).build(20, 30, is_shared=False).eval()
        >>> source = TokenInputs(torch.tensor([[5, 6, 3]]), torch.tensor([3]))
        >>> list(model.logits(model(source, torch.tensor([[2, 7]])).features).shape)
        [1, 2, 30]
    """

    def __init__(
        self, config: RNNsearchConfig, num_source_tokens: int, num_target_tokens: int, is_shared: bool = False
    ) -> None:
        super().__init__()
        self.config = config
        embedding, hidden, reset = config.embedding_size, config.hidden_size, config.reset
        self.source_embedding = Embedding(num_source_tokens, embedding, std=0.1)
        self.target_embedding = Embedding(num_target_tokens, embedding, std=0.1)
        if config.encoder == "recurrent":
            self.encoder: nn.Module = BidirectionalEncoder(embedding, hidden, reset)
        elif is_custom(config.encoder):
            self.encoder = build_custom_encoder(config.encoder, embedding, hidden)
        else:
            layers = (config.num_convolutions, config.convolution_width, config.max_positions)
            self.encoder = ConvolutionalEncoder(embedding, hidden, *layers, config.dropout)
        self._annotation_size: Final = config.annotation_size
        size = self._annotation_size
        self.initial = nn.Linear(hidden if config.initial_state == "backward" else size, hidden)
        self.add_attention(config.attention, hidden, size)
        self.decoder = GatedRecurrentUnit(embedding, hidden, reset)
        self.context_map = self.second = None
        if config.decoder == "gru":
            self.context_map = nn.Linear(size, 3 * hidden, bias=False)  # C_z, C_r, C
        else:
            self.second = GatedRecurrentUnit(size, hidden, reset)
        if config.readout == "maxout":
            self.readout: nn.Module = nn.Linear(hidden + embedding + size, 2 * config.maxout_size)  # U_o, V_o, C_o
            features = config.maxout_size
        else:
            self.readout = nn.Identity()
            features = hidden
        self.output = OutputLayer(num_target_tokens, features, bias=True)
        self.alignment = "cross"
        if config.has_copy:
            self.add_copy_gate(features, is_shared)
        if config.initialization == "paper":
            draw_small(self)
            for weight in self.score.parameters():
                if weight.dim() > 1:  # W_a and U_a
                    draw_normal(weight, 0.001)

    def encode(self, inputs: Inputs) -> RNNsearchMemory:
        tokens = token_inputs(inputs)
        source, source_lengths = tokens.ids, tokens.lengths
        embedded = self._dropout(self.source_embedding(source))
        if isinstance(self.encoder, ConvolutionalEncoder):
            keys, annotations = self.encoder(embedded, source_lengths)
        else:
            keys = annotations = self._dropout(self.encoder(embedded, source_lengths))
        prepared = self.prepare_keys(keys, source_lengths, source)
        return RNNsearchMemory(source_lengths, annotations, prepared, source=self.copied_source(tokens))

    def start(self, memory: Memory, num_hypotheses: int = 1) -> RNNsearchState:
        memory = _mine(memory)
        size = self.config.hidden_size
        if self.config.initial_state == "mean":
            real = torch.arange(memory.annotations.shape[1], device=memory.lengths.device) < memory.lengths[:, None]
            first = memory.annotations.masked_fill(~real[..., None], 0.0).sum(dim=1) / memory.lengths[:, None]
        else:
            first = memory.annotations[:, 0, size:]  # the backward state at the first word has read the whole source
            if self.config.initial_state == "last":
                first = torch.cat((at_end(memory.annotations, memory.lengths)[:, :size], first), dim=-1)
        state = torch.tanh(self.initial(first))
        state = state[:, None].expand(-1, num_hypotheses, -1)
        num_positions = memory.annotations.shape[1]
        return RNNsearchState(state, self.first_places(state), self.first_coverage(state, num_positions))

    def prepare_steps(self, memory: Memory) -> RNNsearchMemory:
        # C c_i = sum_j alpha_ij C h_j: mapping the annotations once is cheaper than mapping every context.
        memory = _mine(memory)
        rows = [] if self.context_map is None else [self.context_map.weight]
        if self.second is not None:
            rows.append(self.second.input_map.weight)
        if isinstance(self.readout, nn.Linear):
            rows.append(self.readout.weight[:, -self._annotation_size :])  # C_o
        mapped = functional.linear(memory.annotations, torch.cat(rows))
        return replace(memory, annotations=mapped, is_mapped=True)

    def step(
        self, tokens: Int[Tensor, "source hypothesis"], state: State, memory: Memory, need: tuple[Need, ...] = ()
    ) -> tuple[Decoded, RNNsearchState]:
        memory = _mine(memory)
        if not isinstance(state, RNNsearchState):
            raise TypeError(f"rnnsearch: got {type(state).__name__}")
        embedded = self.target_embedding(tokens)
        attended, new, coverage = self._advance(
            state.hidden,
            self.decoder.input_map(embedded),
            memory,
            StepwiseValue(memory.annotations),
            self.visible_at(state.place, memory.lengths, memory.annotations.shape[1]),
            need,
            state.coverage,
        )
        features = self._read_out(state.hidden, new, embedded, attended.context, memory.is_mapped)
        after = RNNsearchState(new, tuple(each + 1 for each in state.place), coverage)
        return self.with_copying(features, {"cross": attended}, memory), after

    def forward(self, inputs: Inputs, target_in: Int[Tensor, "batch target"], need: tuple[Need, ...] = ()) -> Decoded:
        memory = self.encode(inputs)
        embedded = self._dropout(self.target_embedding(target_in))
        state = self.start(memory)
        hidden, coverage = state.hidden, state.coverage
        before: list[Tensor] = []
        after: list[Tensor] = []
        steps: list[Attended] = []
        # The loop contains only the recurrence; readout and logits are computed once, after it.
        values = self.share_values(memory.annotations)
        for position, mapped in enumerate(self.decoder.input_map(embedded).split(1, dim=1)):
            before.append(hidden)
            mask = visible_from(self.attention, position, memory.lengths)
            attended, hidden, coverage = self._advance(hidden, mapped, memory, values, mask, need, coverage)
            after.append(hidden)
            steps.append(attended)
        attended = join(steps)
        features = self._read_out(torch.cat(before, dim=1), torch.cat(after, dim=1), embedded, attended.context)
        return self.with_copying(features, {"cross": attended}, memory)

    def _advance(
        self,
        hidden: Tensor,
        mapped: Tensor,
        memory: RNNsearchMemory,
        values: Tensor | StepwiseValue,
        mask: Mask,
        need: tuple[Need, ...],
        coverage: Coverage,
    ) -> tuple[Attended, Tensor, Coverage]:
        """Context c_i, or its mapped form, and s_i from s_{i-1} and W E y_{i-1}, both [source, hypothesis, *]."""
        query = hidden if self.second is None else self.decoder.step(mapped, (hidden,))[0]
        attended, after = self.attend_source(query, memory.prepared, values, memory.lengths, mask, need, coverage)
        mapped_context = attended.context[..., : 3 * self.config.hidden_size] if memory.is_mapped else None
        if self.second is not None:
            unit = self.second.input_map
            read = unit(attended.context) if mapped_context is None else mapped_context + unit.bias
            return attended, self.second.step(read, (query,))[0], after
        if self.context_map is not None:
            mapped = mapped + (self.context_map(attended.context) if mapped_context is None else mapped_context)
        return attended, self.decoder.step(mapped, (hidden,))[0], after

    def _read_out(
        self, before: Tensor, after: Tensor, embedded: Tensor, context: Tensor, is_mapped: bool = False
    ) -> Tensor:
        if not isinstance(self.readout, nn.Linear):
            return self._dropout(after)
        state = before if self.config.readout_state == "before" else after
        if is_mapped:
            weight = self.readout.weight[:, : -self._annotation_size]  # U_o, V_o
            both = functional.linear(torch.cat((state, embedded), dim=-1), weight, self.readout.bias)
            both = both + context[..., 3 * self.config.hidden_size :]
        else:
            both = self.readout(torch.cat((state, embedded, context), dim=-1))
        return self._dropout(both.unflatten(-1, (-1, 2)).amax(dim=-1))

    def _dropout(self, vectors: Tensor) -> Tensor:
        return dropout(vectors, self.config.dropout, self.training)


def _mine(memory: Memory) -> RNNsearchMemory:
    if not isinstance(memory, RNNsearchMemory):
        raise TypeError(f"rnnsearch: got {type(memory).__name__}")
    return memory
