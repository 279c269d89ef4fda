"""Captioning models of the papers a second time, with NumPy vectors and loops, one image at a time."""

from collections.abc import Callable, Sequence
from itertools import groupby, product

import numpy as np

from tests.models.by_hand import (
    Parameters,
    Vector,
    alignment,
    embed,
    feedforward,
    head_weights,
    layer_norm,
    lstm,
    multihead,
    sigmoid,
)


def region_annotations(p: Parameters, features: Sequence[Vector], name: str = "encoder.inner") -> list[Vector]:
    """Annotation vectors of precomputed features: a linear map, normalised."""
    weight, bias = p[f"{name}.map.weight"], p[f"{name}.map.bias"]
    return [layer_norm(p, f"{name}.norm", weight @ each + bias) for each in features]


def region_context(
    p: Parameters, prefix: str, vectors: Sequence[Vector], num_layers: int, has_order: bool = True
) -> list[Vector]:
    """Layers of Vaswani et al. 2017 over regions, normalised before each sub-layer, with the sinusoids of their order.

    Four heads.
    """
    if has_order:
        vectors = embed(np.stack(vectors) / np.sqrt(len(vectors[0])), range(len(vectors)))
    for layer in range(num_layers):
        name = f"{prefix}layers.{layer}"
        inner = [layer_norm(p, f"{name}.around_attention.norm", x) for x in vectors]
        mapped = multihead(p, f"{name}.self_attention", inner, inner, num_heads=4, causal=False)
        vectors = [x + y for x, y in zip(vectors, mapped, strict=True)]
        inner = [layer_norm(p, f"{name}.around_feedforward.norm", x) for x in vectors]
        vectors = [x + feedforward(p, f"{name}.feedforward", y) for x, y in zip(vectors, inner, strict=True)]
    return [layer_norm(p, f"{prefix}norm", x) for x in vectors]


