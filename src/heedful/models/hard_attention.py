"""Exact hard attention: each token comes from one source position, and the likelihood sums over all of them.

Without monotonicity: Wu, Shapiro and Cotterell 2018, arXiv:1808.10024. Monotonic, and with transitions that depend on
the position before: Wu and Cotterell 2019, arXiv:1905.06319. Nothing is sampled and nothing is averaged: the sum over
the exponentially many alignments is that of a hidden Markov model, whose states are the source positions.
"""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Self, final

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.alignment_sums import (
    advance,
    alignment_posteriors,
    observe,
    start_log_posterior,
    sum_alignments,
)
from heedful.attention.interface import Attended, Need, PreparedKey
from heedful.attention.masks import Mask
from heedful.attention.structured_chain import log_sum
from heedful.config.base import MOST_SIZE, Config
from heedful.layers.dropout import dropout
from heedful.layers.embedding import Embedding, OutputLayer
from heedful.layers.recurrent import widen_forget_gates
from heedful.layers.recurrent_stack import BidirectionalStack, RecurrentStack, StackState
from heedful.models.attention_config import AttentionConfig, build_normalizer, require_suitable
from heedful.models.attentive import AttentiveSeq2Seq, visible_from
from heedful.models.inputs import Inputs, token_inputs
from heedful.models.interface import Decoded, Memory, State
from heedful.models.reinforcement import is_drawn


class HardAttentionScore(AttentionConfig):
    """Distribution of the next source position: by default the softmax of the bilinear score, as in the papers."""

    score: str = "general"


