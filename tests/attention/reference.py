"""Oracle for tests of kernels: attention as sums over single numbers in float64, slow on purpose.

It uses no tensor operation that a kernel might share. None stands for a key without a score or that may not be
attended.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.attention.lowered import GivenScores, LoweredAdditive, LoweredDistance, LoweredDot, LoweredScore

Scores = list[list[float | None]]
"""Scores [query, key]."""
Weights = list[list[float]]
"""Weights [query, key]."""

LARGEST: Final = torch.finfo(torch.float64).max


def reference_attention(
    pairs: LoweredScore,
    value: Float[Tensor, "key value_size"],
    normalize: Callable[[Scores], Weights],
    allowed: Bool[Tensor, "query key"] | None = None,
    factors: Weights | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute attention: score, mask, normalise, multiply by the Gaussian, average.

    Args:
        pairs: without leading axes.
        value: [key, value_size].
        normalize: function from all scores to all weights; see `by_row`.
        allowed: [query, key] bool; None = all.
        factors: factors of the weights after normalising, such as `gaussian_factors`; None = 1.

    Returns:
        [query, value_size] contexts and [query, key] weights, float64.
    """
    scores = reference_scores(pairs)
    may = [[True] * len(row) for row in scores] if allowed is None else allowed.tolist()
    hidden = [
        [score if is_in else None for score, is_in in zip(*rows, strict=True)] for rows in zip(scores, may, strict=True)
    ]
    weights = normalize(hidden)
    if factors is not None:
        weights = [[w * factor for w, factor in zip(*rows, strict=True)] for rows in zip(weights, factors, strict=True)]
    values = value.double().tolist()
    size = value.shape[-1]
    context = [[math.fsum(w * values[j][d] for j, w in enumerate(row)) for d in range(size)] for row in weights]
    shape = (len(scores), value.shape[0])
    return (
        torch.tensor(context, dtype=torch.float64).reshape(shape[0], size),
        torch.tensor(weights, dtype=torch.float64).reshape(shape),
    )


def gaussian_factors(centres: Sequence[float], sigma: float, num_keys: int) -> Weights:
    """Compute exp(-(j - centre)^2 / (2 sigma^2)) for every key j: local-p, Luong et al. 2015, eq. 10.

    Args:
        centres: a real position among the keys for each query.
        sigma: standard deviation in keys, above 0.
        num_keys: number of keys.

    Returns:
        The factors.
    """
    return [[math.exp(-((j - centre) ** 2) / (2 * sigma**2)) for j in range(num_keys)] for centre in centres]


def reference_scores(pairs: LoweredScore) -> Scores:
    """Score every query with every key.

    Args:
        pairs: without leading axes.

    Returns:
        The scores, times the inverse temperature if the lowered score stores it separately.

    Raises:
        TypeError: there is no formula for this kind of lowered score.
    """
    if pairs.bias is not None:
        scores = reference_scores(replace(pairs, bias=None))
        biases = pairs.bias.add_to(torch.zeros(len(pairs.query), len(pairs.key), dtype=torch.float64)).tolist()
        return [
            [None if s is None else s + b for s, b in zip(*rows, strict=True)]
            for rows in zip(scores, biases, strict=True)
        ]
    if isinstance(pairs, GivenScores):
        factor = float(pairs.inverse_temperature)
        rows = [pairs.function(row[None].double(), pairs.key.double()).tolist()[0] for row in pairs.query]
        return [[factor * max(-LARGEST, min(LARGEST, score)) for score in row] for row in rows]
    return [
        [_score(pairs, query, key) for key in pairs.key.double().tolist()] for query in pairs.query.double().tolist()
    ]


