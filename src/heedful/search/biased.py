"""Biased decoding: next-token probabilities interpolated with the tokens of similar steps of given translations.

As in kNN machine translation (Khandelwal et al. 2021, "Nearest neighbor machine translation", equations 1 to 3), given
translations are decoded by force, and each step is stored: the state of the decoder as key, the next token as value.
In a search, the tokens of the steps whose keys resemble the present state become more probable:

    p(y) = (p_model(y) + sum_i w_i [y_i = y]) / (1 + sum_i w_i),   w_i = c n_i exp(-(1 - cos(q, k_i)) / h)

This is Nadaraya-Watson kernel regression over the stored steps, with the model as one more vote of weight 1, so that a
state which resembles no step leaves the model's probabilities as they are. n_i = 1 - p_model(translation of the step)
says how much that translation is news: what the model would say anyway must not pull other outputs towards it, such as
one date towards another. A step has no vote once the output has its token as often as its translation does, or outputs
would run in circles. A state is seen through the output layer:
q = max(log p_model, -`FLOOR`) less its mean over the vocabulary, which equals the logits up to rare tokens. So any
engine will do, exported ones and ensembles too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.search.array_scores import ArrayScores
from heedful.search.inputs import InputArrays, Sources, as_inputs, token_sequences
from heedful.search.interface import (
    Adjust,
    Engine,
    FloatArray,
    IntArray,
    PosteriorEngine,
    StepScores,
    WeightsArray,
    posteriors_of,
)
from heedful.search.phrases import laid_out
from heedful.text.vocabulary import BOS, UNK

WEIGHT: Final = 2.0
"""Weight c of a step with the same state, of a translation that is all news; the model's own vote has weight 1."""
WIDTH: Final = 0.2
"""Width h of the kernel, in cosine distance."""
FLOOR: Final = 12.0
"""Log probabilities below -FLOOR nats count as -FLOOR, since differences among impossible tokens say nothing."""


@final
@dataclass(frozen=True, eq=False)
class StoredSteps:
    """Steps of given translations (the datastore of kNN machine translation).

    Attributes:
        keys: [step, vocab] states, of length 1.
        tokens: [step] the token that follows each state.
        news: [step] probability, by the model, of any other translation than the one that the step is of.
        counts: [step] how often that translation has the token.
    """

    keys: NDArray[np.float32]
    tokens: IntArray
    news: FloatArray
    counts: IntArray

    @staticmethod
    def joined(parts: "Sequence[StoredSteps]") -> "StoredSteps":
        """Join the steps of several translations.

        Args:
            parts: one or more.
        """
        return StoredSteps(
            np.concatenate([part.keys for part in parts]),
            np.concatenate([part.tokens for part in parts]),
            np.concatenate([part.news for part in parts]),
            np.concatenate([part.counts for part in parts]),
        )


def store_steps(engine: Engine, sources: Sources, outputs: Sequence[Sequence[int]]) -> list[StoredSteps]:
    """Decode given translations by force, and store their steps.

    Args:
        sources: as for `heedful.search.beam.search`; one or more.
        outputs: [token] tokens of the translation of each source, all in the vocabulary, EOS included.

    Returns:
        The steps of each, without those that an unknown token follows.

    Cost: that of decoding the batch greedily; 4 bytes for each step and token of the vocabulary.
    """
    inputs = as_inputs(sources)
    tokens = np.maximum(laid_out(outputs), 0)
    state = engine.start(inputs, 1)
    fed = np.full((len(inputs), 1), BOS, dtype=np.int64)
    keys: list[NDArray[np.float32]] = []
    totals, lengths, rows = np.zeros(len(inputs)), np.array([len(output) for output in outputs]), np.arange(len(inputs))
    for step in range(tokens.shape[1]):
        scores, state = engine.step(state, fed, None, None)
        log_probs = scores.full()[:, 0]
        keys.append(states(log_probs))
        totals += np.where(step < lengths, log_probs[rows, tokens[:, step]], 0.0)
        fed = tokens[:, step, None]
    stacked, news = np.stack(keys, axis=1), -np.expm1(totals)
    stored: list[StoredSteps] = []
    for row, output in enumerate(outputs):
        steps = np.flatnonzero(np.array(output) != UNK)
        counts = (tokens[row, steps, None] == tokens[row, steps]).sum(axis=1)
        stored.append(StoredSteps(stacked[row, steps], tokens[row, steps], np.full(len(steps), news[row]), counts))
    return stored