class HardAttentionConfig(Config):
    """Configuration of exact hard attention; the sizes of the papers are in the preset hard_attention-paper."""

    kind: Literal["hard_attention"] = "hard_attention"
    embedding_size: int = Field(default=128, ge=1, le=MOST_SIZE)
    """Features of an embedding."""
    hidden_size: int = Field(default=256, ge=1, le=MOST_SIZE)
    """Size of each direction of a layer of the encoder, and of a layer of the decoder."""
    num_encoder_layers: int = Field(default=2, ge=1, le=100)
    """Layers of the bidirectional encoder."""
    num_decoder_layers: int = Field(default=1, ge=1, le=100)
    """Layers of the decoder."""
    attention: HardAttentionScore = HardAttentionScore()
    """Distribution p(a_i = j) over the source positions, from the decoder's state."""
    is_monotonic: bool = True
    """True for positions that never go back, a_i >= a_{i-1}: Wu and Cotterell 2019, section 4; else Wu et al. 2018."""
    order: Literal[0, 1] = 1
    """Order of the alignments: 0 = the next position depends on the one before through monotonicity alone; 1 = on the
    distance from it and the state there too, Wu and Cotterell 2019, section 5."""
    max_shift: int = Field(default=5, ge=1, le=1000)
    """Largest distance of two positions that are told apart, where order = 1."""
    readout_size: int = Field(default=256, ge=1, le=MOST_SIZE)
    """Size of the readout."""
    dropout: float = Field(default=0.3, ge=0.0, lt=1.0)
    """Dropout of the inputs of every layer, annotations and readout."""
    forget_bias: float = Field(default=1.0, ge=-100.0, le=100.0)
    """Addend of the initial biases of forget gates; 0 in the papers."""

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Names of settings that nothing reads, because of others."""
        return () if self.order else ("max_shift",)

    @model_validator(mode="after")
    def _check_choices(self) -> Self:
        attention = self.attention
        require_suitable(attention, self.hidden_size, 2 * self.hidden_size)
        normalizer = build_normalizer(attention)
        if is_drawn(normalizer) or normalizer.weights_lie_in != "simplex":
            raise ValueError(
                f"attention.normalizer {attention.normalizer}: positions need a distribution; take softmax"
            )
        if attention.window == "local-p" or attention.remembers_weights or attention.coverage_weight:
            raise ValueError(
                "attention: windows of local-p, coverage and location filters are for soft attention; leave them out"
            )
        return self

    def build(self, num_source_tokens: int, num_target_tokens: int, is_shared: bool) -> "HardAttention":
        """Build a model with fresh parameters.

        Args:
            is_shared: whether both are one vocabulary; each side has its own embedding anyway.
        """
        return HardAttention(self, num_source_tokens, num_target_tokens)


PRESETS: Final[dict[str, HardAttentionConfig]] = {
    "hard_attention-tiny": HardAttentionConfig(
        embedding_size=64, hidden_size=128, num_encoder_layers=1, readout_size=128
    ),
    "hard_attention": HardAttentionConfig(),
    # The code of both papers: its scripts for grapheme-to-phoneme conversion, transliteration and inflection.
    "hard_attention-paper": HardAttentionConfig(
        embedding_size=200,
        hidden_size=400,
        is_monotonic=False,
        order=0,
        readout_size=1200,
        dropout=0.4,
        forget_bias=0.0,
    ),
}


@dataclass(frozen=True)
class HardAttentionMemory(Memory):
    """Annotations, and their maps for transitions and readout."""

    annotations: Float[Tensor, "source position size"]
    """[source, position, size] annotations h_j."""
    prepared: PreparedKey
    """Keys of the score."""
    mapped: Float[Tensor, "source position readout"]
    """[source, position, readout] addends of the annotations to the readout."""
    shifts: tuple[Float[Tensor, "source position shift"], ...]
    """[source, position, shift] addends of the annotations to the scores of distances; empty for order 0."""


@dataclass(frozen=True)
class HardAttentionState(State):
    """Decoder state, each tensor [source, hypothesis, *], with the last readout, whose token is not known yet."""

    layers: StackState
    log_prior: Float[Tensor, "source hypothesis position"]
    """log p(a_i = j | y_1 .. y_i-1)."""
    features: Float[Tensor, "source hypothesis position readout"]
    log_normalizer: Float[Tensor, "source hypothesis position"]
    """log of the sum over the vocabulary, at each position."""
    place: tuple[Int[Tensor, "source hypothesis"], ...] = ()
    """i; empty unless the window is local-m."""


class AlignedTargets(NamedTuple):
    """Parts of the probability of targets: what each position would emit at each step, and how positions follow."""

    features: Float[Tensor, "batch target position readout"]
    """[batch, target, position, readout] input of the output layer."""
    log_transitions: Float[Tensor, "batch target _ position"]
    """[batch, target, position or 1, position] as for `sum_alignments`."""
    attended: Attended


@final
class HardAttention(AttentiveSeq2Seq):
    """p(y) = sum over alignments a of prod_i p(a_i | a_{i-1}, y_<i) p(y_i | a_i, y_<i).

    Symbols: annotations h_j of a bidirectional encoder; decoder states s_i, which read y_<i alone, not the source;
    p(y_i | a_i = j) = softmax(W tanh(S [s_i; h_j])); p(a_i = j) = softmax_j(score(s_i, h_j)), among the positions
    j >= a_{i-1} if it is monotonic. With order 1, the distance j - j' from the position j' before adds
    u_d . [s_i; h_j'] to the score, d = j - j' between -D and D; in the paper's own form it replaces the score.
    A hypothesis of a search holds the distribution of its position, so that it counts all alignments.
    """

    has_posteriors = True

    def __init__(self, config: HardAttentionConfig, num_source_tokens: int, num_target_tokens: int) -> None:
        super().__init__()
        self.config = config
        embedding, hidden = config.embedding_size, config.hidden_size
        self.source_embedding = Embedding(num_source_tokens, embedding)
        self.target_embedding = Embedding(num_target_tokens, embedding)
        self.encoder = BidirectionalStack("lstm", embedding, hidden, config.num_encoder_layers, config.dropout)
        self.decoder = RecurrentStack("lstm", embedding, hidden, config.num_decoder_layers, config.dropout)
        self.add_attention(config.attention, hidden, 2 * hidden)
        num_shifts = config.max_shift + 1 if config.is_monotonic else 2 * config.max_shift + 1
        self.state_shifts = self.source_shifts = None
        if config.order:
            self.state_shifts = nn.Linear(hidden, num_shifts)
            self.source_shifts = nn.Linear(2 * hidden, num_shifts, bias=False)
        self.state_readout = nn.Linear(hidden, config.readout_size)
        self.source_readout = nn.Linear(2 * hidden, config.readout_size, bias=False)
        self.output = OutputLayer(num_target_tokens, config.readout_size, bias=True)
        self.alignment = "cross"
        widen_forget_gates(self, config.forget_bias)

    @property
    def has_linear_output(self) -> bool:
        return False

    def encode(self, inputs: Inputs) -> HardAttentionMemory:
        tokens = token_inputs(inputs)
        source, lengths = tokens.ids, tokens.lengths
        annotations, _ = self.encoder.run(self.source_embedding(source), lengths)
        annotations = self._dropout(annotations)
        shifts = () if self.source_shifts is None else (self.source_shifts(annotations),)
        prepared = self.prepare_keys(annotations, lengths, source)
        return HardAttentionMemory(lengths, annotations, prepared, self.source_readout(annotations), shifts)

    def start(self, memory: Memory, num_hypotheses: int = 1) -> HardAttentionState:
        memory = _mine(memory)
        mapped = memory.mapped[:, None].expand(-1, num_hypotheses, -1, -1)
        zeros = mapped.new_zeros(*mapped.shape[:2], self.config.hidden_size)
        layers = tuple((zeros,) * unit.num_parts for unit in self.decoder.units)
        # BOS, the token of this state, is as probable at every position, so it leaves the distribution as it is.
        before = start_log_posterior(mapped[..., 0])
        places = self.first_places(zeros)
        return HardAttentionState(layers, before, torch.zeros_like(mapped), torch.zeros_like(before), places)

    def step(
        self, tokens: Int[Tensor, "source hypothesis"], state: State, memory: Memory, need: tuple[Need, ...] = ()
    ) -> tuple[Decoded, HardAttentionState]:
        memory = _mine(memory)
        if not isinstance(state, HardAttentionState):
            raise TypeError(f"hard_attention: got {type(state).__name__}")
        weight, bias = self.output.weight[tokens], self.output_bias()[tokens]
        log_emissions = (state.features @ weight[..., None]).squeeze(-1) + bias[..., None] - state.log_normalizer
        _, log_posterior = observe(state.log_prior, log_emissions)
        layers = self.decoder.step(self.decoder.units[0].input_map(self.target_embedding(tokens)), state.layers)
        mask = self.visible_at(state.place, memory.lengths, memory.annotations.shape[1])
        aligned = self._align(layers[-1][0], memory, mask)
        log_prior = advance(log_posterior, aligned.log_transitions)
        logits = self.output(aligned.features)
        log_normalizer = torch.logsumexp(logits, dim=-1)
        log_probs = log_sum(log_prior[..., None] + logits - log_normalizer[..., None], dim=-2)
        attended = _with_weights(aligned.attended, log_prior)
        places = tuple(each + 1 for each in state.place)
        after = HardAttentionState(layers, log_prior, aligned.features, log_normalizer, places)
        return Decoded(log_probs, {"cross": attended}), after

    def align(self, inputs: Inputs, target_in: Int[Tensor, "batch target"]) -> AlignedTargets:
        """Compute the parts of the probability of gold targets, of which training needs the sum alone.

        Args:
            inputs: the sources.
            target_in: [batch, target] BOS and gold tokens.

        Cost: target * position products with the output layer, and target * position^2 transitions.
        """
        memory = self.encode(inputs)
        states, _ = self.decoder.run(self.target_embedding(target_in))
        return self._align(self._dropout(states), memory, visible_from(self.attention, 0, memory.lengths))

    def forward(self, inputs: Inputs, target_in: Int[Tensor, "batch target"], need: tuple[Need, ...] = ()) -> Decoded:
        aligned = self.align(inputs, target_in)
        log_probs = torch.log_softmax(self.output(aligned.features), dim=-1)
        sums = sum_alignments(_emissions(log_probs, target_in), aligned.log_transitions)
        mixed = log_sum(sums.log_priors[..., None] + log_probs, dim=-2)
        return Decoded(mixed, {"cross": _with_weights(aligned.attended, sums.log_priors)})

    def posteriors(
        self, inputs: Inputs, target_in: Int[Tensor, "batch target"], target_out: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target position"]:
        aligned = self.align(inputs, target_in)
        log_probs = torch.log_softmax(self.output(aligned.features), dim=-1)
        log_emissions = log_probs.gather(-1, target_out[:, :, None, None].expand(*log_probs.shape[:3], 1)).squeeze(-1)
        return alignment_posteriors(log_emissions, aligned.log_transitions, target_out != 0)

    def output_bias(self) -> Float[Tensor, " vocabulary"]:
        """Return the bias of the output layer.

        Raises:
            TypeError: the layer was replaced by one without a bias.
        """
        if self.output.bias is None:
            raise TypeError("hard attention has an output bias")
        return self.output.bias

    def logits(self, features: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch vocabulary"]:
        return features  # a mixture over positions, so already log probabilities

    def _align(self, states: Tensor, memory: HardAttentionMemory, mask: Mask) -> AlignedTargets:
        """Readouts and transitions of decoder states s_i [source, target or hypothesis, hidden]."""
        attended, _ = self.attend_source(
            states, memory.prepared, memory.annotations, memory.lengths, mask, ("weights",)
        )
        both = self.state_readout(states)[:, :, None] + memory.mapped[:, None]
        features = self._dropout(torch.tanh(both))
        return AlignedTargets(features, self._log_transitions(states, memory, attended), attended)

    def _log_transitions(self, states: Tensor, memory: HardAttentionMemory, attended: Attended) -> Tensor:
        weights = attended.weights
        if weights is None:
            raise TypeError("hard attention needs attention weights")
        weights = weights if weights.dtype == torch.float64 else weights.float()
        num_positions = weights.shape[-1]
        places = torch.arange(num_positions, device=weights.device)
        scores = weights.clamp_min(torch.finfo(weights.dtype).tiny).log()[:, :, None]
        shifts = places - places[:, None]  # j - j'
        if self.state_shifts is not None:
            of_shift = self.state_shifts(states)[:, :, None] + memory.shifts[0][:, None]
            most = self.config.max_shift
            index = shifts.clamp(0 if self.config.is_monotonic else -most, most)
            index = index if self.config.is_monotonic else index + most
            scores = scores + of_shift.gather(-1, index.expand(*of_shift.shape[:3], num_positions))
        allowed = (places < memory.lengths[:, None])[:, None, None]
        if self.config.is_monotonic:
            allowed = (allowed & (shifts > 0)) | (shifts == 0)  # padding stays where it is, and is never reached
        return torch.log_softmax(scores.masked_fill(~allowed, -torch.inf), dim=-1)

    def _dropout(self, vectors: Tensor) -> Tensor:
        return dropout(vectors, self.config.dropout, self.training)


def _emissions(log_probs: Tensor, target_in: Tensor) -> Tensor:
    """Emissions log p(y_i | a_i = j) of gold tokens, which stand in the next column of what the decoder reads.

    The last token is not needed: nothing comes after it.
    """
    index = target_in[:, 1:, None, None].expand(-1, -1, log_probs.shape[2], 1)
    return functional.pad(log_probs[:, :-1].gather(-1, index).squeeze(-1), (0, 0, 0, 1))


def _with_weights(attended: Attended, log_prior: Tensor) -> Attended:
    return Attended(attended.context, attended.kernel, weights=log_prior.exp())


def _mine(memory: Memory) -> HardAttentionMemory:
    if not isinstance(memory, HardAttentionMemory):
        raise TypeError(f"hard_attention: got {type(memory).__name__}")
    return memory
