"""Attention sub-layers of a Transformer, each written as a sum of one vector for each position that it attends to."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import torch
from torch import Tensor, nn

from heedful.inspection.capture import capture
from heedful.inspection.layers import Role
from heedful.layers.multihead import MultiheadAttention
from heedful.layers.residual import Residual
from heedful.models.inputs import inputs_on
from heedful.models.transformer import Transformer
from heedful.search.inputs import InputArrays
from heedful.text.vocabulary import BOS


@final
@dataclass(frozen=True, eq=False)
class AttentionSublayer:
    """Attention of one layer with its residual connection and normalization, for one sentence, in float64."""

    role: Role
    layer: int
    """Index among the layers of its role, from 0, the lowest first."""
    inputs: Tensor
    """[query, size] vectors x_i of the residual connection."""
    output: Tensor
    """[query, size] vectors y_i after the residual connection, and after the normalization where the norm is post."""
    weights: Tensor
    """[head, query, key] attention weights."""
    values: Tensor
    """[head, key, size] vectors f_h(x_j) = W_O^h (W_V^h x_j + b_V^h): what each head adds for a weight of 1."""
    residual: Residual
    output_bias: Tensor
    """[size] bias b_O of the output projection."""

    def contributions(self) -> tuple[Tensor, Tensor, Tensor]:
        """Write each output as a sum: y_i = sum_j T_i(x_j) + R_i + bias, exactly.

        With L the linear part of the normalization of y_i where the norm is post, and the identity where it is pre:
        T_i(x_j) = L(sum_h weights[h, i, j] f_h(x_j)), R_i = L(x_i). Ferrando et al. 2022, arXiv:2203.04212, eq. 9.

        Returns:
            T [query, key, size], R [query, size], and the bias [size] or [query, size].
        """
        attended = torch.einsum("hqk,hks->qks", self.weights, self.values)
        if self.residual.order == "pre":
            return attended, self.inputs, self.output_bias
        norm = self.residual.norm
        total = self.inputs + attended.sum(dim=1) + self.output_bias
        deviation = (total.var(dim=-1, correction=0) + norm.eps).sqrt()
        weight, shift = norm.weight.detach().double(), norm.bias.detach().double()

        def linear(vectors: Tensor, deviation: Tensor) -> Tensor:
            return (vectors - vectors.mean(dim=-1, keepdim=True)) * weight / deviation[..., None]

        # The bias of the output projection is scaled by the deviation of each query; it is the same vector before that.
        bias = linear(self.output_bias, deviation) + shift
        return linear(attended, deviation[:, None]), linear(self.inputs, deviation), bias


def attention_sublayers(model: Transformer, source: InputArrays, output: list[int]) -> list[AttentionSublayer]:
    """Run a Transformer over one source and a given output, and record its attention sub-layers.

    Args:
        output: token ids of the output, with EOS if the model ended it; query i of the decoder predicts token i.

    Returns:
        The sub-layers in the order in which they run: those of the encoder, then for each layer of the decoder its
    """
    device = next(model.parameters()).device
    target_in = torch.tensor([[BOS, *output[:-1]]], device=device)
    seen: dict[str, tuple[Tensor, Tensor]] = {}
    encoded: list[Tensor] = []
    with torch.inference_mode(), capture(model) as captured, _watched(model, seen, encoded):
        model(inputs_on(device, source), target_in)
    sublayers: list[AttentionSublayer] = []

    def add(role: Role, index: int, attention: MultiheadAttention, residual: Residual, names: tuple[str, str]) -> None:
        inputs, after = seen[names[0]]
        weights = captured.weights(names[1])[0].double()
        read = encoded[0] if role == "cross" else residual.norm(inputs) if residual.order == "pre" else inputs
        sublayers.append(
            AttentionSublayer(
                role,
                index,
                inputs[0].double(),
                after[0].double(),
                weights,
                _head_values(attention, read[0].double()),
                residual,
                attention.out_proj.bias.detach().double(),
            )
        )

    with torch.inference_mode():
        for index, layer in enumerate(model.encoder):
            name = f"encoder_layers.{index}."
            names = f"{name}around_attention", f"{name}self_attention"
            add("encoder", index, layer.self_attention, layer.around_attention, names)
        for index, layer in enumerate(model.decoder):
            name = f"decoder_layers.{index}."
            names = f"{name}around_self", f"{name}self_attention"
            add("decoder", index, layer.self_attention, layer.around_self, names)
            names = f"{name}around_cross", f"{name}cross_attention"
            add("cross", index, layer.cross_attention, layer.around_cross, names)
    return sublayers


@contextmanager
def _watched(model: Transformer, seen: dict[str, tuple[Tensor, Tensor]], encoded: list[Tensor]) -> Generator[None]:
    """Context in which inputs and outputs of residual connections are recorded, and the output of the encoder."""

    def record(name: str, _: nn.Module, inputs: tuple[Any, ...], after: Tensor) -> None:
        seen[name] = inputs[0], after

    def record_encoded(_: nn.Module, __: tuple[Any, ...], after: Tensor) -> None:
        encoded.append(after)

    residuals = {name: each for name, each in model.named_modules() if isinstance(each, Residual)}
    handles = [each.register_forward_hook(partial(record, name)) for name, each in residuals.items()]
    handles.append(model.encoder_norm.register_forward_hook(record_encoded))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _head_values(attention: MultiheadAttention, vectors: Tensor) -> Tensor:
    """Values of each head after the head's part of the output projection, [head, key, size]."""
    rows = slice(2 * attention.embed_dim, 3 * attention.embed_dim)
    projected = vectors @ attention.input_weight(2, 3).double().mT
    if attention.in_proj_bias is not None:
        projected = projected + attention.in_proj_bias[rows].double()
    heads = projected.unflatten(-1, (attention.num_heads, attention.head_dim))
    out = attention.out_proj.weight.double().unflatten(-1, (attention.num_heads, attention.head_dim))
    return torch.einsum("khd,shd->hks", heads, out)
