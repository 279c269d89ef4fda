"""Memory network: steps of attention over facts. Sukhbaatar et al. 2015, arXiv:1503.08895; as a chain: Kim et al. 2017.

For the words x_ij of fact i, m_i = sum_j l_j * A x_ij + T_A(i) and c_i = sum_j l_j * C x_ij + T_C(i), where
l_kj = (1 - j/J) - (k/d)(1 - 2j/J) encodes the position j of J words and T(i) the age of a fact; u = sum_j l_j * B q_j
for the question. At each step p = softmax(u . m_i), o = sum_i p_i c_i, and u becomes u + o, with C^k = A^(k+1) and
B = A^1 (`tying` "adjacent"), or H u + o with the same A and C at every step ("layer-wise"); the answer is
softmax(W u). Score and normalizer are those of `attention`: hard attention, the linear chain over facts, and uniform
weights, which are average pooling, are settings.

With `chain` the facts of all steps are chosen together: Kim et al. 2017, arXiv:1702.00887, section 4.3, where z_k is
the fact of step k, p(z) = softmax(sum of potentials), and the answer follows from u + sum_k sum_i p(z_k = i) c_i^k.
"unary": theta_k(i) = q^k . m_i^k; "binary": in addition m_i^k . m_j^(k+1) between successive steps.

With `start` the first batches of training have other weights, against poor local optima: "linear" is the linear start
of Sukhbaatar et al., end of section 4.2, p_i = u . m_i without a softmax; "soft" is a softmax at each step, from which
hard attention and chains learn once the steps attend to the right facts.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import ClassVar, Final, Literal, Self, final

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from heedful.attention.dispatch import attend
from heedful.attention.interface import Attended, Need, PreparedKey
from heedful.attention.kernels.plain import PlainScores
from heedful.attention.masks import padding
from heedful.attention.softmax import Softmax
from heedful.attention.structured_chain import linear_chain_marginals
from heedful.config.base import MOST_SIZE, MOST_STEPS, Config
from heedful.layers.dropout import dropout
from heedful.layers.embedding import Embedding, draw_normal
from heedful.layers.normalizing import NormalizerLayer
from heedful.models.attention_config import (
    AttentionConfig,
    build_normalizer,
    build_reinforcement,
    build_score,
    require_suitable,
)
from heedful.models.inputs import Inputs, StoryInputs
from heedful.models.label_model import Encoded, LabelModel
from heedful.text.vocabulary import PAD

INITIAL_STD: Final = 0.1
"""Standard deviation of initial weights, as in the paper, section 4.2."""


class MemoryNetworkConfig(Config):
    """Configuration of a memory network."""

    kind: Literal["memory_network"] = "memory_network"
    beginnings: ClassVar[tuple[str, ...]] = ("start", "start_batches")
    """Settings for the first steps of fresh weights."""
    attention: AttentionConfig = AttentionConfig(score="dot")
    """Attention of the steps; the dot product with softmax in the paper."""
    num_steps: int = Field(default=3, ge=1, le=100)
    """Number of steps of attention, the paper's K hops."""
    hidden_size: int = Field(default=64, ge=1, le=MOST_SIZE)
    """Features of questions and facts, the paper's d; 20 or 50 there."""
    tying: Literal["adjacent", "layer-wise"] = "adjacent"
    """Embeddings that the steps share: C of a step is A of the next, or A and C are the same at all steps."""
    chain: Literal["none", "unary", "binary"] = "none"
    """Potentials of a chain over the steps, which chooses the facts of all steps together; none = step after step."""
    encoding: Literal["position", "bag"] = "position"
    """Sum of the words of a text: weighted by their positions, or plain."""
    num_ages: int = Field(default=64, ge=1, le=65536)
    """Number of learned vectors of the age of a fact; older facts have the last one."""
    start: Literal["none", "linear", "soft"] = "none"
    """Weights in the first batches of training: the usual ones, the scores themselves, or their softmax."""
    start_batches: int = Field(default=1000, ge=1, le=MOST_STEPS)
    """Number of batches with the weights of `start`."""
    empty_share: float = Field(default=0.0, ge=0.0, le=1.0)
    """Empty facts that training adds at random places, as a share of a story's facts; 0.1 in the paper."""
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Dropout of embeddings."""

    @model_validator(mode="after")
    def _check_attention(self) -> Self:
        require_suitable(self.attention, self.hidden_size, self.hidden_size)
        if self.attention.window != "global":
            raise ValueError(f"attention.window {self.attention.window}: a question has no position among the facts")
        unused = ("has_coverage", "coverage_weight", "location_filters", "chunk_width", "has_sentences")
        defaults = AttentionConfig.model_fields
        if refused := [name for name in unused if getattr(self.attention, name) != defaults[name].default]:
            raise ValueError(f"attention.{refused[0]}: only decoders use it; leave it out")
        if self.chain != "none" and self.attention.normalizer != "softmax":
            raise ValueError(
                f"chain {self.chain}: its marginals are the weights; leave attention.normalizer at softmax"
            )
        return self

    def build(self, num_tokens: int, num_labels: int) -> "MemoryNetwork":
        """Make the model with fresh parameters.

        Args:
            num_labels: number of answers.
        """
        return MemoryNetwork(self, num_tokens, num_labels)


PRESETS: Final[Mapping[str, MemoryNetworkConfig]] = {
    "memory_network": MemoryNetworkConfig(),
    "memory_network-average": MemoryNetworkConfig(attention=AttentionConfig(score="uniform")),
    "memory_network-hard": MemoryNetworkConfig(attention=AttentionConfig(score="dot", normalizer="straight_through")),
    "memory_network-chain": MemoryNetworkConfig(chain="binary"),
}


@final
class TextSum(nn.Module):
    """Sum of the embeddings of a text's words, weighted by their positions; section 4.1, "sentence representation"."""

    def __init__(self, num_tokens: int, size: int, has_positions: bool) -> None:
        """Draw the embeddings.

        Args:
            size: features, the paper's d.
            has_positions: whether the words are weighted by l_kj = (1 - j/J) - (k/d)(1 - 2j/J).
        """
        super().__init__()
        self.embedding = Embedding(num_tokens, size, std=INITIAL_STD)
        self.has_positions: Final = has_positions

    def forward(self, ids: Int[Tensor, "*text word"]) -> Float[Tensor, "*text size"]:
        """Sum the words of texts.

        Args:
            ids: [*text, word] token ids padded with 0.

        Returns:
            [*text, size]; zeros for a text without words.
        """
        words = self.embedding(ids)
        if not self.has_positions:
            return words.sum(dim=-2)
        size = words.shape[-1]
        number = (ids != PAD).sum(dim=-1, keepdim=True).clamp(min=1).to(words.dtype)
        share = torch.arange(1, ids.shape[-1] + 1, device=ids.device).to(words.dtype) / number
        features = torch.arange(1, size + 1, device=ids.device).to(words.dtype) / size
        # Two sums of words, so that no weights [word, size] are needed for each text; padding has the vector 0.
        plain, tilted = (torch.stack([1 - share, 1 - 2 * share], dim=-2) @ words).unbind(dim=-2)
        return plain - features * tilted


