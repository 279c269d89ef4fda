"""Encoder-decoder without attention: Cho et al. 2014, arXiv:1406.1078; Sutskever et al. 2014, arXiv:1409.3215.

The encoder maps a source of any length to vectors of a fixed size, from which alone the decoder generates the target.
Two forms: Sutskever's deep LSTM passes the final states of all layers to the decoder (context = "none"). Cho's gated
units give the decoder one summary c = tanh(V h_N) at every step and in the readout (context = "mapped"); RNNencdec,
the baseline of Bahdanau et al. 2015, uses c = h_N itself (context = "plain").
"""

from dataclasses import dataclass
from typing import Final, Literal, Self, final

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from heedful.attention.interface import Need
from heedful.config.base import MOST_SIZE, Config
from heedful.layers.dropout import dropout
from heedful.layers.embedding import Embedding, OutputLayer
from heedful.layers.initialization import draw_small, draw_uniform
from heedful.layers.recurrent import Cell, ResetPlacement, reverse_within, widen_forget_gates
from heedful.layers.recurrent_stack import RecurrentStack, StackState
from heedful.models.inputs import Inputs, token_inputs
from heedful.models.interface import Decoded, Memory, Seq2Seq, State


class RNNEncoderDecoderConfig(Config):
    """Configuration of encoder-decoders; those of the papers are in the presets that end in -paper.

    Example:
        >>> model = RNNEncoderDecoderConfig(hidden_size=32).build(20, 30, is_shared=False)
        >>> sum(parameter.numel() for parameter in model.parameters())
        104414
    """

    kind: Literal["rnn_encoder_decoder"] = "rnn_encoder_decoder"
    cell: Cell = "lstm"
    """Recurrent unit: lstm or gru."""
    num_layers: int = Field(default=2, ge=1, le=100)
    """Layers of the encoder and of the decoder."""
    embedding_size: int = Field(default=256, ge=1, le=MOST_SIZE)
    """Features of an embedding."""
    hidden_size: int = Field(default=256, ge=1, le=MOST_SIZE)
    """Size of each layer."""
    is_source_reversed: bool = True
    """Whether the words of a source are read in reverse, so that the first words of both sides are close: Sutskever et
    al. 2014, section 3.3. EOS stays at the end."""
    initial_state: Literal["copy", "mapped"] = "copy"
    """Initial state of the decoder. copy: the final states of the encoder's layers, as in Sutskever et al.; mapped:
    tanh(V' c), as in Cho et al., cells of LSTMs zero."""
    context: Literal["none", "plain", "mapped"] = "none"
    """Summary of the source at every step of the decoder and in the readout: none, the final output h_N of the
    encoder, or tanh(V h_N)."""
    reset: ResetPlacement = "before"
    """Form of the reset gate of gated units; see RNNsearch."""
    decoder_reset: Literal["before", "after", "with_context"] = "before"
    """Form of the decoder's reset gate; with_context: r * (U h + C c), as Cho et al. print it for their decoder."""
    readout: Literal["state", "maxout"] = "state"
    """Readout. state: softmax of the highest layer's state alone, as in Sutskever et al.; maxout: of state, word and
    context, as in Cho et al."""
    readout_state: Literal["before", "after"] = "after"
    """State in the maxout readout: before the step, as in RNNencdec, or after it, as in Cho et al."""
    maxout_size: int = Field(default=256, ge=1, le=MOST_SIZE)
    """Size of the maxout layer, where readout = "maxout"."""
    dropout: float = Field(default=0.2, ge=0.0, lt=1.0)
    """Dropout of the inputs of every layer; not in the papers."""
    output_dropout: float = Field(default=0.2, ge=0.0, lt=1.0)
    """Dropout of the input of the vocabulary layer."""
    output_bias: bool = True
    """Whether the output layer has a bias."""
    initialization: Literal["uniform", "small"] = "uniform"
    """Initial parameters. uniform: within init_range, as in Sutskever et al.; small: matrices N(0, 0.01^2), recurrent
    ones orthogonal, vectors 0, as in Cho et al."""
    init_range: float = Field(default=0.08, gt=0.0, le=1e6)
    """Bound of the uniform distribution of initial parameters. Sutskever et al. 2014, arXiv:1409.3215, section 3.4."""
    forget_bias: float = Field(default=1.0, ge=-100.0, le=100.0)
    """Addend of the initial biases of forget gates; 0 in the papers."""

    @model_validator(mode="after")
    def _check_choices(self) -> Self:
        if self.decoder_reset == "with_context" and (self.cell != "gru" or self.context == "none"):
            raise ValueError('decoder_reset "with_context" needs cell "gru" and a context')
        return self

    def build(self, num_source_tokens: int, num_target_tokens: int, is_shared: bool) -> "RNNEncoderDecoder":
        """Build a model with fresh parameters.

        Args:
            num_source_tokens: size of the source vocabulary.
            num_target_tokens: size of the target vocabulary.
            is_shared: whether both are one vocabulary; each side has its own embedding anyway.
        """
        return RNNEncoderDecoder(self, num_source_tokens, num_target_tokens)


