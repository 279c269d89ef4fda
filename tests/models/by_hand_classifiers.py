"""Classifiers of the papers a second time, with NumPy vectors and loops, one text at a time."""

from collections.abc import Callable, Sequence
from itertools import product

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
    states = both_ways(p, f"{name}.encoder", items, reset_at="after")
    if pooling == "average":
        return np.mean(states, axis=0), np.full(len(states), 1 / len(states))
    if pooling == "max":
        return np.array([max(state[j] for state in states) for j in range(len(states[0]))]), np.zeros(len(states))
    return pooled(p, f"{name}.attention", states)


def both_ways(p: Parameters, name: str, items: Sequence[Vector], reset_at: str) -> list[Vector]:
    """States of gated units that read forward and backward; Yang et al. 2016, eq. 1-4, have their reset "after"."""
    hidden = p[f"{name}.forward_unit.candidate_map"].shape[0]
    onward: list[Vector] = []
    back: list[Vector] = []
    state = np.zeros(hidden)
    for x in items:
        state = gru(p, f"{name}.forward_unit", x, state, reset_at=reset_at)
        onward.append(state)
    state = np.zeros(hidden)
    for x in reversed(items):
        state = gru(p, f"{name}.backward_unit", x, state, reset_at=reset_at)
        back.insert(0, state)
    return [np.concatenate(both) for both in zip(onward, back, strict=True)]


def pooled(p: Parameters, name: str, states: Sequence[Vector]) -> tuple[Vector, Vector]:
    """Yang et al. 2016, eq. 5-7: sum of the states, weighted by one learned query, and the weights."""
    w, b = (p[f"{name}.score.key_projection.{part}"] for part in ("weight", "bias"))
    query = p[f"{name}.queries"][0]
    weights = softmax([float(np.tanh(w @ h + b) @ query) for h in states])
    return np.sum([weight * h for weight, h in zip(weights, states, strict=True)], axis=0), weights


def bag_logits(p: Parameters, words: Sequence[int], num_words: int = 0) -> Vector:
    """Joulin et al. 2016, section 2: scores of a linear classifier of the mean of embeddings.

    `num_words` is another divisor than the number of words.
    """
    total = np.zeros(p["embedding.weight"].shape[1])
    for word in words:
        total = total + p["embedding.weight"][word]
    return p["output.weight"] @ (total / (num_words or len(words))) + p["output.bias"]


def gru_logits(
    p: Parameters, words: Sequence[int], num_layers: int, reset_at: str = "before", is_attentive: bool = True
) -> tuple[Vector, Vector]:
    """Yang et al. 2016, eq. 5-7, over the units of Bahdanau et al. 2015: scores and weights.

    Not `is_attentive`: with the mean of the states.
    """
    states = [p["embedding.weight"][word] for word in words]
    for layer in range(num_layers):
        states = both_ways(p, f"encoder.layers.{layer}", states, reset_at)
    vector, weights = pooled(p, "attention", states)
    if not is_attentive:
        vector = sum(states) / len(states)
    return p["output.weight"] @ vector + p["output.bias"], weights


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


def story_text(p: Parameters, name: str, words: Sequence[int], has_positions: bool) -> Vector:
    """Sukhbaatar et al. 2015, section 4.1: sum_j l_j * E x_j, l_kj = (1 - j/J) - (k/d)(1 - 2j/J)."""
    table = p[f"{name}.embedding.weight"]
    size = table.shape[1]
    total = np.zeros(size)
    for j, word in enumerate(words, start=1):
        for k in range(1, size + 1):
            share = j / len(words)
            total[k - 1] += table[word][k - 1] * ((1 - share) - k / size * (1 - 2 * share) if has_positions else 1.0)
    return total


def story_memory(p: Parameters, index: int, facts: Sequence[Sequence[int]], has_positions: bool) -> list[Vector]:
    """The sum of the words of each fact, newest first, and the vector of its age."""
    ages = p[f"memories.{index}.ages"]
    return [
        story_text(p, f"memories.{index}.text", fact, has_positions) + ages[min(age, len(ages) - 1)]
        for age, fact in enumerate(facts)
    ]


def memory_network(
    p: Parameters,
    question: Sequence[int],
    facts: Sequence[Sequence[int]],
    num_steps: int,
    tying: str = "adjacent",
    weigh: Callable[[list[float]], Vector] = softmax,
    has_positions: bool = True,
) -> tuple[Vector, list[Vector]]:
    """Sukhbaatar et al. 2015, eq. 1-3 and section 2.2: log probabilities, and the weights of each step."""
    is_adjacent = tying == "adjacent"
    u = story_text(p, "memories.0.text" if is_adjacent else "question", question, has_positions)
    weights: list[Vector] = []
    for k in range(num_steps):
        m = story_memory(p, k if is_adjacent else 0, facts, has_positions)
        c = story_memory(p, k + 1 if is_adjacent else 1, facts, has_positions)
        own = weigh([float(u @ x) for x in m])
        o = sum((weight * x for weight, x in zip(own, c, strict=True)), np.zeros(len(u)))
        u = (u if is_adjacent else p["update.weight"] @ u) + o
        weights.append(own)
    return np.log(softmax((p["output.weight"] @ u + p["output.bias"]).tolist())), weights


def chained_memory_network(
    p: Parameters, question: Sequence[int], facts: Sequence[Sequence[int]], num_steps: int, is_binary: bool
) -> tuple[Vector, list[Vector]]:
    """Kim et al. 2017, section 4.3: the sum over all sequences of facts, one for each step."""
    q = [story_text(p, f"memories.{k}.text", question, True) for k in range(num_steps)]
    m = [story_memory(p, k, facts, True) for k in range(num_steps)]
    scores: dict[tuple[int, ...], float] = {}
    for z in product(range(len(facts)), repeat=num_steps):
        scores[z] = sum(float(q[k] @ m[k][z[k]]) for k in range(num_steps))
        if is_binary:
            scores[z] += sum(float(m[k][z[k]] @ m[k + 1][z[k + 1]]) for k in range(num_steps - 1))
    total = sum(np.exp(score) for score in scores.values())
    weights = [np.zeros(len(facts)) for _ in range(num_steps)]
    for z, score in scores.items():
        for k in range(num_steps):
            weights[k][z[k]] += np.exp(score) / total
    context = sum(
        weights[k][i] * x for k in range(num_steps) for i, x in enumerate(story_memory(p, k + 1, facts, True))
    )
    return np.log(softmax((p["output.weight"] @ (q[0] + context) + p["output.bias"]).tolist())), weights
