"""The oracle for a whole case: item by item, with what the mask means rather than what it computes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import prod
from statistics import NormalDist
from typing import Any

import torch
from torch import Tensor

from heedful.attention.interface import Normalizer
from heedful.attention.lowered import LoweredScore
from heedful.attention.monotonic import HardMonotonic, Monotonic
from heedful.attention.simplex import Entmax, Sparsemax
from heedful.attention.softmax import Softmax
from heedful.attention.stochastic import GumbelSoftmax, Hard, Sampled, StraightThrough, gumbel_noise
from heedful.attention.structured import LinearChain, NormalizedLinearChain, ProjectiveTree, Sigmoid
from tests.attention.cases import Case, per_item
from tests.attention.reference import (
    Scores,
    Weights,
    by_row,
    entmax,
    hard,
    linear_chain,
    monotonic,
    projective_tree,
    reference_attention,
    reference_scores,
    sigmoid,
    softmax,
    sparsemax,
)

Oracle = Callable[[Any, Scores, list[list[float]]], Weights]
"""From a normalizer, scores with temperature applied, and its noise [query, key]."""


def _chain(normalizer: LinearChain | NormalizedLinearChain, scores: Scores, _: Weights) -> Weights:
    settings = [
        None if each is None else each.tolist() for each in (normalizer.transition, normalizer.start, normalizer.stop)
    ]
    zeros = ([[0.0] * 2] * 2, [0.0] * 2, [0.0] * 2)
    transition, start, stop = (zero if given is None else given for given, zero in zip(settings, zeros, strict=True))
    return by_row(partial(linear_chain, transition=transition, start=start, stop=stop))(scores)


def _normalized_chain(normalizer: NormalizedLinearChain, scores: Scores, _: Weights) -> Weights:
    rows = _chain(normalizer, scores, _)
    return [[weight / (sum(row) or 1.0) for weight in row] for row in rows]


def _noisy(scores: Scores, noise: Weights, factor: float = 1.0) -> Scores:
    rows = zip(scores, noise, strict=True)
    return [[None if s is None else s + n * factor for s, n in zip(*row, strict=True)] for row in rows]


def _drawn(_: Normalizer, scores: Scores, noise: Weights) -> Weights:
    return by_row(hard)(_noisy(scores, noise))


def _monotonic(normalizer: Monotonic, scores: Scores, noise: Weights) -> Weights:
    # Gumbel noise is made of 1 - u, where normal noise is made of u.
    normal = [[-NormalDist().inv_cdf(math.exp(-math.exp(-each))) for each in row] for row in noise]
    probabilities = by_row(sigmoid)(_noisy(scores, normal, normalizer.noise))
    return monotonic(_hidden_like(scores, probabilities))


def _hard_monotonic(_: HardMonotonic, scores: Scores, noise: Weights) -> Weights:
    return monotonic([[None if score is None else float(score > 0.0) for score in row] for row in scores])


def _hidden_like(scores: Scores, weights: Weights) -> Scores:
    rows = zip(scores, weights, strict=True)
    return [[None if s is None else w for s, w in zip(*row, strict=True)] for row in rows]


def _relaxed(normalizer: GumbelSoftmax, scores: Scores, noise: Weights) -> Weights:
    return by_row(softmax)(_noisy(scores, noise, 1.0 / float(normalizer.temperature)))


ORACLES: Mapping[type[Normalizer], Oracle] = {
    Softmax: lambda _, scores, noise: by_row(softmax)(scores),
    Sparsemax: lambda _, scores, noise: by_row(sparsemax)(scores),
    Entmax: lambda normalizer, scores, noise: by_row(partial(entmax, alpha=float(normalizer.alpha)))(scores),
    Hard: lambda _, scores, noise: by_row(hard)(scores),
    Sampled: _drawn,
    StraightThrough: _drawn,
    GumbelSoftmax: _relaxed,
    Sigmoid: lambda _, scores, noise: by_row(sigmoid)(scores),
    LinearChain: _chain,
    NormalizedLinearChain: _normalized_chain,
    Monotonic: _monotonic,
    HardMonotonic: _hard_monotonic,
    ProjectiveTree: lambda _, scores, noise: projective_tree(scores),
}


def oracle(case: Case) -> tuple[Tensor, Tensor]:
    """Contexts [*leading, query, value_size] and weights [*leading, query, key]."""
    leading, num_queries = case.query.shape[:-2], case.query.shape[-2]
    factors = [None] * prod(leading) if case.factors is None else [each.tolist() for each in per_item(case.factors)]
    results: list[tuple[Tensor, Tensor]] = []
    items = zip(lowered(case), per_item(case.value.detach()), per_item(case.allowed), factors, strict=True)
    for number, (pairs, value, allowed, table) in enumerate(items):
        normalize = partial(ORACLES[type(case.normalizer)], case.normalizer)
        noise = noise_of(case, number)
        results.append(
            reference_attention(pairs, value, lambda scores, f=normalize, n=noise: f(scores, n), allowed, table)
        )
    context, weights = (torch.stack(parts) for parts in zip(*results, strict=True))
    return context.reshape(*leading, *context.shape[1:]), weights.reshape(*leading, num_queries, weights.shape[-1])


def noise_of(case: Case, number: int) -> list[list[float]]:
    """That of one item; rows are numbered through all items."""
    num_queries, num_keys = case.query.shape[-2], case.key.shape[-2]
    if not case.normalizer.is_random:
        return [[0.0] * num_keys] * num_queries
    rows = torch.arange(num_queries) + number * num_queries
    return gumbel_noise(case.normalizer.seed, rows, num_keys, torch.float64).tolist()  # type: ignore[attr-defined]


def lowered(case: Case) -> list[LoweredScore]:
    """The pairs of each item, without leading axes."""
    with torch.no_grad():
        pairs = case.score.lower(case.query, case.score.prepare(case.key), case.normalizer.inverse_temperature)
    queries, keys = per_item(pairs.query), per_item(pairs.key)
    biases = [None] * len(queries)
    if pairs.bias is not None:
        biases = [replace(pairs.bias, query=query) for query in per_item(pairs.bias.query)]
    items = zip(queries, keys, biases, strict=True)
    return [replace(pairs, query=query, key=key, bias=bias) for query, key, bias in items]


def existing(case: Case) -> Tensor:
    """[*leading, query, key] whether a key may be attended and has a score."""
    tables = [[[score is not None for score in row] for row in reference_scores(pairs)] for pairs in lowered(case)]
    return case.allowed & torch.tensor(tables, dtype=torch.bool).reshape(case.allowed.shape)
