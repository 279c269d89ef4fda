"""Multi-head attention: several small attentions side by side, each on its own projection."""

from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.attend import attend
from heedful.attention.kernels.interface import Attended
from heedful.attention.masks import Mask
from heedful.attention.normalizers import Need
from heedful.attention.scores import ScaledDot
from heedful.errors import ShapeError


@final
class MultiheadAttention(nn.Module):
    """concat_i(attention(query Wq_i, key Wk_i, value Wv_i)) Wo; Vaswani et al. 2017, section 3.2.2.

    Parameters have the names and shapes of torch.nn.MultiheadAttention. Projections and attention are separate
    steps, so that keys and values can be projected once and kept.
    """

    def __init__(self, size: int, num_heads: int, dropout: float = 0.0, bias: bool = True) -> None:
        """Make the four projections.

        Args:
            size: features in and out, divisible by `num_heads`.
            num_heads: attentions side by side, each of depth size / num_heads.
            dropout: probability in [0, 1) of leaving out a weight.
            bias: whether the projections have biases.

        Raises:
            ShapeError: size is not divisible by the number of heads.
        """
        super().__init__()
        if size % num_heads:
            raise ShapeError(f"multi-head attention: size {size} is not divisible by {num_heads} heads")
        self.size = size
        self.num_heads = num_heads
        self.dropout = dropout
        self.in_proj_weight = nn.Parameter(torch.empty(3 * size, size))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * size)) if bias else None
        self.out_proj = nn.Linear(size, size, bias=bias)
        self.score = ScaledDot(size // num_heads, size // num_heads)
        for block in self.in_proj_weight.chunk(3):
            nn.init.xavier_uniform_(block)
        nn.init.xavier_uniform_(self.out_proj.weight)
        if bias:
            nn.init.zeros_(self.out_proj.bias)

    def project(self, vectors: Tensor, first: int, last: int) -> tuple[Tensor, ...]:
        """Project to some of query (0), key (1), value (2), in one product, and split heads.

        Args:
            vectors: [*batch, position, size].
            first: first of the three.
            last: one past the last.

        Returns:
            For each [*batch, head, position, depth].
        """
        rows = slice(first * self.size, last * self.size)
        bias = None if self.in_proj_bias is None else self.in_proj_bias[rows]
        projected = functional.linear(vectors, self.in_proj_weight[rows], bias)
        split = projected.unflatten(-1, (last - first, self.num_heads, -1))
        return tuple(part.transpose(-3, -2) for part in split.unbind(-3))

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask | None = None, need: tuple[Need, ...] = ()
    ) -> tuple[Tensor, Attended]:
        """Attend with projected heads, and map their contexts back.

        Args:
            query: [*batch, head, query, depth].
            key: [*batch, head, key, depth].
            value: [*batch, head, key, depth].
            mask: who may attend whom.
            need: summaries wanted, each with a head axis before the query axis.

        Returns:
            [*batch, query, size] and what `attend` gave.
        """
        dropout = self.dropout if self.training else 0.0
        attended = attend(query, key, value, score=self.score, mask=mask, dropout=dropout, need=need)
        return self.out_proj(attended.context.transpose(-3, -2).flatten(-2)), attended
