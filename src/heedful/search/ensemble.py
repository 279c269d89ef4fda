"""Ensembles: several engines as one, with the average of their probabilities at each step."""

from collections.abc import Sequence
from functools import cached_property
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UsageError
from heedful.search.array_scores import ArrayScores
from heedful.search.inputs import InputArrays
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

Average = Literal["probabilities", "log_probabilities"]


@final
class Ensemble(Engine, PosteriorEngine):
    """Engine of log p = log sum_m share_m p_m, or of log p = sum_m share_m log p_m - log Z.

    The first, `probabilities`, is a mixture: a token is likely if one engine finds it likely. The second,
    `log_probabilities`, is a product of experts: a token is likely if no engine finds it unlikely. Z normalises it.
    """

    def __init__(
        self, engines: Sequence[Engine], average: Average = "probabilities", shares: Sequence[float] = ()
    ) -> None:
        """Combine engines.

        Args:
            engines: one or more, with one source and one target vocabulary.
            shares: weight of each engine, above 0; weights are divided by their sum. Empty = equal weights.

        Raises:
            UsageError: there is no engine, or the shares do not fit.
        """
        if not engines:
            raise UsageError("ensemble: no engine was given; give one or more")
        proportions = np.array(shares if len(shares) else np.ones(len(engines)), dtype=np.float64)
        if proportions.shape != (len(engines),) or not np.isfinite(proportions).all() or (proportions <= 0).any():
            raise UsageError(f"ensemble: {list(shares)} are no shares of {len(engines)} engines; give each one above 0")
        self._engines = tuple(engines)
        self._average: Average = average
        self._shares = proportions / proportions.sum()

    def start(self, inputs: InputArrays, num_hypotheses: int) -> object:
        return tuple(engine.start(inputs, num_hypotheses) for engine in self._engines)

    def step(
        self, state: object, tokens: IntArray, parents: IntArray | None, keep: IntArray | None
    ) -> tuple[StepScores, object]:
        if not isinstance(state, tuple) or len(state) != len(self._engines):
            raise TypeError(f"ensemble: got a state of type {type(state).__name__}")
        steps = [engine.step(own, tokens, parents, keep) for engine, own in zip(self._engines, state, strict=True)]
        return MixedScores([scores for scores, _ in steps], self._shares, self._average), tuple(own for _, own in steps)

    def posteriors(self, inputs: InputArrays, outputs: Sequence[Sequence[int]]) -> list[WeightsArray] | None:
        members = [posteriors_of(engine, inputs, outputs) for engine in self._engines]
        present = [each for each in members if each is not None]
        if len(present) < len(members):
            return None
        return [
            np.average(rows, axis=0, weights=self._shares).astype(np.float32) for rows in zip(*present, strict=True)
        ]


@final
class MixedScores(StepScores):
    """Average of several engines' scores of one step, computed when first needed."""

    def __init__(self, members: Sequence[StepScores], shares: FloatArray, average: Average) -> None:
        """Collect the scores.

        Args:
            members: scores of each engine.
            shares: [engine] weights above 0, with sum 1.
        """
        self._members = members
        self._shares = shares
        self._average: Average = average

    @cached_property
    def _log_probs(self) -> FloatArray:
        """[source, hypothesis, vocab] averaged log probabilities.

        Raises:
            UsageError: the vocabularies differ.
        """
        parts = [np.asarray(member.full(), dtype=np.float64) for member in self._members]
        sizes = [part.shape[-1] for part in parts]
        if len(set(sizes)) > 1:
            raise UsageError(f"ensemble: the engines' vocabularies have {sizes} tokens; use models of one vocabulary")
        if len(parts) == 1:
            return parts[0]
        if self._average == "probabilities":
            return mean_of_probabilities(parts, self._shares)
        return mean_of_log_probabilities(parts, self._shares)

    def top(self, k: int, adjust: Adjust | None = None) -> tuple[FloatArray, IntArray]:
        return ArrayScores(self._log_probs).top(k, adjust)

    def full(self) -> NDArray[np.floating]:
        return self._log_probs

    @property
    def weights(self) -> WeightsArray:
        """[source, hypothesis, position] attention to the source, averaged.

        Raises:
            NeedError: an engine gives none.
        """
        total = np.zeros(self._members[0].weights.shape)
        for share, member in zip(self._shares, self._members, strict=True):
            total += share * member.weights
        return total.astype(np.float32)


def mean_of_probabilities(parts: Sequence[FloatArray], shares: FloatArray) -> FloatArray:
    """Average distributions (a mixture).

    Args:
        parts: [..., vocab] log probabilities of each engine.
        shares: [part] weights above 0, with sum 1.

    Returns:
        [..., vocab] log sum_m share_m p_m; -inf where every engine gives -inf.

    Example:
        >>> parts = [np.log([0.2, 0.8]), np.log([0.6, 0.4])]
        >>> np.exp(mean_of_probabilities(parts, np.array([0.5, 0.5]))).round(6).tolist()
        [0.4, 0.6]
    """
    largest = np.max(parts, axis=0)
    # The shift is added again below; where all values are -inf, any shift will do.
    shift = np.where(largest == -np.inf, 0.0, largest)
    total = np.zeros_like(shift)
    for part, share in zip(parts, shares, strict=True):
        total += share * np.exp(part - shift)
    with np.errstate(divide="ignore"):
        # Rounding must not give a probability above 1.
        return np.minimum(np.log(total) + shift, 0.0)


def mean_of_log_probabilities(parts: Sequence[FloatArray], shares: FloatArray) -> FloatArray:
    """Average log probabilities (a product of experts).

    Args:
        parts: [..., vocab] log probabilities of each engine.
        shares: [part] weights above 0, with sum 1.

    Returns:
        [..., vocab] sum_m share_m log p_m, normalised so that probabilities sum to 1; -inf everywhere if no token is

    Example:
        >>> parts = [np.log([0.2, 0.8]), np.log([0.8, 0.2])]
        >>> np.exp(mean_of_log_probabilities(parts, np.array([0.5, 0.5]))).round(6).tolist()
        [0.5, 0.5]
    """
    mean = np.zeros_like(parts[0])
    for part, share in zip(parts, shares, strict=True):
        mean += share * part
    largest = mean.max(axis=-1, keepdims=True)
    # Where no token is possible for all engines, there is nothing to normalise.
    mean -= np.where(largest == -np.inf, 0.0, largest)
    total = np.exp(mean).sum(axis=-1, keepdims=True)
    return np.minimum(mean - np.log(np.where(total == 0.0, 1.0, total)), 0.0)
