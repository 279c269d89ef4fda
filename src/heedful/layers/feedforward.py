"""The position-wise feed-forward network."""

from typing import Literal, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.layers.cpu.layernorm import DeferredBias, is_fused, is_plain, linear_deferred, rectified
from heedful.layers.dropout import dropout

Activation = Literal["relu", "swish"]


@final
class FeedForward(nn.Module):
    """FFN(x) = max(0, x W1 + b1) W2 + b2 at each position alone: two convolutions of width 1.

    Vaswani et al. 2017, eq. 2. With swish, x sigmoid(x) stands in place of max(0, x); Ramachandran et al. 2017,
    arXiv:1710.05941.
    """

    def __init__(self, size: int, hidden_size: int, dropout: float = 0.0, activation: Activation = "relu") -> None:
        """Make the two maps.

        Args:
            size: features in and out.
            hidden_size: features between.
            dropout: probability in [0, 1) of leaving out a hidden feature (not in the paper).
            activation: what is between the maps.
        """
        super().__init__()
        self.inner = nn.Linear(size, hidden_size)
        self.outer = nn.Linear(hidden_size, size)
        self.dropout = dropout
        self.activation: Activation = activation
        nn.init.xavier_uniform_(self.inner.weight)
        nn.init.xavier_uniform_(self.outer.weight)
        nn.init.zeros_(self.inner.bias)
        nn.init.zeros_(self.outer.bias)

    def forward(self, vectors: Tensor, adds_bias: bool = True) -> Tensor | DeferredBias:
        """Map each position.

        Args:
            vectors: [*batch, position, size].
            adds_bias: whether the last bias has to be in the sum; else it may be left to whoever takes the result.

        Returns:
            [*batch, position, size].
        """
        is_fast = vectors.dtype == torch.bfloat16 and is_fused(self.inner.weight)
        if is_fast and self.activation == "relu" and is_plain(self.inner):
            hidden = rectified(vectors, self.inner)
        else:
            inner = self.inner(vectors)
            hidden = functional.relu(inner) if self.activation == "relu" else functional.silu(inner)
        hidden = dropout(hidden, self.dropout, self.training)
        return self.outer(hidden) if adds_bias or not is_fast else linear_deferred(hidden, self.outer)
