"""Residual connection and normalisation around a sub-layer."""

from collections.abc import Callable
from typing import Final, Literal, final

from jaxtyping import Float
from torch import Tensor, nn

from heedful.layers.dropout import dropout

NormOrder = Literal["post", "pre"]

NORM_EPSILON: Final = 1e-5
"""Constant that normalisations add to the variance; the one that all Marian models use."""


@final
class Residual(nn.Module):
    """post: LayerNorm(x + Dropout(f(x))), as in Vaswani et al. 2017, 5.4; pre: x + Dropout(f(LayerNorm(x))).

    Example:
        >>> import torch
        >>> layer = Residual(8, dropout=0.0, order="post")
        >>> list(layer(torch.ones(2, 5, 8), torch.tanh).shape)
        [2, 5, 8]
    """

    def __init__(self, size: int, dropout: float, order: NormOrder, epsilon: float = NORM_EPSILON) -> None:
        """Make the normalisation.

        Args:
            size: features of x.
            dropout: probability in [0, 1) of leaving out a feature of the sub-layer's output.
            order: whether to normalise after the sum or before the sub-layer.
            epsilon: constant added to the variance.
        """
        super().__init__()
        self.norm = nn.LayerNorm(size, eps=epsilon)
        self.dropout = dropout
        self.order = order

    def forward(
        self, vectors: Float[Tensor, "*batch position size"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "*batch position size"]:
        """Apply a sub-layer with its residual connection.

        Args:
            vectors: [*batch, position, size].
            sublayer: function with input and output of one shape.

        Returns:
            [*batch, position, size].
        """
        if self.order == "pre":
            return vectors + dropout(sublayer(self.norm(vectors)), self.dropout, self.training)
        return self.norm(vectors + dropout(sublayer(vectors), self.dropout, self.training))
