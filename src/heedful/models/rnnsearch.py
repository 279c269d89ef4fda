"""RNNsearch: jointly learning to align and translate. Bahdanau, Cho and Bengio 2015, arXiv:1409.0473.

Names of the paper: annotations h_j, alignment model e_ij = v . tanh(W_a s_{i-1} + U_a h_j), context c_i, decoder state
s_i = f(s_{i-1}, y_{i-1}, c_i), readout t_i. The query is the state *before* the step, and the context enters the cell.
"""

from dataclasses import dataclass
from typing import Final, Literal, final

import torch
from pydantic import Field
from torch import Tensor, nn

from heedful.attention.attend import attend
from heedful.attention.kernels.interface import Attended
from heedful.attention.masks import Mask, padding
from heedful.attention.normalizers import Need
from heedful.attention.scores import Additive, PreparedKey
from heedful.config import Config
from heedful.layers.dropout import dropout
from heedful.layers.embedding import Embedding, OutputLayer
from heedful.layers.recurrent import BidirectionalEncoder, GatedRecurrentUnit, ResetPlacement
from heedful.models.interface import Decoded, Memory, Seq2Seq, State


class RNNsearchConfig(Config):
    """Sizes and choices; the paper's sizes are in the preset rnnsearch-paper. Dropout is not in the paper."""

    kind: Literal["rnnsearch"] = "rnnsearch"
    embedding_size: int = Field(default=256, ge=1)
    """m"""
    hidden_size: int = Field(default=384, ge=1)
    """n, of each direction of the encoder and of the decoder."""
    alignment_size: int = Field(default=256, ge=1)
    """n', hidden units of the alignment model."""
    maxout_size: int = Field(default=256, ge=1)
    """l, where readout = "maxout"."""
    readout: Literal["maxout", "state"] = "maxout"
    """maxout: of s_{i-1}, y_{i-1} and c_i, as in the paper; state: softmax of the new state s_i alone."""
    initial_state: Literal["backward", "last"] = "backward"
    """backward: tanh(W_s h<-_1), as in the paper; last: tanh(W_s [h->_T; h<-_1]), of both directions' last states."""
    reset: ResetPlacement = "before"
    """Whether reset gates act before the state's map, as in the paper, or after it, as in cuDNN."""
    dropout: float = Field(default=0.2, ge=0.0, lt=1.0)
    """Of embeddings, annotations and readout."""

    def build(self, num_source_tokens: int, num_target_tokens: int, is_shared: bool) -> "RNNsearch":
        """Make a model with fresh parameters.

        Args:
            num_source_tokens: size of the source vocabulary.
            num_target_tokens: size of the target vocabulary.
            is_shared: whether both are one vocabulary; each side has its own embedding all the same.

        Returns:
            The model.
        """
        return RNNsearch(self, num_source_tokens, num_target_tokens)


PRESETS: Final[dict[str, RNNsearchConfig]] = {
    "rnnsearch-tiny": RNNsearchConfig(embedding_size=64, hidden_size=128, alignment_size=128, maxout_size=64),
    "rnnsearch": RNNsearchConfig(),
    "rnnsearch-paper": RNNsearchConfig(
        embedding_size=620, hidden_size=1000, alignment_size=1000, maxout_size=500, dropout=0.0
    ),
}


@dataclass(frozen=True)
class RNNsearchMemory(Memory):
    """Annotations, with what the alignment model computes once per source."""

    annotations: Tensor
    """[source, position, 2 hidden] h_j"""
    prepared: PreparedKey
    """U_a h_j"""


@dataclass(frozen=True)
class RNNsearchState(State):
    """The decoder's state s_{i-1}, [source, hypothesis, hidden]."""

    hidden: Tensor


