"""The papers' equations, written out a second time with NumPy vectors and loops, one sentence at a time."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

Vector = np.ndarray
Parameters = Mapping[str, np.ndarray]


def with_one_changed(p: Parameters) -> Iterator[tuple[str, Parameters]]:
    """Each name, and the parameters of which this one has other values: a comparison has to see all of them."""
    generator = np.random.default_rng(0)
    for name, parameter in p.items():
        yield name, {**p, name: parameter + 0.1 * generator.normal(size=parameter.shape)}


def sigmoid(x: Vector) -> Vector:
    return 1.0 / (1.0 + np.exp(-x))


def softmax(scores: Sequence[float]) -> Vector:
    exponentials = [np.exp(score - max(scores)) for score in scores]
    return np.array(exponentials) / sum(exponentials)


def gru(
    p: Parameters,
    name: str,
    x: Vector,
    state: Vector,
    context: Vector | None = None,
    reset_at: str = "before",
    context_map: str = "context_map.weight",
) -> Vector:
    """Bahdanau et al. 2015, A.1.1 and A.1.2: the reset gate acts on the state before its map.

    "after": on the state after its map; "with_context": on that and the context, Cho et al. 2014, appendix A.1.2.
    """
    w_update, w_reset, w = np.split(p[f"{name}.input_map.weight"], 3)
    b_update, b_reset, b = np.split(p[f"{name}.input_map.bias"], 3)
    u_update, u_reset = np.split(p[f"{name}.gates_map"], 2)
    u = p[f"{name}.candidate_map"]
    of_context = [np.zeros_like(state)] * 3
    if context is not None:
        of_context = [part @ context for part in np.split(p[context_map], 3)]
    update = sigmoid(w_update @ x + u_update @ state + of_context[0] + b_update)
    reset = sigmoid(w_reset @ x + u_reset @ state + of_context[1] + b_reset)
    if reset_at == "before":
        candidate = np.tanh(w @ x + u @ (reset * state) + of_context[2] + b)
    elif reset_at == "after":
        candidate = np.tanh(w @ x + reset * (u @ state) + of_context[2] + b)
    else:
        candidate = np.tanh(w @ x + reset * (u @ state + of_context[2]) + b)
    return (1 - update) * state + update * candidate


def lstm(
    p: Parameters, name: str, x: Vector, state: Vector, cell: Vector, more: Vector | float = 0.0
) -> tuple[Vector, Vector]:
    """Zaremba et al. 2014, section 3; `more` is what else feeds the gates."""
    pre = p[f"{name}.input_map.weight"] @ x + p[f"{name}.gates_map"] @ state + p[f"{name}.input_map.bias"] + more
    add, keep, candidate, output = np.split(pre, 4)
    cell = sigmoid(keep) * cell + sigmoid(add) * np.tanh(candidate)
    return sigmoid(output) * np.tanh(cell), cell


def maxout(vector: Vector) -> Vector:
    return np.array([max(vector[2 * j], vector[2 * j + 1]) for j in range(len(vector) // 2)])


def rnnsearch_annotations(p: Parameters, source: Sequence[int]) -> tuple[list[Vector], Vector]:
    """h_j, and the state that the backward unit ends in."""
    hidden = p["encoder.forward_unit.candidate_map"].shape[0]
    embedded = [p["source_embedding.weight"][token] for token in source]
    onward: list[Vector] = []
    state = np.zeros(hidden)
    for x in embedded:
        state = gru(p, "encoder.forward_unit", x, state)
        onward.append(state)
    back: list[Vector] = []
    state = np.zeros(hidden)
    for x in reversed(embedded):
        state = gru(p, "encoder.backward_unit", x, state)
        back.insert(0, state)
    return [np.concatenate(both) for both in zip(onward, back, strict=True)], back[0]


def rnnsearch_logits(p: Parameters, source: Sequence[int], target_in: Sequence[int]) -> tuple[Vector, Vector]:
    """[target, vocabulary] logits and [target, source] weights, with the maxout readout and s_0 from h<-_1."""
    annotations, last = rnnsearch_annotations(p, source)
    state = np.tanh(p["initial.weight"] @ last + p["initial.bias"])
    coverage = alpha = np.zeros(len(source))
    logits: list[Vector] = []
    weights: list[Vector] = []
    for token in target_in:
        y = p["target_embedding.weight"][token]
        alpha = alignment(p, state, annotations, coverage, alpha)
        coverage = coverage + alpha
        context = sum(a * h for a, h in zip(alpha, annotations, strict=True))
        t = maxout(p["readout.weight"] @ np.concatenate([state, y, context]) + p["readout.bias"])
        logits.append(p["output.weight"] @ t + p["output.bias"])
        weights.append(alpha)
        state = gru(p, "decoder", y, state, context)
    return np.stack(logits), np.stack(weights)


def alignment(
    p: Parameters, state: Vector, keys: Sequence[Vector], coverage: Vector | None = None, before: Vector | None = None
) -> Vector:
    """Softmax of v_a . tanh(W_a s + U_a h_j), or with w c_j inside, as in See et al. 2017, eq. 11, and with U f_j, the
    filters over the weights before, as in Chorowski et al. 2015, eq. 8 and 9."""
    of_query = p["score.query_projection.weight"] @ state
    scores: list[float] = []
    for j, h in enumerate(keys):
        inner = of_query + p["score.key_projection.weight"] @ h
        if coverage is not None and "coverage_map" in p:
            inner = inner + p["coverage_map"] * coverage[j]
        if before is not None and "location.map.weight" in p:
            filters = p["location.filters.weight"][:, 0]
            half = filters.shape[1] // 2
            seen = [before[i] if 0 <= i < len(before) else 0.0 for i in range(j - half, j + half + 1)]
            inner = inner + p["location.map.weight"] @ (filters @ np.array(seen))
        scores.append(float(p["score.vector"] @ np.tanh(inner)))
    return softmax(scores)


def conditional_logits(p: Parameters, source: Sequence[int], target_in: Sequence[int]) -> tuple[Vector, Vector]:
    """Sennrich et al. 2017, section 4: s' = GRU1(y, s), c = attention of s', s = GRU2(c, s'), readout of the new s.

    s_0 is made from the mean of the annotations.
    """
    annotations, _ = rnnsearch_annotations(p, source)
    state = np.tanh(p["initial.weight"] @ (sum(annotations) / len(annotations)) + p["initial.bias"])
    logits: list[Vector] = []
    weights: list[Vector] = []
    for token in target_in:
        y = p["target_embedding.weight"][token]
        between = gru(p, "decoder", y, state)
        alpha = alignment(p, between, annotations)
        context = sum(a * h for a, h in zip(alpha, annotations, strict=True))
        state = gru(p, "second", context, between)
        t = maxout(p["readout.weight"] @ np.concatenate([state, y, context]) + p["readout.bias"])
        logits.append(p["output.weight"] @ t + p["output.bias"])
        weights.append(alpha)
    return np.stack(logits), np.stack(weights)


def convolved(p: Parameters, name: str, vectors: Sequence[Vector], width: int) -> list[Vector]:
    """Gehring et al. 2017, section 3.2: a gated convolution with its residual, halved in variance."""
    size = len(vectors[0])
    outputs: list[Vector] = []
    for place, vector in enumerate(vectors):
        total = p[f"{name}.bias"].copy()
        for offset in range(-(width // 2), width // 2 + 1):
            if 0 <= place + offset < len(vectors):
                block = (offset + width // 2) * size
                total += p[f"{name}.weight"][:, block : block + size] @ vectors[place + offset]
        linear, gate = np.split(total, 2)
        outputs.append((linear * sigmoid(gate) + vector) * np.sqrt(0.5))
    return outputs


def convolutional_encoder(
    p: Parameters, prefix: str, embedded: Sequence[Vector], num_layers: int, width: int
) -> tuple[list[Vector], list[Vector]]:
    """Keys z_j and values (z_j + e_j) / sqrt(2); Gehring et al. 2017, sections 3.1 to 3.3."""
    placed = [x + p[f"{prefix}positions.weight"][place] for place, x in enumerate(embedded)]
    vectors = [p[f"{prefix}enter.weight"] @ x + p[f"{prefix}enter.bias"] for x in placed]
    for layer in range(num_layers):
        vectors = convolved(p, f"{prefix}layers.{layer}", vectors, width)
    keys = [p[f"{prefix}leave.weight"] @ x + p[f"{prefix}leave.bias"] for x in vectors]
    return keys, [(z + e) * np.sqrt(0.5) for z, e in zip(keys, placed, strict=True)]


def layer_norm(p: Parameters, name: str, x: Vector) -> Vector:
    mean = x.mean()
    variance = ((x - mean) ** 2).mean()
    return p[f"{name}.weight"] * (x - mean) / np.sqrt(variance + 1e-5) + p[f"{name}.bias"]


def multihead(
    p: Parameters, name: str, queries: Sequence[Vector], memory: Sequence[Vector], num_heads: int, causal: bool
):
    """Vaswani et al. 2017, section 3.2.2."""
    depth = len(queries[0]) // num_heads
    w_value, b_value = (np.split(p[f"{name}.in_proj_{part}"], 3)[2] for part in ("weight", "bias"))
    outputs: list[Vector] = []
    for place, x in enumerate(queries):
        visible = memory[: place + 1] if causal else memory
        heads: list[Vector] = []
        for head, alpha in enumerate(head_weights(p, name, x, visible, num_heads)):
            rows = slice(head * depth, (head + 1) * depth)
            values = [w_value[rows] @ m + b_value[rows] for m in visible]
            heads.append(sum(a * value for a, value in zip(alpha, values, strict=True)))
        outputs.append(p[f"{name}.out_proj.weight"] @ np.concatenate(heads) + p[f"{name}.out_proj.bias"])
    return outputs


def head_weights(p: Parameters, name: str, x: Vector, visible: Sequence[Vector], num_heads: int) -> list[Vector]:
    """Weights of one query in each head."""
    depth = len(x) // num_heads
    w_query, w_key, _ = np.split(p[f"{name}.in_proj_weight"], 3)
    b_query, b_key, _ = np.split(p[f"{name}.in_proj_bias"], 3)
    weights: list[Vector] = []
    for head in range(num_heads):
        rows = slice(head * depth, (head + 1) * depth)
        query = w_query[rows] @ x + b_query[rows]
        keys = [w_key[rows] @ m + b_key[rows] for m in visible]
        weights.append(softmax([float(query @ key) / np.sqrt(depth) for key in keys]))
    return weights


def feedforward(p: Parameters, name: str, x: Vector) -> Vector:
    hidden = np.maximum(0.0, p[f"{name}.inner.weight"] @ x + p[f"{name}.inner.bias"])
    return p[f"{name}.outer.weight"] @ hidden + p[f"{name}.outer.bias"]


def embed(table: np.ndarray, tokens: Sequence[int]) -> list[Vector]:
    size = table.shape[1]
    vectors: list[Vector] = []
    for position, token in enumerate(tokens):
        code = np.empty(size)
        for i in range(0, size, 2):
            code[i] = np.sin(position / 10_000 ** (i / size))
            code[i + 1] = np.cos(position / 10_000 ** (i / size))
        vectors.append(table[token] * np.sqrt(size) + code)
    return vectors


def transformer_logits(p: Parameters, source: Sequence[int], target_in: Sequence[int], num_heads: int) -> Vector:
    """[target, vocabulary] logits of a post-norm model of one layer on either side, all three weights tied."""
    table = p["source_embedding.weight"]
    name = "encoder_layers.0"
    vectors = embed(table, source)
    mapped = multihead(p, f"{name}.self_attention", vectors, vectors, num_heads, causal=False)
    vectors = [layer_norm(p, f"{name}.around_attention.norm", x + y) for x, y in zip(vectors, mapped, strict=True)]
    memory = [
        layer_norm(p, f"{name}.around_feedforward.norm", x + feedforward(p, f"{name}.feedforward", x)) for x in vectors
    ]
    name = "decoder_layers.0"
    vectors = embed(table, target_in)
    mapped = multihead(p, f"{name}.self_attention", vectors, vectors, num_heads, causal=True)
    vectors = [layer_norm(p, f"{name}.around_self.norm", x + y) for x, y in zip(vectors, mapped, strict=True)]
    mapped = multihead(p, f"{name}.cross_attention", vectors, memory, num_heads, causal=False)
    vectors = [layer_norm(p, f"{name}.around_cross.norm", x + y) for x, y in zip(vectors, mapped, strict=True)]
    features = [
        layer_norm(p, f"{name}.around_feedforward.norm", x + feedforward(p, f"{name}.feedforward", x)) for x in vectors
    ]
    return np.stack([table @ feature for feature in features])