def states(log_probs: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the states of a decoder, as its distributions show them.

    Args:
        log_probs: [..., vocab] log probabilities of the next token.

    Returns:
        [..., vocab] vectors of length 1; zero for a uniform distribution.

    Example:
        >>> [round(float(value), 3) for value in states(np.log([0.5, 0.25, 0.25]))]
        [0.816, -0.408, -0.408]
    """
    values = np.maximum(log_probs, -FLOOR).astype(np.float32)
    values -= values.mean(axis=-1, keepdims=True)
    lengths = np.linalg.norm(values, axis=-1, keepdims=True)
    return values / np.where(lengths == 0.0, 1.0, lengths)


def biased_log_probs(log_probs: NDArray[np.floating], stored: StoredSteps, outputs: IntArray) -> FloatArray:
    """Interpolate the model's probabilities with the tokens of similar steps; the module's docstring has the equation.

    Args:
        log_probs: [hypothesis, vocab] log probabilities of the model.
        outputs: [hypothesis, position] tokens of the outputs so far.

    Returns:
        [hypothesis, vocab] log probabilities; they sum to 1 as the model's do.

    Cost: one product [hypothesis, vocab] x [vocab, step].
    """
    distances = 1.0 - (states(log_probs) @ stored.keys.T).astype(np.float64)
    weights = WEIGHT * stored.news * np.exp(-distances / WIDTH)
    weights *= (outputs[:, :, None] == stored.tokens).sum(axis=1) < stored.counts
    probs = np.exp(np.asarray(log_probs, dtype=np.float64))
    for step, token in enumerate(stored.tokens):
        probs[:, token] += weights[:, step]
    with np.errstate(divide="ignore"):
        return np.log(probs) - np.log1p(weights.sum(axis=1, keepdims=True))


@final
class BiasedEngine(Engine, PosteriorEngine):
    """Engine whose next tokens are biased towards the steps stored for each source."""

    def __init__(self, engine: Engine, stored: Mapping[bytes, StoredSteps]) -> None:
        """Wrap an engine.

        Args:
            engine: the model; its sources are token ids.
            stored: steps to imitate, by `source_key`; a source without any is decoded as by the model.
        """
        self._engine: Final = engine
        self._stored: Final = stored

    def start(self, inputs: InputArrays, num_hypotheses: int) -> object:
        stored = tuple(self._stored.get(source_key(ids)) for ids in token_sequences(inputs))
        outputs = np.empty((len(inputs), num_hypotheses, 0), dtype=np.int64)
        return _Running(self._engine.start(inputs, num_hypotheses), stored, outputs)

    def posteriors(self, inputs: InputArrays, outputs: Sequence[Sequence[int]]) -> list[WeightsArray] | None:
        return posteriors_of(self._engine, inputs, outputs)

    def step(
        self, state: object, tokens: IntArray, parents: IntArray | None, keep: IntArray | None
    ) -> tuple[StepScores, object]:
        if not isinstance(state, _Running):
            raise TypeError(f"biased decoding: got a state of type {type(state).__name__}")
        scores, own = self._engine.step(state.own, tokens, parents, keep)
        stored, outputs = state.stored, state.outputs
        if keep is not None:
            stored, outputs = tuple(stored[row] for row in keep), outputs[keep]
        if parents is not None:
            outputs = np.take_along_axis(outputs, parents[:, :, None], axis=1)
        outputs = np.concatenate([outputs, tokens[:, :, None]], axis=2)
        return BiasedScores(scores, stored, outputs), _Running(own, stored, outputs)


@final
@dataclass(frozen=True, slots=True)
class _Running:
    """State of the wrapped engine, and what the bias needs."""

    own: object
    stored: tuple[StoredSteps | None, ...]
    """Stored steps of each source."""
    outputs: IntArray
    """[source, hypothesis, position] tokens that were fed."""


@final
class BiasedScores(StepScores):
    """Biased scores of one step, computed when first needed."""

    def __init__(self, scores: StepScores, stored: Sequence[StoredSteps | None], outputs: IntArray) -> None:
        """Wrap scores.

        Args:
            stored: steps to imitate for each source of the batch; None = none.
            outputs: [source, hypothesis, position] tokens of the outputs so far.
        """
        self._scores: Final = scores
        self._stored: Final = tuple(stored)
        self._outputs: Final = outputs

    @cached_property
    def _log_probs(self) -> FloatArray:
        """[source, hypothesis, vocab] log probabilities."""
        log_probs = np.array(self._scores.full(), dtype=np.float64)
        for row, stored in enumerate(self._stored):
            if stored is not None:
                log_probs[row] = biased_log_probs(log_probs[row], stored, self._outputs[row])
        return log_probs

    def top(self, k: int, adjust: Adjust | None = None) -> tuple[FloatArray, IntArray]:
        return ArrayScores(self._log_probs).top(k, adjust)

    def full(self) -> NDArray[np.floating]:
        return self._log_probs

    @property
    def weights(self) -> WeightsArray:
        """[source, hypothesis, position] attention of the wrapped engine."""
        return self._scores.weights


def source_key(ids: IntArray) -> bytes:
    """Return the key by which the stored steps of a source are found.

    Args:
        ids: [position] tokens of the source, EOS included.

    Returns:
        Their bytes.
    """
    return np.ascontiguousarray(ids, dtype=np.int64).tobytes()
