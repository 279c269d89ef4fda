"""Sampling with temperature, top-k, top-p and min-p.

Order of operations: forbidden tokens, repetition penalty, temperature, then the limits. `top_k`: the k most probable
tokens (Fan et al. 2018, arXiv:1805.04833). `top_p`: the fewest of them, most probable first, with a probability of at
least p (nucleus; Holtzman et al. 2020, arXiv:1904.09751, section 3.1). `min_p`: those at least p times as probable
as the most probable one (Nguyen et al. 2024, arXiv:2407.01082). Limits combine to what all of them leave, and `top_p`
counts within what `top_k` left. One uniform number then chooses a token, in order of ids and in proportion to their
probabilities: a small error of arithmetic moves the boundaries between tokens little, and so seldom the choice.
"""

import numpy as np

from heedful.search.array_scores import mark_largest
from heedful.search.config import SearchConfig
from heedful.search.interface import FloatArray, IntArray


def draw(values: FloatArray, uniforms: FloatArray, config: SearchConfig) -> IntArray:
    """Draw a token for each row.

    Args:
        values: [row, token] log probabilities less charges, in the order of ids, not NaN and not normalised; -inf where
            forbidden. All of the vocabulary, or the `top_k` largest at least.
        uniforms: [row] numbers from 0, below 1.
        config: gives temperature and limits.

    Returns:
        [row] column of the token drawn; arbitrary where all tokens are forbidden.

    Cost: a few passes over the values; for `top_k` and `top_p` they are sorted too.

    Example:
        >>> values = np.log([[0.5, 0.3, 0.2]])
        >>> [int(draw(values, np.array([at]), SearchConfig()).item()) for at in (0.49, 0.51, 0.81)]
        [0, 1, 2]
    """
    reached = np.cumsum(allowed(probabilities(values, config.temperature or 1.0), config), axis=1)
    # The first column where the sum exceeds its share, so never one without weight.
    drawn = (reached <= uniforms[:, None] * reached[:, -1:]).sum(axis=1)
    return np.minimum(drawn, values.shape[1] - 1)


def probabilities(values: FloatArray, temperature: float) -> FloatArray:
    """Convert log probabilities to probabilities, each row up to a factor.

    Args:
        values: [row, token] log probabilities up to a constant for each row; not NaN.
        temperature: divisor of the log probabilities, above 0.

    Returns:
        [row, token] probabilities, 1 for the most probable token; all 0 where every value is -inf.
    """
    largest = values.max(axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        return np.exp((values - np.where(largest > -np.inf, largest, 0.0)) / temperature)


def allowed(weights: FloatArray, config: SearchConfig) -> FloatArray:
    """Set the weights of tokens outside the limits to zero.

    Args:
        weights: [row, token] probabilities up to a factor for each row.
        config: gives the limits; temperature 0 allows one token only.

    Returns:
        [row, token] weights of the tokens that may be drawn, 0 for others. Among equals lower ids come first.
    """
    most = 1 if config.temperature == 0 else config.top_k
    remaining = weights
    if most or config.top_p < 1:
        ordered = np.sort(weights, axis=1)[:, ::-1][:, : most or weights.shape[1]]
        nums = np.full(weights.shape[0], ordered.shape[1])
        if config.top_p < 1:
            cumulative = np.cumsum(ordered, axis=1)
            # A token is allowed while those before it have too little probability; the first one always is.
            nums = 1 + (cumulative[:, :-1] < config.top_p * cumulative[:, -1:]).sum(axis=1)
        remaining = np.where(mark_largest(weights, ordered[np.arange(nums.size), nums - 1], nums), weights, 0.0)
    if config.min_p == 0:
        return remaining
    return np.where(weights >= config.min_p * weights.max(axis=1, keepdims=True), remaining, 0.0)
