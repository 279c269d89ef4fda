"""Mixing of positions through the layers of a Transformer: rollout and ALTI, which differ in the shares of a layer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from heedful.inspection.layers import Role
from heedful.inspection.measures.sublayers import AttentionSublayer
from heedful.inspection.measures.value_norms import shares

Shares = Callable[[AttentionSublayer], tuple[Tensor, Tensor]]
"""Shares of one sub-layer: [query, key] of the attended positions, and [query] of the query's own residual connection;
both together sum to 1."""


@final
@dataclass(frozen=True, eq=False)
class Mixed:
    """Shares of the model's inputs in the vectors after one sub-layer."""

    role: Role
    layer: int
    shares: Tensor
    """[query, position] shares of source tokens after encoder and cross-attention, of target tokens after the
    decoder's self-attention. Rows of encoder sub-layers sum to 1; those of the decoder sum to 1 with the other side."""


def attention_shares(sublayer: AttentionSublayer) -> tuple[Tensor, Tensor]:
    """Compute the shares of rollout: half for the residual connection, and half for the mean weights of the heads.

    Abnar and Zuidema 2020, arXiv:2005.00928, section 3.

    Returns:
        [query, key] and [query] shares.
    """
    weights = 0.5 * shares(sublayer.weights.mean(dim=0))
    return weights, 1.0 - weights.sum(dim=-1)


def contribution_shares(sublayer: AttentionSublayer) -> tuple[Tensor, Tensor]:
    """Compute the shares of ALTI: how much nearer the output is to a contribution than to nothing, in L1 distance.

    c_ij is max(0, |y_i|_1 - |y_i - T_i(x_j)|_1) over the sum of all, where the residual connection is part of T_i(x_i)
    in self-attention, and a contribution of its own beside the source. Ferrando et al. 2022, arXiv:2203.04212, eq. 11
    to 12; for decoders Ferrando et al. 2022, arXiv:2205.11631, section 3.

    Returns:
        [query, key] and [query] shares; zero residual share in self-attention, whose diagonal has it.
    """
    parts, own, _ = sublayer.contributions()
    if sublayer.role != "cross":
        index = torch.arange(len(own), device=own.device)
        parts = parts.index_put((index, index), own, accumulate=True)
        own = torch.zeros_like(own)
    output = sublayer.output
    whole = output.abs().sum(dim=-1)

    def nearer(contribution: Tensor) -> Tensor:
        left = (output[:, None] - contribution).abs().sum(dim=-1)
        return (whole[:, None] - left).clamp_min(0)

    together = shares(torch.cat((nearer(parts), nearer(own[:, None])), dim=-1))
    # Where nothing is nearer, the vector stays that of its own position.
    lost = 1.0 - together.sum(dim=-1)
    return together[:, :-1], together[:, -1] + lost


def mixed(sublayers: Sequence[AttentionSublayer], shares_of: Shares) -> list[Mixed]:
    """Follow the shares of source and target tokens from layer to layer.

    A layer's shares are products: those of what it attends to and of its own vectors, weighed by the shares of this
    sub-layer. Feed-forward networks mix no positions and are passed over.

    Args:
        sublayers: from `attention_sublayers`, in their order.

    Returns:
        The shares after each sub-layer.

    Cost: one product of matrices [position, position] for each sub-layer.
    """
    results: list[Mixed] = []
    encoder = from_source = from_target = torch.zeros(0, 0, dtype=torch.float64)
    for sublayer in sublayers:
        attended, own = shares_of(sublayer)
        num_queries, num_keys = attended.shape
        if sublayer.role == "encoder":
            if not encoder.numel():
                encoder = torch.eye(num_keys, dtype=attended.dtype, device=attended.device)
            encoder = attended @ encoder + own[:, None] * encoder
            results.append(Mixed("encoder", sublayer.layer, encoder))
        elif sublayer.role == "decoder":
            if not from_target.numel():
                from_target = torch.eye(num_queries, dtype=attended.dtype, device=attended.device)
                from_source = attended.new_zeros(num_queries, len(encoder))
            from_target = attended @ from_target + own[:, None] * from_target
            from_source = attended @ from_source + own[:, None] * from_source
            results.append(Mixed("decoder", sublayer.layer, from_target))
        else:
            from_target = own[:, None] * from_target
            from_source = attended @ encoder + own[:, None] * from_source
            results.append(Mixed("cross", sublayer.layer, from_source))
    return results
