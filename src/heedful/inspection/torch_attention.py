"""Recording of `torch.nn.MultiheadAttention` in an unchanged model, its fused paths included.

A forward hook would switch off PyTorch's fused encoder layer, and asking for weights its fused attention, so that the
output would change in its last digits. Here every module runs as it would otherwise, and the weights are computed once
more beside it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.interface import Attended

Record = Callable[[str, Attended], None]
"""Callback that gets the dotted name of a module, and one of its calls."""


@final
class TorchRecorder:
    """Recorder of every attention of PyTorch's own modules in a model."""

    def __init__(self, model: nn.Module, record: Record) -> None:
        """Find the attentions.

        Args:
            model: any model. Subclasses with a `forward` of their own are left alone: nothing is known of it.
            record: callback for each call.
        """
        self._record: Final = record
        self._names: Final[dict[nn.MultiheadAttention, str]] = {}
        self._layers: Final[list[nn.TransformerEncoderLayer]] = []
        for name, module in model.named_modules():
            if type(module).forward is nn.MultiheadAttention.forward and isinstance(module, nn.MultiheadAttention):
                self._names[module] = name
            elif type(module).forward is nn.TransformerEncoderLayer.forward:
                if isinstance(module, nn.TransformerEncoderLayer):
                    self._layers.append(module)
        self._num_calls = 0
        self._replaced: Final[list[tuple[nn.Module, Any]]] = []

    def install(self) -> None:
        """Record calls from now on, until `remove`."""
        for layer in self._layers:
            if layer.self_attn in self._names:
                self._replace(layer, self._watched_layer(layer, layer.forward))
        for module in self._names:
            self._replace(module, self._watched_attention(module, module.forward))

    def remove(self) -> None:
        """Leave every module as it was before `install`."""
        while self._replaced:
            module, before = self._replaced.pop()
            if before is None:
                del module.__dict__["forward"]
            else:
                module.__dict__["forward"] = before

    def _replace(self, module: nn.Module, forward: Callable[..., Any]) -> None:
        # An attribute of the instance hides the method of its class. Unlike hooks, it does not stop the fused paths.
        self._replaced.append((module, module.__dict__.get("forward")))
        module.__dict__["forward"] = forward

    def _watched_attention(self, module: nn.MultiheadAttention, forward: Callable[..., Any]) -> Callable[..., Any]:
        def watched(
            query: Tensor,
            key: Tensor,
            value: Tensor,
            key_padding_mask: Tensor | None = None,
            need_weights: bool = True,
            attn_mask: Tensor | None = None,
            average_attn_weights: bool = True,
            is_causal: bool = False,
        ) -> tuple[Tensor, Tensor | None]:
            self._num_calls += 1
            outputs = forward(
                query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
            )
            attended = torch_attended(module, query, key, value, key_padding_mask, attn_mask)
            self._record(self._names[module], attended)
            return outputs

        return watched

    def _watched_layer(self, layer: nn.TransformerEncoderLayer, forward: Callable[..., Any]) -> Callable[..., Any]:
        attention = layer.self_attn

        def watched(
            src: Tensor,
            src_mask: Tensor | None = None,
            src_key_padding_mask: Tensor | None = None,
            is_causal: bool = False,
        ) -> Tensor:
            num_calls = self._num_calls
            output = forward(src, src_mask, src_key_padding_mask, is_causal)
            if self._num_calls == num_calls:
                # The fused layer never calls its attention.
                inputs, padding = _padded(src) if src.is_nested else (src, src_key_padding_mask)
                inputs = layer.norm1(inputs) if layer.norm_first else inputs
                attended = torch_attended(attention, inputs, inputs, inputs, padding, src_mask)
                attended = _without_padded_queries(attended, padding) if src.is_nested else attended
                self._record(self._names[attention], attended)
            return output

        return watched


def torch_attended(
    module: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
) -> Attended:
    """Compute weights and contexts of one call of PyTorch's attention, each head by itself and without dropout.

    Args:
        query: as for its `forward`, like the other arguments; or nested.
        key_padding_mask: True = may not attend, or numbers that are added to scores.

    Returns:
        [batch, head, query, key] weights and [batch, head, query, depth] contexts before the output projection; without
        a batch axis if the query has none. Positions of a nested tensor beyond its length have zeros.

    Cost: that of the attention without its fused path; no random number is drawn.
    """
    if query.is_nested:
        query, no_query = _padded(query)
        key, no_key = _padded(key)
        value, _ = _padded(value)
        return _without_padded_queries(torch_attended(module, query, key, value, no_key, attn_mask), no_query)
    if module.batch_first and query.dim() == 3:
        query, key, value = (each.transpose(0, 1) for each in (query, key, value))
    joined, weights = functional.multi_head_attention_forward(
        query,
        key,
        value,
        module.embed_dim,
        module.num_heads,
        module.in_proj_weight,
        module.in_proj_bias,
        module.bias_k,
        module.bias_v,
        module.add_zero_attn,
        0.0,
        # With the identity as output projection, the output is the contexts of the heads, side by side.
        torch.eye(module.embed_dim, dtype=query.dtype, device=query.device),
        None,  # type: ignore[arg-type]
        training=False,
        key_padding_mask=key_padding_mask,
        need_weights=True,
        attn_mask=attn_mask,
        use_separate_proj_weight=not module.embed_dim == module.kdim == module.vdim,
        q_proj_weight=module.q_proj_weight,
        k_proj_weight=module.k_proj_weight,
        v_proj_weight=module.v_proj_weight,
        average_attn_weights=False,
    )
    # [query, (batch,) head, depth] to [(batch,) head, query, depth]
    contexts = joined.unflatten(-1, (module.num_heads, module.head_dim)).movedim(0, -2)
    return Attended(contexts, "torch", weights=weights)


def _padded(nested: Tensor) -> tuple[Tensor, Tensor]:
    """Padded tensor [batch, position, size] of a nested one, and its mask [batch, position], True = padding."""
    parts: Sequence[Tensor] = nested.unbind()
    lengths = torch.tensor([len(part) for part in parts], device=nested.device)
    padded = nn.utils.rnn.pad_sequence(list(parts), batch_first=True)
    return padded, torch.arange(padded.shape[1], device=nested.device) >= lengths[:, None]


def _without_padded_queries(attended: Attended, no_query: Tensor | None) -> Attended:
    if no_query is None or attended.weights is None:
        return attended
    hidden = no_query[:, None, :, None]
    return replace(
        attended, context=attended.context.masked_fill(hidden, 0.0), weights=attended.weights.masked_fill(hidden, 0.0)
    )
