"""Show, attend and tell: image captions with visual attention. Xu et al. 2015, arXiv:1502.03044.

The query is the state before the step, the gated context enters the cell, and a deep output reads word, state and
context.
"""

from dataclasses import dataclass
from typing import Final, Literal, Self, final

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from heedful.attention.interface import Attended, Need, PreparedKey
from heedful.attention.masks import Mask, graph
from heedful.attention.stepwise import StepwiseValue
from heedful.attention.tile_autograd import join
from heedful.config.base import MOST_SIZE, Config
from heedful.errors import ConfigError
from heedful.layers.dropout import dropout
from heedful.layers.embedding import Embedding, OutputLayer
from heedful.layers.recurrent import LongShortTermMemory
from heedful.layers.transcription import transcription_log_probs
from heedful.models.attention_config import AttentionConfig, require_suitable
from heedful.models.attentive import AttentiveSeq2Seq, Coverage, visible_from
from heedful.models.image_encoder import Backbone, ImageEncoder
from heedful.models.inputs import Inputs
from heedful.models.interface import Decoded, Memory, State
from heedful.text.vocabulary import PAD


class ShowAttendTellAttention(AttentionConfig):
    """Attention of Xu et al. 2015: by default the additive score with softmax, the paper's soft attention."""

    score: str = "additive"
    hidden_size: int = Field(default=128, ge=0, le=MOST_SIZE)
    """Hidden units of f_att; 0 = the size of a query."""


class ShowAttendTellConfig(Config):
    """Configuration of show, attend and tell, with a small convolutional encoder in the place of the paper's VGG."""

    kind: Literal["show_attend_tell"] = "show_attend_tell"
    attention: ShowAttendTellAttention = ShowAttendTellAttention()
    """f_att and the normalizer: softmax is soft attention; "sampled" is hard attention, learned by REINFORCE."""
    embedding_size: int = Field(default=128, ge=1, le=MOST_SIZE)
    """Size m of the embeddings; 512 in the authors' code."""
    hidden_size: int = Field(default=256, ge=1, le=MOST_SIZE)
    """Size n of the LSTM; 1800 in the authors' code."""
    annotation_size: int = Field(default=128, ge=8, le=MOST_SIZE, multiple_of=8)
    """Size D of an annotation vector; 512 in the paper."""
    num_blocks: int = Field(default=2, ge=0, le=100)
    """Convolutions of the encoder at the resolution of regions."""
    num_region_layers: int = Field(default=0, ge=0, le=100)
    """Layers of self-attention over the regions, after the encoder; for regions that are parts of a thing, such as the
    strokes of a symbol. None in the paper."""
    num_row_layers: int = Field(default=0, ge=0, le=100)
    """Bidirectional LSTM layers over the regions of each row, from left to right and back, for lines of text; Deng et
    al. 2016, arXiv:1609.04938, section 4. None in the paper."""
    backbone: Backbone = ""
    """Network of timm in the place of our encoder, such as timm:resnet18, with random weights; empty = ours."""
    hides_background: bool = False
    """Whether only regions of ink, and those beside them, are attended; for drawings and writing on a plain ground."""
    has_gate: bool = True
    """Whether the context is multiplied by beta_t = sigmoid(f_beta(h_{t-1})); section 4.2.1."""
    doubly_stochastic: float = Field(default=1.0, ge=0.0, le=1e6)
    """lambda of the penalty on regions whose weights do not sum to 1 over time; eq. 14."""
    transcription_weight: float = Field(default=0.0, ge=0.0, le=1e6)
    """Weight in training of a second loss, by which regions alone spell the caption in their order: connectionist
    temporal classification, Graves et al. 2006, beside attention as in Kim et al. 2017, arXiv:1609.06773. For lines of
    text, where attention finds the letters much sooner with it."""
    dropout: float = Field(default=0.2, ge=0.0, lt=1.0)
    """Dropout of annotation vectors, embeddings and readout."""

    @model_validator(mode="after")
    def _check_attention(self) -> Self:
        require_suitable(self.attention, self.hidden_size, self.annotation_size)
        if self.attention.has_sentences:
            raise ValueError("attention.has_sentences: an image has no sentences; leave it out")
        return self

    def build(
        self, num_channels: int, region_height: int, region_width: int, num_regions: int, num_tokens: int
    ) -> "ShowAttendTell":
        """Build a model with fresh parameters.

        Args:
            num_channels: colour channels of a picture, or precomputed features of a region.
            region_height: height of a region in pixels; 0 = precomputed features.
            region_width: its width.
            num_regions: regions of a picture; 0 = any number.
        """
        return ShowAttendTell(self, num_channels, (region_height, region_width), num_regions, num_tokens)