def with_empty_facts(inputs: StoryInputs, share: float) -> StoryInputs:
    """Add empty facts at random places, each of which makes the facts after it one step older.

    Args:
        share: mean number of empty facts for each fact of a story, at most 1.

    Returns:
        Questions and more facts; the real ones have their order.
    """
    facts, count = inputs.facts, inputs.num_facts
    num_empty = (share * count + torch.rand(count.shape, device=facts.device)).to(count.dtype)  # rounded at random
    # Positions of the facts of the longest story; those after the last fact of a story are drawn after all others.
    positions = torch.arange(int((count + num_empty).max()) if len(count) else 0, device=facts.device)
    order = torch.rand(len(count), len(positions), device=facts.device)
    order = order.masked_fill(positions >= (count + num_empty)[:, None], 2.0)
    is_empty = order.argsort(dim=1).argsort(dim=1) < num_empty[:, None]
    index = ((~is_empty).cumsum(dim=1) - 1).clamp(min=0, max=max(0, facts.shape[1] - 1))
    spread = facts.gather(1, index[:, :, None].expand(-1, -1, facts.shape[2]))
    is_real = ~is_empty & (positions < (count + num_empty)[:, None])
    return StoryInputs(inputs.question, spread.masked_fill(~is_real[:, :, None], PAD), count + num_empty)