def _score(pairs: LoweredScore, query: list[float], key: list[float]) -> float | None:
    if isinstance(pairs, LoweredDot):
        return pairs.scale * math.fsum(q * k for q, k in zip(query, key, strict=True))
    if isinstance(pairs, LoweredAdditive):
        vector = pairs.vector.double().tolist()
        return math.fsum(v * math.tanh(q + k) for v, q, k in zip(vector, query, key, strict=True))
    if isinstance(pairs, LoweredDistance):
        squared = math.fsum((q - k) ** 2 for q, k in zip(query, key, strict=True))
        kernel = _KERNELS[pairs.profile](math.sqrt(squared / float(pairs.bandwidth) ** 2))
        return None if kernel is None else float(pairs.inverse_temperature) * kernel
    raise TypeError(f"reference: no formula for {type(pairs).__name__}")


def _log(kernel: float) -> float | None:
    return math.log(kernel) if kernel > 0 else None


_KERNELS: Final[dict[str, Callable[[float], float | None]]] = {
    "gaussian": lambda u: -(u**2) / 2,
    "laplacian": lambda u: -u,
    "boxcar": lambda u: _log(1.0 if u < 1 else 0.0),
    "triangular": lambda u: _log(max(0.0, 1 - u)),
    "epanechnikov": lambda u: _log(max(0.0, 1 - u**2)),
    "constant": lambda u: 0.0,
}
"""Functions log K(u), u = distance / bandwidth; None where K is 0."""


def by_row(weigh: Callable[[list[float]], list[float]]) -> Callable[[Scores], Weights]:
    """Extend a normalizer of one row to all scores.

    Args:
        weigh: function from the scores of the allowed keys of a query, in order, to their weights; not called for empty
            rows.

    Returns:
        A function for `reference_attention`.

    Example:
        >>> by_row(softmax)([[0.0, None, 0.0], [None, None, None]])
        [[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]
    """

    def normalize(scores: Scores) -> Weights:
        return [_on_allowed(weigh, row) for row in scores]

    return normalize


def _on_allowed(weigh: Callable[[list[float]], list[float]], row: list[float | None]) -> list[float]:
    allowed = [score for score in row if score is not None]
    weights = iter(weigh(allowed) if allowed else [])
    return [0.0 if score is None else next(weights) for score in row]


def softmax(scores: list[float]) -> list[float]:
    """Exponentiate and divide by the sum.

    Args:
        scores: at least one.

    Returns:
        As many weights.
    """
    largest = max(scores)
    exponentials = [math.exp(score - largest) for score in scores]
    total = math.fsum(exponentials)
    return [exponential / total for exponential in exponentials]


def sparsemax(scores: list[float]) -> list[float]:
    """Find the point p of the simplex with the smallest |p - scores|^2, trying every size of the support.

    For k keys p_j = z_j - threshold, threshold = (sum of the k largest - 1) / k, is the nearest point of
    the plane; it is the solution if the k-th weight is positive and the next key's would not be.

    Args:
        scores: at least one.

    Returns:
        As many weights.

    Raises:
        ArithmeticError: no support size fits, because a score is not finite.
    """
    ordered = sorted(scores, reverse=True)
    for size in range(1, len(scores) + 1):
        threshold = (math.fsum(ordered[:size]) - 1) / size
        if ordered[size - 1] > threshold and all(score <= threshold for score in ordered[size:]):
            return [max(0.0, score - threshold) for score in scores]
    raise ArithmeticError(f"sparsemax: no support for {scores}")


def entmax(scores: list[float], alpha: float) -> list[float]:
    """Bisect the threshold at which [(alpha - 1) z_j - threshold]_+ ^ (1 / (alpha - 1)) sums to 1.

    Args:
        scores: at least one.
        alpha: above 1.

    Returns:
        As many weights.
    """
    scaled = [(alpha - 1) * score for score in scores]

    def weigh(threshold: float) -> list[float]:
        return [max(0.0, score - threshold) ** (1 / (alpha - 1)) for score in scaled]

    low, high = max(scaled) - 1, max(scaled)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.fsum(weigh(middle)) >= 1 else (low, middle)
    weights = weigh(low)
    return [weight / math.fsum(weights) for weight in weights]


def hard(scores: list[float]) -> list[float]:
    """Give all weight to the largest score, in a tie to the first.

    Args:
        scores: at least one.

    Returns:
        As many weights.
    """
    best = scores.index(max(scores))
    return [1.0 if index == best else 0.0 for index in range(len(scores))]


