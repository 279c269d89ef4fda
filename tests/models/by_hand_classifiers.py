"""Classifiers of the papers a second time, with NumPy vectors and loops, one text at a time."""

from collections.abc import Sequence

import numpy as np

from tests.models.by_hand import Parameters, Vector, gru, lstm, softmax


def hierarchical_log_probs(
    p: Parameters, pooling: str, document: Sequence[Sequence[int]]
) -> tuple[Vector, list[Vector], Vector]:
    """Yang et al. 2016, eq. 1-11: log probabilities, weights of words in each sentence, weights of sentences."""
    vectors: list[Vector] = []
    word_weights: list[Vector] = []
    for sentence in document:
        vector, weights = level(p, "words", pooling, [p["embedding.weight"][word] for word in sentence])
        vectors.append(vector)
        word_weights.append(weights)
    vector, sentence_weights = level(p, "sentences", pooling, vectors)
    logits = p["output.weight"] @ vector + p["output.bias"]
    return np.log(softmax(logits.tolist())), word_weights, sentence_weights


def level(p: Parameters, name: str, pooling: str, items: Sequence[Vector]) -> tuple[Vector, Vector]:
    hidden = p[f"{name}.encoder.forward_unit.candidate_map"].shape[0]
    onward: list[Vector] = []
    back: list[Vector] = []
    state = np.zeros(hidden)
    for x in items:
        state = gru(p, f"{name}.encoder.forward_unit", x, state, reset_at="after")
        onward.append(state)
    state = np.zeros(hidden)
    for x in reversed(items):
        state = gru(p, f"{name}.encoder.backward_unit", x, state, reset_at="after")
        back.insert(0, state)
    states = [np.concatenate(both) for both in zip(onward, back, strict=True)]
    if pooling == "average":
        return np.mean(states, axis=0), np.full(len(states), 1 / len(states))
    if pooling == "max":
        return np.array([max(state[j] for state in states) for j in range(2 * hidden)]), np.zeros(len(states))
    w, b = (p[f"{name}.attention.score.key_projection.{part}"] for part in ("weight", "bias"))
    query = p[f"{name}.attention.queries"][0]
    weights = softmax([float(np.tanh(w @ h + b) @ query) for h in states])
    return np.sum([weight * h for weight, h in zip(weights, states, strict=True)], axis=0), weights


def self_attentive(p: Parameters, text: Sequence[int]) -> tuple[Vector, Vector, float]:
    """Lin et al. 2017, eq. 1-8: log probabilities, A [hop, word], and the penalty."""
    hidden = p["encoder.layers.0.forward_unit.gates_map"].shape[1]
    embedded = [p["embedding.weight"][word] for word in text]
    states: list[list[Vector]] = []
    for name, words in (("forward_unit", embedded), ("backward_unit", embedded[::-1])):
        state, cell = np.zeros(hidden), np.zeros(hidden)
        own: list[Vector] = []
        for x in words:
            state, cell = lstm(p, f"encoder.layers.0.{name}", x, state, cell)
            own.append(state)
        states.append(own)
    matrix = np.array([np.concatenate(both) for both in zip(states[0], states[1][::-1], strict=True)])
    inner = [np.tanh(p["attention.score.key_projection.weight"] @ h) for h in matrix]
    weights = np.array([softmax([float(query @ u) for u in inner]) for query in p["attention.queries"]])
    rows = (weights @ matrix).reshape(-1)
    overlap = weights @ weights.T - np.eye(len(weights))
    units = np.maximum(0.0, p["hidden.weight"] @ rows + p["hidden.bias"])
    logits = p["output.weight"] @ units + p["output.bias"]
    return np.log(softmax(logits.tolist())), weights, float(sum(x * x for x in overlap.reshape(-1)))