@final
class RNNsearch(Seq2Seq):
    """A bidirectional encoder, and a decoder that searches the source at each word."""

    def __init__(self, config: RNNsearchConfig, num_source_tokens: int, num_target_tokens: int) -> None:
        super().__init__()
        self.config = config
        embedding, hidden = config.embedding_size, config.hidden_size
        self.source_embedding = Embedding(num_source_tokens, embedding, std=0.1)
        self.target_embedding = Embedding(num_target_tokens, embedding, std=0.1)
        self.encoder = BidirectionalEncoder(embedding, hidden, config.reset)
        self.initial = nn.Linear(hidden if config.initial_state == "backward" else 2 * hidden, hidden)
        self.score = Additive(hidden, 2 * hidden, config.alignment_size)
        self.decoder = GatedRecurrentUnit(embedding, hidden, config.reset)
        self.context_map = nn.Linear(2 * hidden, 3 * hidden, bias=False)  # C_z, C_r, C
        if config.readout == "maxout":
            self.readout: nn.Module = nn.Linear(hidden + embedding + 2 * hidden, 2 * config.maxout_size)
            features = config.maxout_size
        else:
            self.readout = nn.Identity()
            features = hidden
        self.output = OutputLayer(num_target_tokens, features, bias=True)
        self.alignment = "cross"

    def encode(self, source: Tensor, source_lengths: Tensor) -> RNNsearchMemory:
        annotations = self.encoder(self._dropout(self.source_embedding(source)), source_lengths)
        annotations = self._dropout(annotations)
        return RNNsearchMemory(source_lengths, annotations, self.score.prepare(annotations))

    def start(self, memory: Memory, num_hypotheses: int = 1) -> RNNsearchState:
        memory = _mine(memory)
        size = self.config.hidden_size
        first = memory.annotations[:, 0, size:]  # the backward state at the first word has read everything
        if self.config.initial_state == "last":
            rows = torch.arange(len(memory.lengths), device=first.device)
            first = torch.cat((memory.annotations[rows, memory.lengths - 1, :size], first), dim=-1)
        state = torch.tanh(self.initial(first))
        return RNNsearchState(state[:, None].expand(-1, num_hypotheses, -1))

    def step(
        self, tokens: Tensor, state: State, memory: Memory, need: tuple[Need, ...] = ()
    ) -> tuple[Decoded, RNNsearchState]:
        memory = _mine(memory)
        if not isinstance(state, RNNsearchState):
            raise TypeError(f"rnnsearch: got {type(state).__name__}")
        embedded = self.target_embedding(tokens)
        attended, new = self._advance(
            state.hidden, self.decoder.input_map(embedded), memory, padding(memory.lengths), need
        )
        features = self._read_out(state.hidden, new, embedded, attended.context)
        return Decoded(features, {"cross": attended}), RNNsearchState(new)

    def forward(
        self, source: Tensor, source_lengths: Tensor, target_in: Tensor, need: tuple[Need, ...] = ()
    ) -> Decoded:
        memory = self.encode(source, source_lengths)
        mask = padding(source_lengths)
        embedded = self._dropout(self.target_embedding(target_in))
        hidden = self.start(memory).hidden
        before: list[Tensor] = []
        after: list[Tensor] = []
        steps: list[Attended] = []
        # Only what the recurrence needs is inside the loop; readout and vocabulary come once, after it.
        for mapped in self.decoder.input_map(embedded).split(1, dim=1):
            before.append(hidden)
            attended, hidden = self._advance(hidden, mapped, memory, mask, need)
            after.append(hidden)
            steps.append(attended)
        contexts = torch.cat([attended.context for attended in steps], dim=1)
        features = self._read_out(torch.cat(before, dim=1), torch.cat(after, dim=1), embedded, contexts)
        return Decoded(features, {"cross": _join(steps, contexts)})

    def _advance(
        self, hidden: Tensor, mapped: Tensor, memory: RNNsearchMemory, mask: Mask, need: tuple[Need, ...]
    ) -> tuple[Attended, Tensor]:
        """From s_{i-1} and W E y_{i-1}, both [source, hypothesis, *], to c_i and s_i."""
        attended = attend(hidden, memory.prepared, memory.annotations, score=self.score, mask=mask, need=need)
        return attended, self.decoder.step(mapped + self.context_map(attended.context), hidden)

    def _read_out(self, before: Tensor, after: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        if self.config.readout == "state":
            return self._dropout(after)
        both = self.readout(torch.cat((before, embedded, context), dim=-1))
        return self._dropout(both.unflatten(-1, (-1, 2)).amax(dim=-1))

    def _dropout(self, vectors: Tensor) -> Tensor:
        return dropout(vectors, self.config.dropout, self.training)


def _join(steps: list[Attended], contexts: Tensor) -> Attended:
    """Put the attention of single steps side by side along the query axis."""

    def column(name: str) -> Tensor | None:
        parts = [part for step in steps if isinstance(part := getattr(step, name), Tensor)]
        return torch.cat(parts, dim=1) if parts else None

    return Attended(
        contexts, steps[0].kernel, column("weights"), column("log_normalizer"), column("argmax"), column("entropy")
    )


def _mine(memory: Memory) -> RNNsearchMemory:
    if not isinstance(memory, RNNsearchMemory):
        raise TypeError(f"rnnsearch: got {type(memory).__name__}")
    return memory
