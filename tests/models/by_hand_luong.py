"""Luong et al. 2015, written out a second time with NumPy vectors and loops, one sentence at a time."""

from collections.abc import Sequence

import numpy as np

from heedful.models.luong import LuongConfig
from tests.attention.reference import projective_tree
from tests.models.by_hand import Parameters, Vector, gru, lstm, softmax

State = tuple[Vector, ...]


def advance(p: Parameters, cell: str, name: str, x: Vector, state: State, fed: Vector | None = None) -> State:
    """One layer by one input; what is fed enters its gates beside the word."""
    if cell == "lstm":
        return lstm(p, name, x, *state, more=0.0 if fed is None else p["feed_map.weight"] @ fed)
    return (gru(p, name, x, state[0], fed, context_map="feed_map.weight"),)


def read(p: Parameters, cell: str, name: str, inputs: Sequence[Vector], hidden: int) -> list[State]:
    """The states of a layer after each input."""
    state: State = (np.zeros(hidden),) * (2 if cell == "lstm" else 1)
    states: list[State] = []
    for x in inputs:
        state = advance(p, cell, name, x, state)
        states.append(state)
    return states


def encode(p: Parameters, config: LuongConfig, source: Sequence[int]) -> tuple[list[Vector], list[State]]:
    """Source states h_s at the places of their words, and the final state of each layer."""
    places = list(range(len(source)))
    if config.is_source_reversed:
        places = [*reversed(places[:-1]), places[-1]]
    inputs = [p["source_embedding.weight"][source[place]] for place in places]
    ends: list[State] = []
    if config.encoder != "recurrent":
        words = [p["source_embedding.weight"][token] for token in source]
        num_parts = 2 if config.cell == "lstm" else 1
        ends = [(np.zeros(config.hidden_size),) * num_parts for _ in range(config.num_layers)]
        return (words if config.encoder == "words" else beside_heads(p, config, words)), ends
    for layer in range(config.num_layers):
        name, hidden = f"encoder.layers.{layer}", config.hidden_size
        if config.is_bidirectional:
            onward = read(p, config.cell, f"{name}.forward_unit", inputs, hidden // 2)
            back = read(p, config.cell, f"{name}.backward_unit", inputs[::-1], hidden // 2)
            inputs = [np.concatenate((a[0], b[0])) for a, b in zip(onward, reversed(back), strict=True)]
            ends.append(tuple(np.concatenate(both) for both in zip(onward[-1], back[-1], strict=True)))
        else:
            states = read(p, config.cell, name, inputs, hidden)
            inputs = [state[0] for state in states]
            ends.append(states[-1])
    by_place = dict(zip(places, inputs, strict=True))
    return [by_place[place] for place in range(len(source))], ends


def beside_heads(p: Parameters, config: LuongConfig, words: Sequence[Vector]) -> list[Vector]:
    """[x_j; c_j]: each word and its soft head, by a sum over all heads or over all projective trees."""
    half = config.reader_size // 2
    onward = read(p, config.cell, "encoder.reader.forward_unit", words, half)
    back = read(p, config.cell, "encoder.reader.backward_unit", words[::-1], half)
    states = [np.concatenate((a[0], b[0])) for a, b in zip(onward, reversed(back), strict=True)]
    heads = [p["encoder.root"], *states]
    of_word, of_head = p["encoder.score.query_projection.weight"], p["encoder.score.key_projection.weight"]
    theta: list[list[float | None]] = [
        [
            None if i == j + 1 else float(p["encoder.score.vector"] @ np.tanh(of_word @ word + of_head @ head))
            for i, head in enumerate(heads)
        ]
        for j, word in enumerate(states)
    ]
    if config.head_attention.is_bounded:
        theta = [[None if each is None else float(np.tanh(each)) for each in row] for row in theta]
    if config.head_attention.normalizer == "projective_tree":
        weights = projective_tree([[None] * len(heads), *theta])[1:]
    else:
        weights = []
        for row in theta:
            real = [i for i, each in enumerate(row) if each is not None]
            shares = dict(zip(real, softmax([float(row[i] or 0.0) for i in real]), strict=True))
            weights.append([shares.get(i, 0.0) for i in range(len(row))])
    values = [np.zeros_like(words[0]), *words]
    return [
        np.concatenate((word, sum((w * x for w, x in zip(own, values, strict=True)), np.zeros_like(word))))
        for word, own in zip(words, weights, strict=True)
    ]


def score(
    p: Parameters, name: str, query: Vector, key: Vector, place: int, covered: Vector | float = 0.0
) -> float | None:
    """score(h_t, h_s); None where there is none. `covered` is w c_s, which is added to the key or to its map."""
    match name:
        case "dot":
            return float(query @ (key + covered))
        case "scaled_dot":
            return float(query @ key) / np.sqrt(len(query))
        case "general":
            return float(query @ (p["score.weight"] @ key))
        case "concat":
            return float(p["score.vector"] @ np.tanh(p["score.weight"] @ np.concatenate((query, key)) + covered))
        case "additive":
            mapped = p["score.query_projection.weight"] @ query + p["score.key_projection.weight"] @ key
            return float(p["score.vector"] @ np.tanh(mapped))
        case "location":
            return float(p["score.weight"][place] @ query) if place < len(p["score.weight"]) else None
        case _:
            raise ValueError(name)


def align(
    p: Parameters, config: LuongConfig, query: Vector, keys: Sequence[Vector], t: int, coverage: Vector
) -> Vector:
    """a_t over all places of the source, whose weights so far sum to `coverage`."""
    num = len(keys) if config.is_end_attended else len(keys) - 1
    seen = list(range(num))
    centre, width = 0.0, config.attention.half_width
    if config.attention.window == "local-m":
        centre = min(t, num - 1) if config.attention.past_source == "last" else t
    elif config.attention.window == "local-p":
        position = float(p["position_vector"] @ np.tanh(p["position_map.weight"] @ query))
        centre = num / (1.0 + np.exp(-position))
    near = [s for s in seen if centre - width <= s <= centre + width] if config.attention.window != "global" else seen
    w = p["coverage_map"] if config.attention.has_coverage else 0.0
    scores = {s: score(p, config.attention.score, query, keys[s], s, w * coverage[s]) for s in seen}
    summed = [s for s in (near if config.attention.softmax_over == "window" else seen) if scores[s] is not None]
    weights = np.zeros(len(keys))
    if summed:
        for s, weight in zip(summed, softmax([scores[s] for s in summed]), strict=True):  # type: ignore[misc]
            if config.attention.window == "local-p":
                is_cut = config.attention.softmax_over == "cut" and s not in near
                weight = 0.0 if is_cut else weight * np.exp(-((s - centre) ** 2) / (2.0 * (width / 2.0) ** 2))
            weights[s] = weight
    return weights


def luong_logits(
    p: Parameters, config: LuongConfig, source: Sequence[int], target_in: Sequence[int]
) -> tuple[Vector, Vector]:
    """[target, vocabulary] logits and [target, source] weights."""
    keys, states = encode(p, config, source)
    fed = np.zeros(config.hidden_size)
    logits: list[Vector] = []
    weights: list[Vector] = []
    for t, token in enumerate(target_in):
        x = p["target_embedding.weight"][token]
        for layer in range(config.num_layers):
            is_fed = layer == 0 and config.has_feeding
            states[layer] = advance(
                p, config.cell, f"decoder.layers.{layer}", x, states[layer], fed if is_fed else None
            )
            x = states[layer][0]
        alpha = align(p, config, x, keys, t, sum(weights, np.zeros(len(keys))))
        context = sum((a * h for a, h in zip(alpha, keys, strict=True)), np.zeros(config.annotation_size))
        fed = np.tanh(p["combine.weight"] @ np.concatenate((context, x)))
        logits.append(p["output.weight"] @ fed + (p["output.bias"] if config.output_bias else 0.0))
        weights.append(alpha)
    return np.stack(logits), np.stack(weights)