@final
class Memory(nn.Module):
    """Vectors of facts: the sum of the words of each, and a vector of its age; eq. at the end of section 4.1."""

    def __init__(self, config: MemoryNetworkConfig, num_tokens: int) -> None:
        """Draw the parameters."""
        super().__init__()
        self.text = TextSum(num_tokens, config.hidden_size, config.encoding == "position")
        self.ages = nn.Parameter(torch.empty(config.num_ages, config.hidden_size))
        draw_normal(self.ages, INITIAL_STD)

    def forward(self, facts: Int[Tensor, "story fact word"]) -> Float[Tensor, "story fact size"]:
        """Encode facts.

        Args:
            facts: [story, fact, word] token ids, the newest fact first.

        Returns:
            [story, fact, size].
        """
        ages = torch.arange(facts.shape[1], device=facts.device).clamp(max=len(self.ages) - 1)
        return self.text(facts) + self.ages[ages]


@final
class MemoryNetwork(LabelModel):
    """Module that scores the answers to questions about facts."""

    has_attention = True
    num_batches: Tensor | None
    """Batches of training so far, up to `start_batches`; None where no start was asked for."""

    def __init__(self, config: MemoryNetworkConfig, num_tokens: int, num_labels: int) -> None:
        """Draw the parameters.

        Args:
            num_labels: number of answers.
        """
        super().__init__()
        self.config: Final = config
        size, is_adjacent = config.hidden_size, config.tying == "adjacent"
        num_memories = config.num_steps + 1 if is_adjacent else 2
        self.memories = nn.ModuleList([Memory(config, num_tokens) for _ in range(num_memories)])
        self.question = None if is_adjacent else TextSum(num_tokens, size, config.encoding == "position")
        self.update = None if is_adjacent else nn.Linear(size, size, bias=False)
        self.score = build_score(config.attention, size, size)
        self.normalizer = NormalizerLayer(build_normalizer(config.attention))
        self.reinforcement = build_reinforcement(config.attention)
        # A buffer, so that checkpoints include it; only where it is needed, so that models without it can be read.
        self.register_buffer("num_batches", None if config.start == "none" else torch.zeros((), dtype=torch.int64))
        self.output = nn.Linear(size, num_labels)
        draw_normal(self.output.weight, INITIAL_STD)
        nn.init.zeros_(self.output.bias)
        if self.update is not None:
            draw_normal(self.update.weight, INITIAL_STD)

    def encode(self, inputs: Inputs, need: tuple[Need, ...] = ()) -> Encoded:
        """Attend to the facts in several steps.

        Args:
            need: ("weights",) to request attention.

        Returns:
            [story, hidden_size] the last u, and [story, step, fact] weights.

        Raises:
            TypeError: the inputs are of another kind.
        """
        if not isinstance(inputs, StoryInputs):
            raise TypeError(f"this model reads stories, got {type(inputs).__name__}")
        if self.training and self.config.empty_share:
            inputs = with_empty_facts(inputs, self.config.empty_share)
        memories = [self._dropout(memory(inputs.facts)) for memory in self.memories]
        # Keys and values of each step.
        number = self.config.num_steps
        is_adjacent = self.question is None
        steps = [*pairwise(memories)] if is_adjacent else [(memories[0], memories[1])] * number
        count = self.num_batches
        if self.training and count is not None and int(count) < self.config.start_batches:
            count += 1
            return self._first_batches(inputs, steps)
        if self.config.chain != "none":
            return self._all_steps(inputs, steps)
        state = self._questions(inputs.question)[0]
        results: list[Attended] = []
        for key, value in steps:
            attended = attend(
                state[:, None],
                key,
                value,
                score=self.score,
                mask=padding(inputs.num_facts),
                normalizer=self.normalizer(),
                need=(*need, *self.reinforcement.need),
            )
            results.append(attended)
            state = (state if self.update is None else self.update(state)) + attended.context[:, 0]
        weights = [attended.weights for attended in results if attended.weights is not None]
        return Encoded(state, torch.cat(weights, dim=1) if weights else None, attended=tuple(results))

    def _first_batches(self, inputs: StoryInputs, steps: list[tuple[Tensor, Tensor]]) -> Encoded:
        """Attend step after step, weighting facts by their scores or by the softmax of these."""
        state = self._questions(inputs.question)[0]
        is_real = torch.arange(inputs.facts.shape[1], device=state.device) < inputs.num_facts[:, None, None]
        all_weights: list[Tensor] = []
        for key, value in steps:
            scores = self._scores(state[:, None], self.score.prepare(key))
            is_soft = self.config.start == "soft"
            weights = Softmax().weigh(scores, is_real) if is_soft else scores.masked_fill(~is_real, 0.0)
            all_weights.append(weights)
            state = (state if self.update is None else self.update(state)) + (weights @ value)[:, 0]
        return Encoded(state, torch.cat(all_weights, dim=1))

    def _questions(self, question: Tensor) -> list[Tensor]:
        """Vector of the question before each step, as far as it does not depend on the facts."""
        if self.question is None:
            first = self.memories[: self.config.num_steps]
            return [self._dropout(memory.text(question)) for memory in first if isinstance(memory, Memory)]
        states = [self._dropout(self.question(question))]
        while self.update is not None and len(states) < self.config.num_steps:
            states.append(self.update(states[-1]))
        return states

    def _all_steps(self, inputs: StoryInputs, steps: list[tuple[Tensor, Tensor]]) -> Encoded:
        """Attend at all steps together, by the marginals of a chain."""
        questions = self._questions(inputs.question)
        keys = [self.score.prepare(key) for key, _ in steps]
        unary = torch.cat(
            [self._scores(question[:, None], prepared) for question, prepared in zip(questions, keys, strict=True)],
            dim=1,
        )
        is_real = torch.arange(unary.shape[-1], device=unary.device) < inputs.num_facts[:, None]
        unary = unary.masked_fill(~is_real[:, None], -torch.inf)
        # Sizes as `shape` gives them: `len` would fix the batch size of a recorded graph.
        transition = unary.new_zeros(unary.shape[0], 1, unary.shape[-1], unary.shape[-1])
        if self.config.chain == "binary" and len(steps) > 1:
            pairs = zip(steps, keys[1:], strict=False)
            transition = torch.stack([self._scores(key, following) for (key, _), following in pairs], dim=1)
        weights = linear_chain_marginals(unary, transition).weights
        contexts = [weights[:, k, None] @ value for k, (_, value) in enumerate(steps)]
        state = questions[0] + torch.cat(contexts, dim=1).sum(dim=1)
        return Encoded(state, weights)

    def _scores(self, query: Tensor, prepared: PreparedKey) -> Tensor:
        """Scores [story, query, key]; -inf for pairs that a kernel of limited reach excludes."""
        scores, is_within = PlainScores().scores(self.score.lower(query, prepared))
        return scores if is_within is None else scores.masked_fill(~is_within, -torch.inf)

    def scores(self, encoded: Encoded) -> Float[Tensor, "story answer"]:
        return self.output(encoded.vectors)

    def extra_losses(self, encoded: Encoded, log_probs: Float[Tensor, " story"]) -> dict[str, Tensor]:
        real = torch.ones_like(log_probs, dtype=torch.bool)
        return self.reinforcement(encoded.attended, log_probs[:, None], real[:, None])

    def _dropout(self, vectors: Tensor) -> Tensor:
        return dropout(vectors, self.config.dropout, self.training)