def row_context(
    p: Parameters, prefix: str, vectors: Sequence[Vector], num_layers: int, num_columns: int
) -> list[Vector]:
    """LSTMs of both directions over each row of regions, whose states side by side are the inputs of the next layer."""
    outputs: list[Vector] = []
    for start in range(0, len(vectors), num_columns):
        row = [*vectors[start : start + num_columns]]
        for layer in range(num_layers):
            states: dict[str, list[Vector]] = {}
            for direction, inputs in (("forward", row), ("backward", row[::-1])):
                h = c = np.zeros(len(row[0]) // 2)
                states[direction] = []
                for x in inputs:
                    h, c = lstm(p, f"{prefix}stack.layers.{layer}.{direction}_unit", x, h, c)
                    states[direction].append(h)
            both = zip(states["forward"], states["backward"][::-1], strict=True)
            row = [np.concatenate(pair) for pair in both]
        outputs += row
    return outputs


def summed_over_paths(scores: np.ndarray, target: list[int]) -> float:
    """Graves et al. 2006, eq. 3: log of a sum over all paths; neighbours that are equal are one; 0 is blank."""
    log_probs = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    total = 0.0
    for path in product(range(scores.shape[1]), repeat=len(scores)):
        if [token for token, _ in groupby(path) if token] == target:
            total += float(np.exp(sum(log_probs[position, token] for position, token in enumerate(path))))
    return float(np.log(total))


Stride = int | tuple[int, int]
"""Step of a convolution, or those down and across."""


def picture_annotations(
    p: Parameters, pixels: np.ndarray, strides: Sequence[Stride], name: str = "encoder.inner"
) -> list[Vector]:
    """Annotation vectors of [channel, row, column] pixels: 3 x 3 convolutions, norms of 8 groups, relu, shortcuts."""
    maps = (pixels.astype(np.float64) - 127.5) / 127.5
    for block, stride in enumerate(strides):
        weight = p[f"{name}.blocks.{block}.convolution.weight"]
        outputs = convolved(maps, weight, stride)
        outputs = group_norm(outputs, *(p[f"{name}.blocks.{block}.norm.{part}"] for part in ("weight", "bias")))
        outputs = np.maximum(outputs, 0.0)
        maps = outputs + maps if stride in (1, (1, 1)) and outputs.shape == maps.shape else outputs
    annotations: list[Vector] = []
    for row in range(maps.shape[1]):
        for column in range(maps.shape[2]):
            place = p[f"{name}.positions.weight"][len(annotations)]
            annotations.append(p[f"{name}.leave.weight"] @ maps[:, row, column] + p[f"{name}.leave.bias"] + place)
    return annotations


def convolved(maps: np.ndarray, weight: np.ndarray, stride: Stride) -> np.ndarray:
    """y[o, r, c] = sum over i, dr, dc of w[o, i, dr, dc] x[i, r s + dr - 1, c t + dc - 1], zeros beyond the edge."""
    size, channels, height, width = len(weight), *maps.shape
    down, across = stride if isinstance(stride, tuple) else (stride, stride)
    rows, columns = (height - 1) // down + 1, (width - 1) // across + 1
    outputs = np.zeros((size, rows, columns))
    for r in range(rows):
        for c in range(columns):
            for dr in range(3):
                for dc in range(3):
                    row, column = r * down + dr - 1, c * across + dc - 1
                    if 0 <= row < height and 0 <= column < width:
                        for i in range(channels):
                            outputs[:, r, c] += weight[:, i, dr, dc] * maps[i, row, column]
    return outputs


def group_norm(maps: np.ndarray, weight: Vector, bias: Vector) -> np.ndarray:
    """Wu and He 2018, eq. 1, 2 and 6, with 8 groups of channels."""
    outputs = np.empty_like(maps)
    each = len(maps) // 8
    for group in range(8):
        channels = range(group * each, (group + 1) * each)
        values = np.concatenate([maps[channel].ravel() for channel in channels])
        deviation = np.sqrt(((values - values.mean()) ** 2).mean() + 1e-5)
        for channel in channels:
            outputs[channel] = weight[channel] * (maps[channel] - values.mean()) / deviation + bias[channel]
    return outputs


def show_attend_tell(
    p: Parameters, annotations: Sequence[Vector], target_in: Sequence[int], has_gate: bool = True
) -> tuple[Vector, Vector]:
    """Xu et al. 2015, eq. 1-7, 13 and section 4.2.1: logits [target, word], weights alpha [target, region]."""
    mean = sum(annotations) / len(annotations)
    h = np.tanh(p["initial_hidden.weight"] @ mean + p["initial_hidden.bias"])
    c = np.tanh(p["initial_cell.weight"] @ mean + p["initial_cell.bias"])
    logits: list[Vector] = []
    weights: list[Vector] = []
    for word in target_in:
        y = p["target_embedding.weight"][word]
        alpha = alignment(p, h, annotations)
        z = np.zeros_like(annotations[0])
        for share, a in zip(alpha, annotations, strict=True):
            z = z + share * a
        if has_gate:
            z = sigmoid(p["gate.weight"] @ h + p["gate.bias"])[0] * z
        h, c = lstm(p, "decoder", y, h, c, p["context_map.weight"] @ z)
        inner = y + p["hidden_readout.weight"] @ h + p["hidden_readout.bias"] + p["context_readout.weight"] @ z
        logits.append(p["output.weight"] @ inner + p["output.bias"])
        weights.append(alpha)
    return np.stack(logits), np.stack(weights)


def doubly_stochastic(weights: Vector) -> float:
    """Xu et al. 2015, eq. 14, without lambda, for the [target, region] weights of one caption."""
    total = 0.0
    for i in range(weights.shape[1]):
        total += (1.0 - sum(float(weights[t, i]) for t in range(weights.shape[0]))) ** 2
    return total


Sublayer = Callable[[Sequence[Vector]], Sequence[Vector]]


def around(p: Parameters, name: str, vectors: Sequence[Vector], sublayer: Sublayer, is_pre: bool) -> list[Vector]:
    """LayerNorm(x + Sublayer(x)), Vaswani et al. 2017, section 3.1; or x + Sublayer(LayerNorm(x))."""
    if is_pre:
        outputs = sublayer([layer_norm(p, f"{name}.norm", x) for x in vectors])
        return [x + y for x, y in zip(vectors, outputs, strict=True)]
    return [layer_norm(p, f"{name}.norm", x + y) for x, y in zip(vectors, sublayer(vectors), strict=True)]


def image_transformer(
    p: Parameters,
    annotations: Sequence[Vector],
    target_in: Sequence[int],
    num_layers: tuple[int, int],
    num_heads: int,
    is_pre: bool,
    has_order: bool = False,
    is_causal: bool = True,
) -> tuple[Vector, Vector]:
    """Vaswani et al. 2017, section 3, with regions in the place of source words and one table for words and output.

    Logits [target, word], and weights [head, target, region] over the regions, the mean of the last two layers.
    Regions have no order, unless `has_order` adds sinusoids.
    """
    table = p["source_embedding.weight"]
    memory = embed(np.stack(annotations) / np.sqrt(table.shape[1]), range(len(annotations)))
    memory = memory if has_order else [*annotations]
    memory = encoded_regions(p, memory, num_layers[0], num_heads, is_pre)
    vectors = embed(table, target_in)
    weights = np.zeros((num_layers[1], num_heads, len(target_in), len(annotations)))
    for layer in range(num_layers[1]):
        name = f"decoder_layers.{layer}"

        def attend_self(x: Sequence[Vector], name: str = name) -> Sequence[Vector]:
            return multihead(p, f"{name}.self_attention", x, x, num_heads, is_causal)

        def attend_regions(x: Sequence[Vector], name: str = name, layer: int = layer) -> Sequence[Vector]:
            for place, query in enumerate(x):
                for head, alpha in enumerate(head_weights(p, f"{name}.cross_attention", query, memory, num_heads)):
                    weights[layer, head, place] = alpha
            return multihead(p, f"{name}.cross_attention", x, memory, num_heads, causal=False)

        vectors = around(p, f"{name}.around_self", vectors, attend_self, is_pre)
        vectors = around(p, f"{name}.around_cross", vectors, attend_regions, is_pre)
        vectors = fed_forward(p, name, vectors, is_pre)
    if is_pre:
        vectors = [layer_norm(p, "decoder_norm", x) for x in vectors]
    bias = p.get("output.bias", np.zeros(len(table)))
    return np.stack([table @ x + bias for x in vectors]), weights[-2:].mean(axis=0)


def encoded_regions(
    p: Parameters, vectors: Sequence[Vector], num_layers: int, num_heads: int, is_pre: bool
) -> list[Vector]:
    """Encoder of `image_transformer`."""
    memory = [*vectors]
    for layer in range(num_layers):
        name = f"encoder_layers.{layer}"

        def attend(x: Sequence[Vector], name: str = name) -> Sequence[Vector]:
            return multihead(p, f"{name}.self_attention", x, x, num_heads, causal=False)

        memory = around(p, f"{name}.around_attention", memory, attend, is_pre)
        memory = fed_forward(p, name, memory, is_pre)
    return [layer_norm(p, "encoder_norm", x) for x in memory] if is_pre else memory


def fed_forward(p: Parameters, name: str, vectors: Sequence[Vector], is_pre: bool) -> list[Vector]:
    """Vaswani et al. 2017, eq. 2."""

    def feed(inputs: Sequence[Vector]) -> Sequence[Vector]:
        return [feedforward(p, f"{name}.feedforward", x) for x in inputs]

    return around(p, f"{name}.around_feedforward", vectors, feed, is_pre)
