"""Biased decoding: next-token probabilities interpolated with the tokens of similar steps of given translations.

As in kNN machine translation (Khandelwal et al. 2021, "Nearest neighbor machine translation", equations 1 to 3), given
translations are decoded by force, and each step is stored: the state of the decoder as key, the next token as value.
In a search, the tokens of the steps whose keys resemble the present state become more probable:

    p(y) = (p_model(y) + sum_i w_i [y_i = y]) / (1 + sum_i w_i),   w_i = c exp(-(1 - cos(q, k_i)) / h)

This is Nadaraya-Watson kernel regression over the stored steps, with the model as one more vote of weight 1, so that a
state which resembles no step leaves the model's probabilities as they are. A state is seen through the output layer:
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
from heedful.search.interface import Adjust, Engine, FloatArray, IntArray, StepScores, WeightsArray
from heedful.search.phrases import laid_out
from heedful.text.vocabulary import BOS, UNK

WEIGHT: Final = 2.0
"""Weight c of a step with the same state; the model's own vote has weight 1."""
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
    """

    keys: NDArray[np.float32]
    tokens: IntArray

    @staticmethod
    def joined(parts: "Sequence[StoredSteps]") -> "StoredSteps":
        """Join the steps of several translations.

        Args:
            parts: one or more.

        Returns:
            All their steps.
        """
        return StoredSteps(
            np.concatenate([part.keys for part in parts]), np.concatenate([part.tokens for part in parts])
        )


def store_steps(engine: Engine, sources: Sources, outputs: Sequence[Sequence[int]]) -> list[StoredSteps]:
    """Decode given translations by force, and store their steps.

    Args:
        engine: the model.
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
    for step in range(tokens.shape[1]):
        scores, state = engine.step(state, fed, None, None)
        keys.append(states(scores.full()[:, 0]))
        fed = tokens[:, step, None]
    stacked = np.stack(keys, axis=1)
    return [
        StoredSteps(stacked[row, steps], tokens[row, steps])
        for row, output in enumerate(outputs)
        for steps in [np.flatnonzero(np.array(output) != UNK)]
    ]


def states(log_probs: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the states of a decoder, as its distributions show them.

    Args:
        log_probs: [..., vocab] log probabilities of the next token.

    Returns:
        [..., vocab] vectors of length 1; zero for a uniform distribution.

    Example:
        >>> states(np.log([0.5, 0.25, 0.25])).round(3).tolist()
        [0.816, -0.408, -0.408]
    """
    values = np.maximum(log_probs, -FLOOR).astype(np.float32)
    values -= values.mean(axis=-1, keepdims=True)
    lengths = np.linalg.norm(values, axis=-1, keepdims=True)
    return values / np.where(lengths == 0.0, 1.0, lengths)


def biased_log_probs(log_probs: NDArray[np.floating], stored: StoredSteps) -> FloatArray:
    """Interpolate the model's probabilities with the tokens of similar steps; the module's docstring has the equation.

    Args:
        log_probs: [hypothesis, vocab] log probabilities of the model.
        stored: steps to imitate.

    Returns:
        [hypothesis, vocab] log probabilities; they sum to 1 as the model's do.

    Cost: one product [hypothesis, vocab] x [vocab, step].
    """
    distances = 1.0 - (states(log_probs) @ stored.keys.T).astype(np.float64)
    weights = WEIGHT * np.exp(-distances / WIDTH)
    probs = np.exp(np.asarray(log_probs, dtype=np.float64))
    for step, token in enumerate(stored.tokens):
        probs[:, token] += weights[:, step]
    with np.errstate(divide="ignore"):
        return np.log(probs) - np.log1p(weights.sum(axis=1, keepdims=True))


@final
class BiasedEngine(Engine):
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
        return _Running(self._engine.start(inputs, num_hypotheses), stored)

    def step(
        self, state: object, tokens: IntArray, parents: IntArray | None, keep: IntArray | None
    ) -> tuple[StepScores, object]:
        if not isinstance(state, _Running):
            raise TypeError(f"biased decoding: got a state of type {type(state).__name__}")
        scores, own = self._engine.step(state.own, tokens, parents, keep)
        stored = state.stored if keep is None else tuple(state.stored[row] for row in keep)
        return BiasedScores(scores, stored), _Running(own, stored)


@final
@dataclass(frozen=True, slots=True)
class _Running:
    """State of the wrapped engine, and the steps stored for each of its sources."""

    own: object
    stored: tuple[StoredSteps | None, ...]


@final
class BiasedScores(StepScores):
    """Biased scores of one step, computed when first needed."""

    def __init__(self, scores: StepScores, stored: Sequence[StoredSteps | None]) -> None:
        """Wrap scores.

        Args:
            scores: scores of the model.
            stored: steps to imitate for each source of the batch; None = none.
        """
        self._scores: Final = scores
        self._stored: Final = tuple(stored)

    @cached_property
    def _log_probs(self) -> FloatArray:
        """[source, hypothesis, vocab] log probabilities."""
        log_probs = np.array(self._scores.full(), dtype=np.float64)
        for row, stored in enumerate(self._stored):
            if stored is not None:
                log_probs[row] = biased_log_probs(log_probs[row], stored)
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