def sigmoid(scores: list[float]) -> list[float]:
    """Weigh each key by itself: 1 / (1 + exp(-score)).

    Args:
        scores: any number.

    Returns:
        As many weights.
    """
    return [1 / (1 + math.exp(-score)) for score in scores]


def linear_chain(scores: list[float], transition: Weights, start: list[float], stop: list[float]) -> list[float]:
    """Sum over all 2^keys sequences of states: the probability that a key is in state 1.

    Args:
        scores: at least one score of state 1; state 0 has score 0.
        transition: [2, 2] of a state followed by another.
        start: [2] of the first state.
        stop: [2] of the last state.

    Returns:
        As many weights.
    """
    sequences = list(product((0, 1), repeat=len(scores)))
    energies = [
        start[states[0]]
        + math.fsum(score for score, state in zip(scores, states, strict=True) if state)
        + math.fsum(transition[one][two] for one, two in pairwise(states))
        + stop[states[-1]]
        for states in sequences
    ]
    probabilities = softmax(energies)
    return [
        math.fsum(probability for states, probability in zip(sequences, probabilities, strict=True) if states[position])
        for position in range(len(scores))
    ]


def monotonic(probabilities: Scores) -> Weights:
    """Sum over all ways to walk along the keys: the probability that query i stops at key j.

    A query begins where the one before stopped, and stops at each key with the probability of the two. One that may
    attend nothing does not walk; who has passed the last key never comes back.

    Args:
        probabilities: [query, key] of stopping; None where not allowed.

    Returns:
        The weights.
    """
    places = {0: 1.0}
    weights = []
    for row in probabilities:
        stopped = dict.fromkeys(range(len(row)), 0.0)
        for first, share in places.items():
            for key in range(first, len(row)):
                probability = row[key] or 0.0
                stopped[key] += share * probability
                share *= 1 - probability
        weights.append([stopped[key] for key in range(len(row))])
        if any(probability is not None for probability in row):
            places = stopped
    return weights


def projective_tree(scores: Scores) -> Weights:
    """Sum over all projective trees: the probability that key j is the head of query i; the first key is the root.

    A query is in the tree if it may attend some key and its own key may be attended by some query; with as many queries
    as keys, the root is a query too.

    Args:
        scores: [query, key], with as many queries as keys or one less.

    Returns:
        The weights; all zero if there is no tree.
    """
    rootless = len(scores[0]) - len(scores)
    arcs = [[None] * len(scores[0])] * rootless + scores
    heads = {head for row in arcs for head, score in enumerate(row) if score is not None}
    words = [word for word in range(1, len(arcs)) if word in heads and any(s is not None for s in arcs[word])]
    nodes = [0, *words]
    trees: list[tuple[int, ...]] = []
    energies: list[float] = []
    for tree in product(nodes, repeat=len(words)) if 0 in heads else ():
        scored = [arcs[word][head] for word, head in zip(words, tree, strict=True)]
        allowed = [score for score in scored if score is not None]
        if len(allowed) == len(words) and _is_projective(dict(zip(words, tree, strict=True))):
            trees.append(tree)
            energies.append(math.fsum(allowed))
    weights = [[0.0] * len(arcs) for _ in arcs]
    for tree, probability in zip(trees, softmax(energies) if energies else [], strict=True):
        for word, head in zip(words, tree, strict=True):
            weights[word][head] += probability
    return weights[rootless:]


def _is_projective(heads: dict[int, int]) -> bool:
    """Whether all words depend on the root 0, and every word between a word and its head descends from that head."""

    def hangs_on(word: int, head: int) -> bool:
        for _ in range(len(heads) + 1):
            if word == head:
                return True
            word = heads.get(word, 0)
        return False

    return all(hangs_on(word, 0) for word in heads) and all(
        hangs_on(between, head)
        for word, head in heads.items()
        for between in heads
        if min(word, head) < between < max(word, head)
    )