PRESETS: Final[dict[str, ShowAttendTellConfig]] = {
    "show_attend_tell": ShowAttendTellConfig(),
    "show_attend_tell-hard": ShowAttendTellConfig(
        attention=ShowAttendTellAttention(
            normalizer="sampled", reward="sentence", reward_weight=0.1, entropy_weight=0.002
        ),
        doubly_stochastic=0.0,
    ),
    "show_attend_tell-gumbel": ShowAttendTellConfig(
        attention=ShowAttendTellAttention(normalizer="gumbel_softmax"), doubly_stochastic=0.0
    ),
}
"""show_attend_tell-hard has the weights of reward and entropy of the authors' code."""


@dataclass(frozen=True)
class ShowAttendTellMemory(Memory):
    """Annotation vectors, with the prepared keys of f_att."""

    annotations: Float[Tensor, "source region size"]
    """[source, region, D] annotation vectors a_i."""
    prepared: PreparedKey
    seen: tuple[Bool[Tensor, "source region"], ...] = ()
    """Regions that may be attended; empty = all."""


@dataclass(frozen=True)
class ShowAttendTellState(State):
    """LSTM state h_{t-1} and c_{t-1}, each [source, hypothesis, n]."""

    hidden: Float[Tensor, "source hypothesis hidden"]
    cell: Float[Tensor, "source hypothesis hidden"]
    place: tuple[Int[Tensor, "source hypothesis"], ...] = ()
    """t, [source, hypothesis]; empty unless the window is local-m."""
    coverage: tuple[Float[Tensor, "source hypothesis region"], ...] = ()
    """Weights of earlier steps, as `AttentiveSeq2Seq.attend_source` gives them; empty unless a step depends on them."""


