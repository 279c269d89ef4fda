"""Interface of sequence-to-sequence models, for the training loop, search and inspection."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention.interface import Attended, Need
from heedful.attention.tensor_tree import map_leaves
from heedful.errors import ConfigError
from heedful.layers.embedding import OutputLayer
from heedful.models.copying import Copying
from heedful.models.inputs import Inputs, TokenInputs
from heedful.models.record import Record


@dataclass(frozen=True)
class State(Record):
    """Decoder state between steps. Axis 1 of every tensor = hypothesis, everywhere."""

    def reorder(self, parents: Int[Tensor, "source hypothesis"]) -> Self:
        """Let each hypothesis continue from the state of another one of the same source.

        Args:
            parents: [source, hypothesis] index of the hypothesis that each one continues.

        Returns:
            The state in the new order; its hypothesis axis is as long as that of `parents`.
        """
        return map_leaves(self, lambda tensor: _reorder(tensor, parents))


def _reorder(tensor: Tensor, parents: Tensor) -> Tensor:
    flat = torch.arange(parents.shape[0], device=parents.device)[:, None] * tensor.shape[1] + parents
    return tensor.flatten(0, 1).index_select(0, flat.flatten()).unflatten(0, parents.shape)


@dataclass(frozen=True)
class Memory(Record):
    """Encoder output for the decoder, with everything that can be computed once per source."""

    lengths: Int[Tensor, " source"]
    """[source] number of positions that the decoder may attend to."""
    source: tuple[Int[Tensor, "source position"], ...] = field(default=(), kw_only=True)
    """[source, position] token ids of the sources; empty unless the model copies them."""


@dataclass(frozen=True)
class Decoded:
    """Decoder output.

    Example:
        >>> from heedful.models.luong import LuongConfig
        >>> model = LuongConfig(num_layers=1, hidden_size=8).build(20, 30, is_shared=False).eval()
        >>> source = TokenInputs(torch.tensor([[5, 6, 3]]), torch.tensor([3]))
        >>> decoded = model(source, torch.tensor([[2, 7]]), need=("weights",))
        >>> list(decoded.features.shape), list(decoded.attended["cross"].weights.shape)
        ([1, 2, 8], [1, 2, 3])
    """

    features: Float[Tensor, "*batch size"]
    """[*, target_size] input of the output layer."""
    attended: Mapping[str, Attended]
    """Attention results by the name of the attention; weights [source, (head,) target or hypothesis, position] if
    requested."""
    copying: Copying | None = None
    """Distribution of copied source tokens; None unless the model copies them."""
    attended_positions: Bool[Tensor, "source position"] | None = None
    """Source positions that could be attended, for losses over them; None unless the model has such a loss."""
    transcription: Float[Tensor, " source"] | None = None
    """[source] log probability of the whole target by the encoder alone; None unless the model has such a loss."""


class Seq2Seq(nn.Module, ABC):
    """Encoder and decoder that run step by step, or over a whole gold target at once.

    Example:
        >>> from heedful.models.luong import LuongConfig
        >>> model = LuongConfig(num_layers=1, hidden_size=8).build(20, 30, is_shared=False).eval()
        >>> source = TokenInputs(torch.tensor([[5, 6, 3]]), torch.tensor([3]))
        >>> list(model.logits(model(source, torch.tensor([[2, 7]])).features).shape)
        [1, 2, 30]
    """

    output: OutputLayer
    """Layer from features to logits of the vocabulary; training fuses it with the loss."""
    alignment: str
    """Name of the entry of `Decoded.attended` that serves as alignment, present whenever weights are requested; empty
    without attention."""
    has_posteriors: ClassVar[bool] = False
    """Whether the alignment of an output is known only once it is whole, and comes from `posteriors`."""
    copy_gate: nn.Linear | None
    """Map from features to the logit of p_gen, the probability of not copying; None unless the model copies."""

    def __init__(self) -> None:
        super().__init__()
        self.copy_gate = None

    @abstractmethod
    def encode(self, inputs: Inputs) -> Memory:
        """Encode the sources.

        Args:
            inputs: the sources, of the kind that the model reads.
        """

    @abstractmethod
    def start(self, memory: Memory, num_hypotheses: int = 1) -> State:
        """Make the state before the first step.

        Args:
            memory: of the sources, from `encode`.
            num_hypotheses: number of hypotheses per source.
        """

    def prepare_steps(self, memory: Memory) -> Memory:
        """Compute the parts shared by the steps of many hypotheses; `start` and `forward` take the result of `encode`.

        Returns:
            The memory to pass to `step`; unchanged by default.
        """
        return memory

    def fixed_state(self, state: State, room: int) -> tuple[State, int] | None:
        """Give a state the shapes that it keeps from step to step, for steps that are recorded on a GPU.

        Args:
            state: from `start`, or a fixed one that is full.
            room: wanted number of steps that it has room for, those that were made included.

        Returns:
            The state, and the number of steps that it has room for; by default the same state, which does not grow.
            `step` may change a fixed state in place. None = the model has none.
        """
        return state, sys.maxsize

    @abstractmethod
    def step(
        self, tokens: Int[Tensor, "source hypothesis"], state: State, memory: Memory, need: tuple[Need, ...] = ()
    ) -> tuple[Decoded, State]:
        """Feed one token to each hypothesis.

        Args:
            tokens: [source, hypothesis] ids; bos at the first step.
            state: from `start` or the step before.
            memory: of the sources, from `encode` or `prepare_steps`.
            need: attention summaries wanted.

        Returns:
            Features [source, hypothesis, size] that predict the next token, and the new state.
        """

    @abstractmethod
    def forward(self, inputs: Inputs, target_in: Int[Tensor, "batch target"], need: tuple[Need, ...] = ()) -> Decoded:
        """Encode sources and decode gold targets (teacher forcing); equal to the steps one after the other.

        Args:
            inputs: the sources, of the kind that the model reads.
            target_in: [batch, target] bos and gold tokens.
            need: attention summaries wanted.

        Returns:
            Features [batch, target, size] that predict the token after each position; undefined at padding. Attention
            results are included if requested.
        """

    def logits(self, features: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch vocabulary"]:
        """Score every token of the target vocabulary.

        Args:
            features: [*batch, size].

        Returns:
            [*batch, vocabulary] unnormalised log probabilities.
        """
        return self.output(features)

    @property
    def has_linear_output(self) -> bool:
        """Whether log probabilities follow from `output` alone; not if the model copies or mixes distributions."""
        return self.copy_gate is None

    def add_copy_gate(self, feature_size: int, is_shared: bool) -> None:
        """Let the model copy source tokens; call it at the end of the constructor.

        Args:
            feature_size: features of the decoder's output.
            is_shared: whether source and target have one vocabulary.

        Raises:
            ConfigError: they have two vocabularies.
        """
        if not is_shared:
            raise ConfigError("model.has_copy: copied tokens need one vocabulary of source and target")
        self.copy_gate = nn.Linear(feature_size, 1)

    @property
    def copy_need(self) -> tuple[Need, ...]:
        """Results that copying requests from the attention over the source: the weights, or nothing."""
        return () if self.copy_gate is None else ("weights",)

    def copied_source(self, tokens: TokenInputs) -> tuple[Int[Tensor, "source position"], ...]:
        """Return the value of `Memory.source`.

        Returns:
            Their ids; empty unless the model copies them.
        """
        return () if self.copy_gate is None else (tokens.ids,)

    def with_copying(
        self, features: Float[Tensor, "*batch size"], attended: Mapping[str, Attended], memory: Memory
    ) -> Decoded:
        """Make the decoder output, with the distribution of copied tokens if the model copies.

        Args:
            features: [*batch, size].
            attended: attention results, those of `copy_need` included.
            memory: of the sources, from `encode` or `prepare_steps`.

        Raises:
            TypeError: the attention results hold no weights.
        """
        if self.copy_gate is None:
            return Decoded(features, attended)
        weights = attended[self.alignment].weights
        if weights is None:
            raise TypeError("copying needs attention weights")
        weights = weights.mean(dim=1) if weights.dim() == 4 else weights  # mean over heads
        return Decoded(features, attended, Copying(self.copy_gate(features).squeeze(-1), weights, memory.source[0]))

    def log_probs(self, decoded: Decoded) -> Float[Tensor, "*batch vocabulary"]:
        """Compute the log probabilities of the next token.

        Args:
            decoded: result of `step` or `forward`.

        Returns:
            [*batch, vocabulary] log probabilities in nats, in float32 at least.
        """
        logits = self.logits(decoded.features)
        log_probs = torch.log_softmax(logits if logits.dtype == torch.float64 else logits.float(), dim=-1)
        return log_probs if decoded.copying is None else decoded.copying.mixed(log_probs)

    def posteriors(
        self, inputs: Inputs, target_in: Int[Tensor, "batch target"], target_out: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target position"]:
        """Compute the alignment of whole targets, for a model that has posteriors.

        Args:
            inputs: the sources, of the kind that the model reads.
            target_in: [batch, target] BOS and gold tokens.
            target_out: [batch, target] gold tokens and EOS, padded with 0.

        Returns:
            [batch, target, position] probability of each source position of each token, given the whole target; zero
            where padded.

        Raises:
            NotImplementedError: attention weights of the steps are the alignment of this model.
        """
        raise NotImplementedError(f"{type(self).__name__} has no posteriors")

    def extra_losses(
        self, decoded: Decoded, token_log_probs: Float[Tensor, "batch target"], real: Bool[Tensor, "batch target"]
    ) -> dict[str, Tensor]:
        """Compute the losses beside the likelihood, each summed over the batch.

        Args:
            decoded: result of `forward`.
            token_log_probs: [batch, target] log probabilities of the gold tokens.
            real: [batch, target] True where not padding.

        Returns:
            Named scalars; none by default.
        """
        return {}
