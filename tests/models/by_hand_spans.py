"""Bidirectional attention flow as its paper prints it, with loops over positions, in NumPy and float64."""

from collections.abc import Sequence

import numpy as np

from tests.models.by_hand import Parameters, Vector, lstm, softmax


def both_ways(p: Parameters, name: str, inputs: Sequence[Vector]) -> list[Vector]:
    """States of an LSTM that reads forward and of one that reads backward."""
    hidden = p[f"{name}.forward_unit.gates_map"].shape[1]
    states: list[list[Vector]] = []
    for unit, vectors in (("forward_unit", inputs), ("backward_unit", inputs[::-1])):
        state, cell = np.zeros(hidden), np.zeros(hidden)
        own: list[Vector] = []
        for x in vectors:
            state, cell = lstm(p, f"{name}.{unit}", x, state, cell)
            own.append(state)
        states.append(own)
    return [np.concatenate(both) for both in zip(states[0], states[1][::-1], strict=True)]


def bidaf(
    p: Parameters, question: Sequence[int], passage: Sequence[int], num_layers: int, has_product: bool = True
) -> tuple[Vector, Vector, Vector]:
    """Seo et al. 2017, eq. 1-4: log p1, log p2 and b; without `has_product`, s_tj lacks the product h_t * u_j."""
    table = p["embedding.weight"]
    u = both_ways(p, "contextual", [table[word] for word in question])
    h = both_ways(p, "contextual", [table[word] for word in passage])
    w = p["score.weight"].reshape(-1)
    s = [
        [float(w @ np.concatenate([one, other, one * other if has_product else 0 * other])) for other in u] for one in h
    ]
    b = softmax([max(row) for row in s])
    shared = sum((weight * one for weight, one in zip(b, h, strict=True)), np.zeros(len(h[0])))
    g: list[Vector] = []
    for one, row in zip(h, s, strict=True):
        a = softmax(row)
        context = sum((weight * other for weight, other in zip(a, u, strict=True)), np.zeros(len(one)))
        g.append(np.concatenate([one, context, one * context, one * shared]))
    m = g
    for layer in range(num_layers):
        m = both_ways(p, f"modelling.{layer}", m)
    ends: list[Vector] = []
    for index, states in enumerate((m, both_ways(p, "ending", m))):
        w = p[f"outputs.{index}.weight"][0]
        scores = [float(w @ np.concatenate(both)) for both in zip(g, states, strict=True)]
        ends.append(np.log(softmax(scores)))
    return ends[0], ends[1], b
