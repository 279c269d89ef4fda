"""Length penalty, coverage penalty and repetition charges: from the log probability of a hypothesis to its score.

score(Y | X) = log p(Y | X) / lp(Y) + cp(X; Y);  Wu et al. 2016 (GNMT), arXiv:1609.08144, equation 14.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.errors import ConfigError, did_you_mean
from heedful.search.config import SearchConfig
from heedful.search.interface import FloatArray, IntArray

SMALLEST_COVERAGE = 1e-10
"""Lower bound of coverage: a source position that was never attended would otherwise rule a hypothesis out."""


def length_penalty(length: ArrayLike, kind: Literal["power", "gnmt"], alpha: float) -> FloatArray:
    """Return the divisor of the log probability of a hypothesis.

    power: length^alpha, with alpha = 1 the mean per token.  gnmt: ((5 + length) / (5 + 1))^alpha.

    Args:
        length: [...] generated tokens, EOS included; 0 counts as 1.
        alpha: at least 0; 0 gives 1 whatever the length.

    Returns:
        [...] divisors, float64, at least 1.

    Raises:
        ConfigError: there is no such kind.

    Example:
        >>> length_penalty(7, "gnmt", 1.0).item()
        2.0
        >>> length_penalty([1, 4], "power", 0.5).tolist()
        [1.0, 2.0]
    """
    counted = np.maximum(np.asarray(length, dtype=np.float64), 1.0)
    if kind == "power":
        return np.power(counted, alpha)
    if kind == "gnmt":
        return np.power((5.0 + counted) / 6.0, alpha)
    raise ConfigError(f"length_penalty {kind!r}: no such penalty{did_you_mean(kind, ['power', 'gnmt'])}")


def length_score(log_probs: ArrayLike, lengths: ArrayLike, config: SearchConfig) -> FloatArray:
    """Return the scores of hypotheses before the coverage penalty.

    log_prob / lp(length) + reward * length; the reward is that of He et al. 2016, "Improved neural machine translation
    with SMT features".

    Args:
        log_probs: [...] sums over the tokens, less repetition charges.
        lengths: [#...] generated tokens, EOS included.
        config: gives `length_penalty`, `alpha` and `length_reward`.

    Returns:
        [...] scores, float64. For a fixed log probability (at most 0), the score never falls as the length grows.

    Example:
        >>> length_score(-6.0, [2, 3], SearchConfig(alpha=1.0, length_reward=0.5)).tolist()
        [-2.0, -0.5]
    """
    divisors = length_penalty(lengths, config.length_penalty, config.alpha)
    return np.asarray(log_probs) / divisors + config.length_reward * np.asarray(lengths)


def repetition_charges(
    log_probs: NDArray[np.floating], ids: IntArray, token_ids: IntArray, repetition_penalty: float
) -> FloatArray:
    """Return the charges for tokens that a hypothesis already contains.

    (theta - 1) * -log p, so that a probability p counts as p^theta: the penalty of Keskar et al. 2019 (CTRL),
    arXiv:1909.05858, section 4.1, on log probabilities, which do not depend on an offset of the logits.

    Args:
        log_probs: [row, hypothesis, candidate] log probabilities of the tokens.
        ids: [row, hypothesis, candidate] the tokens.
        token_ids: [row, hypothesis, step] tokens of the hypotheses.
        repetition_penalty: theta, at least 1.

    Returns:
        [row, hypothesis, candidate] charges, at least 0.

    Example:
        >>> repetition_charges(np.array([[[-1.0, -2.0]]]), np.array([[[4, 5]]]), np.array([[[5, 6]]]), 1.5).tolist()
        [[[0.0, 1.0]]]
    """
    is_held = (ids[:, :, :, None] == token_ids[:, :, None, :]).any(axis=3)
    charges = np.zeros(log_probs.shape)
    np.multiply(log_probs, 1.0 - repetition_penalty, out=charges, where=is_held)
    return charges


def coverage_penalty(weights: NDArray[np.floating], beta: float) -> float:
    """Return the penalty for source positions that a hypothesis did not attend to.

    cp = beta * sum_i log(min(sum_j weights[j, i], 1)), at most 0.

    Args:
        weights: [token, position] attention of each generated token, EOS included, over the real positions of
            the source; each row sums to 1 where the model attends at all.
        beta: at least 0; 0 turns it off.

    Example:
        >>> round(coverage_penalty(np.array([[1.0, 0.0], [0.5, 0.5]]), 2.0), 4)  # 2 log 0.5
        -1.3863
    """
    coverage = np.sum(weights, axis=0, dtype=np.float64)
    return float(beta * np.sum(np.log(np.clip(coverage, SMALLEST_COVERAGE, 1.0))))
