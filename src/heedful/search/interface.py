"""Interface between search and engines: the log probabilities of a step, and the adjustments that search makes.

An engine runs a model (in PyTorch, ONNX Runtime, ...) one target token at a time. In every array axis 0 is the
source and axis 1 the hypothesis; all hypotheses of a source share its memory, which is therefore never copied.
A log probability is natural (base e), of the model alone: penalties belong to the search. PAD, UNK, BOS and EOS
are the ids of `heedful.text.vocabulary`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from heedful.search.inputs import InputArrays

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
WeightsArray = NDArray[np.float32]

FinishReason = Literal["eos", "length", "cancelled", "stuck"]
"""Reason why a hypothesis ended.

`eos`: the model ended it. `length`: it reached the length limit. `cancelled`: the caller stopped the search.
`stuck`: every continuation was impossible (log probability -inf), such as when all that is left is banned.
"""


def _no_ids() -> IntArray:
    return np.empty(0, dtype=np.int64)


def _no_values() -> FloatArray:
    return np.empty(0, dtype=np.float64)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Adjust:
    """Sparse adjustment of one step's log probabilities, applied before the top k are taken.

    What remains is not normalised again: a log probability that is not changed stays the model's own, so the
    score of a hypothesis equals the one that forced decoding gives it. All ids lie inside the vocabulary.

    Attributes:
        banned: [banned] ids that no hypothesis may take; their log probability becomes -inf.
        sources: [changed] rows of the current batch (not positions in the caller's list).
        hypotheses: [changed] hypotheses of those rows.
        ids: [changed] the token whose log probability changes.
        values: [changed] the amount added to it; -inf bans the token, and amounts for the same token add up.
    """

    banned: IntArray = field(default_factory=_no_ids)
    sources: IntArray = field(default_factory=_no_ids)
    hypotheses: IntArray = field(default_factory=_no_ids)
    ids: IntArray = field(default_factory=_no_ids)
    values: FloatArray = field(default_factory=_no_values)


class StepScores(Protocol):
    """Scores of the next token of each hypothesis, from one step of an engine."""

    def top(self, k: int, adjust: Adjust | None = None) -> tuple[FloatArray, IntArray]:
        """Return the most probable next tokens of each hypothesis.

        Args:
            k: number of tokens, at least 1; at most the size of the vocabulary counts.
            adjust: changes to apply first.

        Returns:
            [source, hypothesis, k] float64 log probabilities, best first (-inf where banned), and
            [source, hypothesis, k] int64 ids. k is at most the size of the vocabulary. Among equals the lower id
            comes first if the engine's top-k ensures it; the search sorts the candidates again.
        """
        ...

    def full(self) -> NDArray[np.floating]:
        """Return the log probabilities of the whole vocabulary, unadjusted.

        Returns:
            [source, hypothesis, vocab] log probabilities.
        """
        ...

    def of(self, sources: IntArray, hypotheses: IntArray, ids: IntArray) -> FloatArray:
        """Return the log probabilities of single tokens, unadjusted; needed for prefixes and required phrases.

        Args:
            sources: [any] rows of the current batch.
            hypotheses: [any] hypotheses of those rows.
            ids: [any] tokens, all in the vocabulary.

        Returns:
            [any] float64 log probabilities.

        Cost: by default that of `full`; an engine whose scores lie on a device gathers them there.
        """
        return self.full()[sources, hypotheses, ids].astype(np.float64)

    @property
    def vocab_size(self) -> int:
        """Size of the vocabulary; by default at the cost of `full`. Used at most once in a search."""
        return self.full().shape[-1]

    @property
    def weights(self) -> WeightsArray:
        """[source, hypothesis, position] float32 attention weights of this step's token over the source.

        As wide as the inputs given to `Engine.start`; zero on padding. Read only when needed.
        """
        ...


class Engine(Protocol):
    """Model that the search drives step by step; its state is opaque to the search."""

    def start(self, inputs: InputArrays, num_hypotheses: int) -> object:
        """Encode the sources and make the state before the first target token.

        Args:
            inputs: the sources, of the kind that the model reads.
            num_hypotheses: number of hypotheses per source, at least 1.

        Returns:
            The state for the first `step`.
        """
        ...

    def step(
        self, state: object, tokens: IntArray, parents: IntArray | None, keep: IntArray | None
    ) -> tuple[StepScores, object]:
        """Reorder the state, feed one token to each hypothesis and return the scores of the next.

        In this order: keep the sources `keep`, reorder their hypotheses by `parents`, feed `tokens`.

        Args:
            state: from `start` or the step before; the engine may change it, the search uses it no more.
            tokens: [source, hypothesis] ids to feed; `BOS` at the first step. Rows are those that `keep` leaves.
            parents: [source, hypothesis] which hypothesis of the same source each one continues, counted after
                `keep`; None when each continues itself.
            keep: [kept] ascending rows of the state that stay; None when all stay.

        Returns:
            The step's scores and the next state. The scores may be read until the next `step`.
        """
        ...


@runtime_checkable
class PosteriorEngine(Protocol):
    """Engine that can align whole outputs."""

    def posteriors(self, inputs: InputArrays, outputs: Sequence[Sequence[int]]) -> list[WeightsArray] | None:
        """Return the alignments of whole outputs, if those of the model are known only then.

        Args:
            inputs: the sources.
            outputs: tokens of one output for each source, with EOS if the model ended it.

        Returns:
            [token, source position] for each output; None = the weights of the steps are the alignment.
        """
        ...


def posteriors_of(engine: Engine, inputs: InputArrays, outputs: Sequence[Sequence[int]]) -> list[WeightsArray] | None:
    """Return the alignments of whole outputs.

    Args:
        engine: any engine.
        inputs: the sources.
        outputs: tokens of one output for each source, with EOS if the model ended it.

    Returns:
        As `PosteriorEngine.posteriors`; None if the engine has none.
    """
    return engine.posteriors(inputs, outputs) if isinstance(engine, PosteriorEngine) else None


@final
@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Output sequence found by the search.

    Attributes:
        token_ids: the tokens, without `EOS`.
        log_prob: sum of `token_log_probs`: log p(tokens | source), with `EOS` when the model ended it.
        score: score that ranks hypotheses: `log_prob` less repetition charges, after the length penalty, with the
            length reward and the coverage penalty added.
        token_log_probs: one per generated token, so one more than `token_ids` when `finish_reason` is `eos`; empty from
            a backend that returns only their sum.
        finish_reason: reason why the hypothesis ended.
        weights: [token, source position] float32, rows as in `token_log_probs`, columns the source's real positions
            with its `EOS`; None unless requested.

    Example:
        >>> Hypothesis((5, 6), -1.5, -0.5, (-0.5, -0.75, -0.25), "eos").token_ids
        (5, 6)
    """

    token_ids: tuple[int, ...]
    log_prob: float
    score: float
    token_log_probs: tuple[float, ...]
    finish_reason: FinishReason
    weights: WeightsArray | None = field(default=None, compare=False, repr=False)
