"""The oracle: attention as sums over single numbers, float64, slow on purpose. Fast kernels are held to it."""

import math

import torch
from torch import Tensor

from heedful.attention.pairs import AdditivePairs, Pairs


def reference_softmax_attention(pairs: Pairs, value: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor]:
    """Attend with softmax, one query at a time, without any tensor operation that a kernel might share.

    Args:
        pairs: without leading axes.
        value: [key, value_size].
        allowed: [query, key] bool or None.

    Returns:
        [query, value_size] contexts and [query, key] weights, float64.
    """
    query, key = pairs.query.double().tolist(), pairs.key.double().tolist()
    vector = pairs.vector.double().tolist() if isinstance(pairs, AdditivePairs) else []
    weights = torch.zeros(len(query), len(key), dtype=torch.float64)
    for i, q in enumerate(query):
        places = [j for j in range(len(key)) if allowed is None or bool(allowed[i, j])]
        scores = {j: _score(q, key[j], vector) for j in places}
        largest = max(scores.values(), default=0.0)
        total = math.fsum(math.exp(score - largest) for score in scores.values())
        for j, score in scores.items():
            weights[i, j] = math.exp(score - largest) / total
    values = value.double().tolist()
    context = [
        [math.fsum(float(weights[i, j]) * values[j][d] for j in range(len(key))) for d in range(value.shape[-1])]
        for i in range(len(query))
    ]
    return torch.tensor(context, dtype=torch.float64).reshape(len(query), value.shape[-1]), weights


def _score(query: list[float], key: list[float], vector: list[float]) -> float:
    if vector:
        return math.fsum(v * math.tanh(q + k) for v, q, k in zip(vector, query, key, strict=True))
    return math.fsum(q * k for q, k in zip(query, key, strict=True))
