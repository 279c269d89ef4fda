"""The position-wise feed-forward network."""

from typing import Literal, final

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from heedful.layers.dropout import dropout

Activation = Literal["relu", "swish"]


@final
class FeedForward(nn.Module):
    """FFN(x) = max(0, x W1 + b1) W2 + b2 at each position alone: two convolutions of width 1.

    Vaswani et al. 2017, eq. 2. With swish, x sigmoid(x) replaces max(0, x); Ramachandran et al. 2017, arXiv:1710.05941.

    Example:
        >>> import torch
        >>> layer = FeedForward(8, 32)
        >>> list(layer(torch.ones(2, 5, 8)).shape)
        [2, 5, 8]
    """

    def __init__(self, size: int, hidden_size: int, dropout: float = 0.0, activation: Activation = "relu") -> None:
        """Make the two maps.

        Args:
            size: features of x and of the result.
            hidden_size: features between.
            dropout: probability in [0, 1) of leaving out a hidden feature (not in the paper).
            activation: function between the maps.
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

    def forward(self, vectors: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch size"]:
        """Map each position.

        Args:
            vectors: [*batch, size].

        Returns:
            [*batch, size].
        """
        inner = self.inner(vectors)
        hidden = functional.relu(inner) if self.activation == "relu" else functional.silu(inner)
        return self.outer(dropout(hidden, self.dropout, self.training))