PRESETS: Final[dict[str, RNNEncoderDecoderConfig]] = {
    # A smaller form of the base model of Luong et al. 2015.
    "rnn_encoder_decoder": RNNEncoderDecoderConfig(),
    "sutskever-paper": RNNEncoderDecoderConfig(
        num_layers=4,
        embedding_size=1000,
        hidden_size=1000,
        dropout=0.0,
        output_dropout=0.0,
        output_bias=False,
        forget_bias=0.0,
    ),
    "cho-paper": RNNEncoderDecoderConfig(
        cell="gru",
        num_layers=1,
        embedding_size=100,
        hidden_size=1000,
        is_source_reversed=False,
        initial_state="mapped",
        context="mapped",
        decoder_reset="with_context",
        readout="maxout",
        maxout_size=500,
        dropout=0.0,
        output_dropout=0.0,
        initialization="small",
    ),
    "rnnencdec-paper": RNNEncoderDecoderConfig(
        cell="gru",
        num_layers=1,
        embedding_size=620,
        hidden_size=1000,
        is_source_reversed=False,
        initial_state="mapped",
        context="plain",
        readout="maxout",
        readout_state="before",
        maxout_size=500,
        dropout=0.0,
        output_dropout=0.0,
        initialization="small",
    ),
    # The lesson "sequence to sequence learning" of Dive into Deep Learning.
    "d2l-seq2seq": RNNEncoderDecoderConfig(
        cell="gru",
        embedding_size=32,
        hidden_size=32,
        is_source_reversed=False,
        context="plain",
        reset="after",
        decoder_reset="after",
        dropout=0.1,
        output_dropout=0.0,
    ),
}
"""As the papers train them: sutskever-paper with training.optimizer.kind = "sgd", learning_rate = 0.7, mean_over =
"pairs", schedule.kind = "halving", halve_in = "epochs", halve_after = 5, halve_every = 0.5; training.clip_norm = 5;
it ends after 7.5 epochs. cho-paper and rnnencdec-paper with training.optimizer.kind = "adadelta", mean_over = "pairs";
training.clip_norm = 1. All with training.label_smoothing = 0 and average = 0."""


@dataclass(frozen=True)
class RNNEncoderDecoderMemory(Memory):
    """Summary of a source, all that the decoder knows of it."""

    states: StackState
    """States of the encoder's layers after the last word, each [source, hidden]."""
    context: tuple[Float[Tensor, "source _"], ...]
    """Context c [source, hidden] and its addend to the gates of the lowest layer [source, gates]; empty without
    context."""


@dataclass(frozen=True)
class RNNEncoderDecoderState(State):
    """States of the decoder's layers, each [source, hypothesis, hidden]."""

    layers: StackState


