"""Cho et al. 2014 and Sutskever et al. 2014, written out a second time with NumPy vectors and loops."""

from collections.abc import Sequence

import numpy as np

from tests.models.by_hand import Parameters, Vector, gru, lstm, maxout


def sutskever_logits(
    p: Parameters, num_layers: int, is_reversed: bool, source: Sequence[int], target_in: Sequence[int]
) -> Vector:
    """[target, vocabulary] logits: the decoder goes on from the last states of all layers of the encoder."""
    words, end = list(source[:-1]), source[-1]
    hidden = p["decoder.layers.0.gates_map"].shape[1]
    state = [np.zeros(hidden)] * num_layers
    cell = [np.zeros(hidden)] * num_layers

    def read(side: str, token: int) -> Vector:
        x = p[f"{'source' if side == 'encoder' else 'target'}_embedding.weight"][token]
        for layer in range(num_layers):
            state[layer], cell[layer] = lstm(p, f"{side}.layers.{layer}", x, state[layer], cell[layer])
            x = state[layer]
        return x

    for token in [*(reversed(words) if is_reversed else words), end]:
        read("encoder", token)
    return np.stack([p["output.weight"] @ read("decoder", token) + p["output.bias"] for token in target_in])


def cho_logits(p: Parameters, source: Sequence[int], target_in: Sequence[int]) -> Vector:
    """[target, vocabulary] logits: Cho et al. 2014, appendix A, with the roles of z and 1 - z exchanged."""
    state = np.zeros(p["encoder.layers.0.candidate_map"].shape[0])
    for token in source:
        state = gru(p, "encoder.layers.0", p["source_embedding.weight"][token], state)
    context = np.tanh(p["summary.weight"] @ state + p["summary.bias"])
    state = np.tanh(p["initial.weight"] @ context + p["initial.bias"])
    logits: list[Vector] = []
    for token in target_in:
        y = p["target_embedding.weight"][token]
        state = gru(p, "decoder.layers.0", y, state, context, reset_at="with_context")
        s = maxout(p["readout.weight"] @ np.concatenate((state, y, context)) + p["readout.bias"])
        logits.append(p["output.weight"] @ s + p["output.bias"])
    return np.stack(logits)


def rnnencdec_logits(p: Parameters, source: Sequence[int], target_in: Sequence[int]) -> Vector:
    """[target, vocabulary] logits: Bahdanau et al. 2015 with c_i fixed to h->_T, the readout of s_{i-1}."""
    context = np.zeros(p["encoder.layers.0.candidate_map"].shape[0])
    for token in source:
        context = gru(p, "encoder.layers.0", p["source_embedding.weight"][token], context)
    state = np.tanh(p["initial.weight"] @ context + p["initial.bias"])
    logits: list[Vector] = []
    for token in target_in:
        y = p["target_embedding.weight"][token]
        t = maxout(p["readout.weight"] @ np.concatenate((state, y, context)) + p["readout.bias"])
        logits.append(p["output.weight"] @ t + p["output.bias"])
        state = gru(p, "decoder.layers.0", y, state, context)
    return np.stack(logits)


def d2l_logits(p: Parameters, num_layers: int, source: Sequence[int], target_in: Sequence[int]) -> Vector:
    """[target, vocabulary] logits: stacked units that reset after the map, the context beside each word."""
    states = [np.zeros(p["encoder.layers.0.candidate_map"].shape[0])] * num_layers

    def read(side: str, x: Vector, context: Vector | None) -> Vector:
        for layer in range(num_layers):
            added = context if layer == 0 else None
            states[layer] = gru(p, f"{side}.layers.{layer}", x, states[layer], added, reset_at="after")
            x = states[layer]
        return x

    for token in source:
        context = read("encoder", p["source_embedding.weight"][token], None)
    tops = [read("decoder", p["target_embedding.weight"][token], context) for token in target_in]
    return np.stack([p["output.weight"] @ top + p["output.bias"] for top in tops])