@final
class ShowAttendTell(AttentiveSeq2Seq):
    """h_{t-1} -> alpha_t -> z_t -> h_t: an LSTM that looks at regions of an image before each word.

    Symbols of the paper: annotation vectors a_i, i = 1..L; e_ti = f_att(a_i, h_{t-1}); alpha_t = softmax(e_t);
    context z_t = beta_t sum_i alpha_ti a_i with beta_t = sigmoid(f_beta(h_{t-1})); (h_t, c_t) = LSTM([E y_{t-1}; z_t],
    h_{t-1}, c_{t-1}); words softmax(L_o(E y_{t-1} + L_h h_t + L_z z_t)). The initial state is tanh(f_init(mean a_i)),
    of a map each for h_0 and c_0. Sizes: m of an embedding, n of the LSTM, D of an annotation.
    """

    def __init__(
        self,
        config: ShowAttendTellConfig,
        num_channels: int,
        region: tuple[int, int],
        num_regions: int,
        num_tokens: int,
    ) -> None:
        super().__init__()
        self.config = config
        if config.hides_background and not region[0]:
            raise ConfigError(
                "model.hides_background: the data are features, whose background is not known; leave it out"
            )
        embedding, hidden, size = config.embedding_size, config.hidden_size, config.annotation_size
        self.encoder = ImageEncoder(
            num_channels,
            region,
            num_regions,
            size,
            config.num_blocks,
            config.dropout,
            config.backbone,
            config.num_region_layers,
            config.num_row_layers,
        )
        self.target_embedding = Embedding(num_tokens, embedding, std=0.1)  # E
        self.initial_hidden = nn.Linear(size, hidden)  # f_init,h
        self.initial_cell = nn.Linear(size, hidden)  # f_init,c
        self.add_attention(config.attention, hidden, size)
        self.gate = nn.Linear(hidden, 1) if config.has_gate else None  # f_beta
        self.decoder = LongShortTermMemory(embedding, hidden)
        # The columns of z_t in the LSTM's input matrix, separate because words are mapped before the first step.
        self.context_map = nn.Linear(size, 4 * hidden, bias=False)
        self.hidden_readout = nn.Linear(hidden, embedding)  # L_h
        self.context_readout = nn.Linear(size, embedding, bias=False)  # L_z
        self.output = OutputLayer(num_tokens, embedding, bias=True)  # L_o
        self.transcription = nn.Linear(size, num_tokens) if config.transcription_weight else None
        self.alignment = "cross"

    def encode(self, inputs: Inputs) -> ShowAttendTellMemory:
        annotations, lengths = self.encoder(inputs)
        seen = (self.encoder.without_background(inputs),) if self.config.hides_background else ()
        return ShowAttendTellMemory(lengths, annotations, self.prepare_keys(annotations, lengths), seen)

    def start(self, memory: Memory, num_hypotheses: int = 1) -> ShowAttendTellState:
        memory = _mine(memory)
        num_regions, real = memory.annotations.shape[1], _attended_regions(memory)
        mean = memory.annotations.masked_fill(~real[..., None], 0.0).sum(dim=1) / real.sum(dim=1, keepdim=True)
        hidden, cell = (
            torch.tanh(initial(mean))[:, None].expand(-1, num_hypotheses, -1)
            for initial in (self.initial_hidden, self.initial_cell)
        )
        return ShowAttendTellState(hidden, cell, self.first_places(hidden), self.first_coverage(hidden, num_regions))

    def step(
        self, tokens: Int[Tensor, "source hypothesis"], state: State, memory: Memory, need: tuple[Need, ...] = ()
    ) -> tuple[Decoded, ShowAttendTellState]:
        memory = _mine(memory)
        if not isinstance(state, ShowAttendTellState):
            raise TypeError(f"show_attend_tell: got {type(state).__name__}")
        embedded = self.target_embedding(tokens)
        mask = _seen(self.visible_at(state.place, memory.lengths, memory.annotations.shape[1]), memory)
        attended, context, coverage = self._look(state.hidden, memory, memory.annotations, mask, need, state.coverage)
        hidden, cell = self._advance(self.decoder.input_map(embedded), context, state.hidden, state.cell)
        after = ShowAttendTellState(
            hidden,
            cell,
            tuple(position + 1 for position in state.place),
            coverage,
        )
        return Decoded(self._read_out(embedded, hidden, context), {"cross": attended}), after

    def forward(self, inputs: Inputs, target_in: Int[Tensor, "batch target"], need: tuple[Need, ...] = ()) -> Decoded:
        memory = self.encode(inputs)
        embedded = dropout(self.target_embedding(target_in), self.config.dropout, self.training)
        state = self.start(memory)
        hidden, cell, coverage = state.hidden, state.cell, state.coverage
        if self.training and self.config.doubly_stochastic:
            need = (*need, "weights")
        states: list[Tensor] = []
        contexts: list[Tensor] = []
        steps: list[Attended] = []
        # The loop contains only the recurrence: words are mapped before it, the readout follows after it.
        values = self.share_values(memory.annotations)
        for position, mapped in enumerate(self.decoder.input_map(embedded).split(1, dim=1)):
            mask = _seen(visible_from(self.attention, position, memory.lengths), memory)
            attended, context, coverage = self._look(hidden, memory, values, mask, need, coverage)
            hidden, cell = self._advance(mapped, context, hidden, cell)
            states.append(hidden)
            contexts.append(context)
            steps.append(attended)
        features = self._read_out(embedded, torch.cat(states, dim=1), torch.cat(contexts, dim=1))
        attended_positions, likelihood = _attended_regions(memory), self._transcribe(memory, target_in)
        return Decoded(features, {"cross": join(steps)}, None, attended_positions, likelihood)

    def extra_losses(
        self, decoded: Decoded, token_log_probs: Float[Tensor, "batch target"], real: Bool[Tensor, "batch target"]
    ) -> dict[str, Tensor]:
        losses = super().extra_losses(decoded, token_log_probs, real)
        if decoded.transcription is not None:
            losses["transcription"] = -self.config.transcription_weight * decoded.transcription.sum()
        weights = decoded.attended["cross"].weights
        regions = decoded.attended_positions
        if not self.training or not self.config.doubly_stochastic or weights is None or regions is None:
            return losses
        penalty = doubly_stochastic_penalty(weights, real, regions)
        return losses | {"doubly_stochastic": self.config.doubly_stochastic * penalty}

    def _transcribe(self, memory: ShowAttendTellMemory, target_in: Tensor) -> Tensor | None:
        """Log probability of each caption by its regions alone, [source]; None where no loss needs it."""
        if not self.training or self.transcription is None:
            return None
        captions = target_in[:, 1:]
        return transcription_log_probs(
            self.transcription(memory.annotations), memory.lengths, captions, (captions != PAD).sum(dim=1)
        )

    def _look(
        self,
        hidden: Tensor,
        memory: ShowAttendTellMemory,
        values: Tensor | StepwiseValue,
        mask: Mask,
        need: tuple[Need, ...],
        coverage: Coverage,
    ) -> tuple[Attended, Tensor, Coverage]:
        """Weights alpha_t, and the context z_t [source, hypothesis, D], from h_{t-1}."""
        attended, after = self.attend_source(hidden, memory.prepared, values, memory.lengths, mask, need, coverage)
        context = attended.context
        return attended, context if self.gate is None else torch.sigmoid(self.gate(hidden)) * context, after

    def _advance(self, mapped: Tensor, context: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """h_t and c_t from the mapped word, z_t, h_{t-1} and c_{t-1}."""
        hidden, cell = self.decoder.step(mapped + self.context_map(context), (hidden, cell))
        return hidden, cell

    def _read_out(self, embedded: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        features = embedded + self.hidden_readout(hidden) + self.context_readout(context)
        return dropout(features, self.config.dropout, self.training)


def doubly_stochastic_penalty(
    weights: Float[Tensor, "batch target region"],
    real: Bool[Tensor, "batch target"],
    regions: Bool[Tensor, "batch region"],
) -> Float[Tensor, ""]:
    """Compute the penalty that encourages a caption to look at every region; Xu et al. 2015, eq. 14.

    sum_i (1 - sum_t alpha_ti)^2 over the regions i of an image and the tokens t of its caption.

    Args:
        weights: [batch, target, region] weights of the regions.
        real: [batch, target] True where not padding.
        regions: [batch, region] True for those that may be attended.

    Example:
        >>> weights = torch.tensor([[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]])
        >>> regions = torch.tensor([[True, True, False]])
        >>> doubly_stochastic_penalty(weights, torch.ones(1, 2, dtype=torch.bool), regions).item()
        0.5
    """
    total = weights.masked_fill(~real[..., None], 0.0).sum(dim=1)
    # Rows without a token are padding.
    return (1.0 - total).square().masked_fill(~(regions & real.any(dim=1, keepdim=True)), 0.0).sum()


def _attended_regions(memory: ShowAttendTellMemory) -> Bool[Tensor, "source region"]:
    """Regions that may be attended."""
    if memory.seen:
        return memory.seen[0]
    return torch.arange(memory.annotations.shape[1], device=memory.lengths.device) < memory.lengths[:, None]


def _seen(mask: Mask, memory: ShowAttendTellMemory) -> Mask:
    """A mask, without the background."""
    return mask & graph(memory.seen[0][:, None]) if memory.seen else mask


def _mine(memory: Memory) -> ShowAttendTellMemory:
    if not isinstance(memory, ShowAttendTellMemory):
        raise TypeError(f"show_attend_tell: got {type(memory).__name__}")
    return memory