@final
class RNNEncoderDecoder(Seq2Seq):
    """Model h_N -> c -> s_t: the decoder knows only the encoder's final states of the source.

    Symbols: source words x_j, j = 1..N; encoder states h_j = f(h_{j-1}, x_j); summary c = tanh(V h_N) of Cho, h_N of
    RNNencdec, none of Sutskever; decoder states s_t = f(s_{t-1}, y_{t-1}, c), in Cho's paper h'_t, which begin as
    s_0 = tanh(V' c), or as the encoder's final states, layer by layer, in Sutskever's; words softmax(G s_t), or of a
    maxout readout of s_t, y_{t-1} and c.

    Example:
        >>> from heedful.models.inputs import TokenInputs
        >>> model = RNNEncoderDecoderConfig(hidden_size=8).build(20, 30, is_shared=False).eval()
        >>> source = TokenInputs(torch.tensor([[5, 6, 3]]), torch.tensor([3]))
        >>> list(model.logits(model(source, torch.tensor([[2, 7]])).features).shape)
        [1, 2, 30]
    """

    def __init__(self, config: RNNEncoderDecoderConfig, num_source_tokens: int, num_target_tokens: int) -> None:
        super().__init__()
        self.config = config
        embedding, hidden, num_layers = config.embedding_size, config.hidden_size, config.num_layers
        self.source_embedding = Embedding(num_source_tokens, embedding)
        self.target_embedding = Embedding(num_target_tokens, embedding)
        self.encoder = RecurrentStack(config.cell, embedding, hidden, num_layers, config.dropout, config.reset)
        decoder_reset = "before" if config.decoder_reset == "before" else "after"
        self.decoder = RecurrentStack(config.cell, embedding, hidden, num_layers, config.dropout, decoder_reset)
        has_context = config.context != "none"
        gates = self.decoder.units[0].input_map.out_features
        self.summary = nn.Linear(hidden, hidden) if config.context == "mapped" else None  # V
        self.context_map = nn.Linear(hidden, gates, bias=False) if has_context else None  # C_z, C_r, C
        self.initial = nn.Linear(hidden, num_layers * hidden) if config.initial_state == "mapped" else None  # V'
        features, self.readout = hidden, None
        if config.readout == "maxout":
            readout_size = hidden + embedding + (hidden if has_context else 0)
            features, self.readout = (
                config.maxout_size,
                nn.Linear(readout_size, 2 * config.maxout_size),
            )  # O_h, O_y, O_c
        self.output = OutputLayer(num_target_tokens, features, config.output_bias)
        self.alignment = ""
        if config.initialization == "uniform":
            draw_uniform(self, config.init_range)
        else:
            draw_small(self)
        widen_forget_gates(self, config.forget_bias)

    def encode(self, inputs: Inputs) -> RNNEncoderDecoderMemory:
        tokens = token_inputs(inputs)
        source, source_lengths = tokens.ids, tokens.lengths
        if self.config.is_source_reversed:
            source = reverse_within(source, source_lengths - 1)
        _, states = self.encoder.run(self.source_embedding(source), source_lengths)
        if self.context_map is None:
            return RNNEncoderDecoderMemory(source_lengths, states, ())
        context = states[-1][0]
        if self.summary is not None:
            context = torch.tanh(self.summary(context))
        return RNNEncoderDecoderMemory(source_lengths, states, (context, self.context_map(context)))

    def start(self, memory: Memory, num_hypotheses: int = 1) -> RNNEncoderDecoderState:
        def spread(vectors: Tensor) -> Tensor:
            return vectors[:, None].expand(-1, num_hypotheses, -1)

        layers = self._initial_states(_mine(memory))
        return RNNEncoderDecoderState(tuple(tuple(spread(part) for part in layer) for layer in layers))

    def step(
        self, tokens: Int[Tensor, "source hypothesis"], state: State, memory: Memory, need: tuple[Need, ...] = ()
    ) -> tuple[Decoded, RNNEncoderDecoderState]:
        memory = _mine(memory)
        if not isinstance(state, RNNEncoderDecoderState):
            raise TypeError(f"rnn_encoder_decoder: got {type(state).__name__}")
        embedded = self.target_embedding(tokens)
        layers = self.decoder.step(self._mapped(embedded, memory), state.layers)
        features = self._read_out(state.layers[-1][0], layers[-1][0], embedded, memory)
        return Decoded(features, {}), RNNEncoderDecoderState(layers)

    def forward(self, inputs: Inputs, target_in: Int[Tensor, "batch target"], need: tuple[Need, ...] = ()) -> Decoded:
        memory = self.encode(inputs)
        embedded = self.target_embedding(target_in)
        start = self._initial_states(memory)
        if self.context_map is None:
            after, _ = self.decoder.run(embedded, start=start)
        else:
            embedded = dropout(embedded, self.config.dropout, self.training)
            after, _ = self.decoder.run_mapped(self._mapped(embedded, memory), start)
        before = after
        if self.readout is not None and self.config.readout_state == "before":
            before = torch.cat((start[-1][0][:, None].to(after.dtype), after[:, :-1]), dim=1)
        return Decoded(self._read_out(before, after, embedded, memory), {})

    def _initial_states(self, memory: RNNEncoderDecoderMemory) -> StackState:
        if self.initial is None:
            return memory.states
        summary = memory.context[0] if memory.context else memory.states[-1][0]
        first = torch.tanh(self.initial(summary)).chunk(self.config.num_layers, dim=-1)
        return tuple(
            (hidden, *(torch.zeros_like(hidden) for _ in range(unit.num_parts - 1)))
            for unit, hidden in zip(self.decoder.units, first, strict=True)
        )

    def _mapped(self, embedded: Tensor, memory: RNNEncoderDecoderMemory) -> Tensor:
        """Addend of words and context to the gates of the lowest layer, [source, hypothesis or target, gates]."""
        mapped = self.decoder.units[0].input_map(embedded)
        if not memory.context:
            return mapped
        added = memory.context[1][:, None]
        if self.config.decoder_reset != "with_context":
            return mapped + added
        inner = 2 * self.config.hidden_size
        gates = mapped[..., :inner] + added[..., :inner]
        return torch.cat((gates, mapped[..., inner:], added[..., inner:].expand_as(mapped[..., inner:])), dim=-1)

    def _read_out(self, before: Tensor, after: Tensor, embedded: Tensor, memory: RNNEncoderDecoderMemory) -> Tensor:
        features = after
        if self.readout is not None:
            state = before if self.config.readout_state == "before" else after
            parts = [state, embedded, *(c[:, None].expand(-1, after.shape[1], -1) for c in memory.context[:1])]
            features = self.readout(torch.cat(parts, dim=-1)).unflatten(-1, (-1, 2)).amax(dim=-1)
        return dropout(features, self.config.output_dropout, self.training)


def _mine(memory: Memory) -> RNNEncoderDecoderMemory:
    if not isinstance(memory, RNNEncoderDecoderMemory):
        raise TypeError(f"rnn_encoder_decoder: got {type(memory).__name__}")
    return memory
