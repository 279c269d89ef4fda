"""Context of regions: self-attention that joins the regions of an image, such as the strokes of a symbol."""

from typing import Final, final

from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.attention.masks import Mask, padding
from heedful.layers.feedforward import FeedForward
from heedful.layers.multihead import MultiheadAttention
from heedful.layers.positions import SinusoidalPositions
from heedful.layers.residual import Residual

NUM_HEADS: Final = 4
WIDENING: Final = 4
"""Hidden features of the feed-forward network per feature of a region."""


@final
class RegionLayer(nn.Module):
    """Self-attention over regions, then feed-forward, each with a residual connection; Vaswani et al. 2017, 3.1.

    Example:
        >>> import torch
        >>> from heedful.attention import padding
        >>> layer = RegionLayer(8, dropout=0.0)
        >>> list(layer(torch.ones(2, 5, 8), padding([5, 3])).shape)
        [2, 5, 8]
    """

    def __init__(self, size: int, dropout: float) -> None:
        """Make both sub-layers, which normalise their inputs.

        Args:
            size: features of a region, a multiple of 4.
            dropout: probability in [0, 1) of leaving out a feature of a sub-layer's output.
        """
        super().__init__()
        self.self_attention = MultiheadAttention(size, NUM_HEADS)
        self.self_attention.draw_each_projection()
        self.feedforward = FeedForward(size, WIDENING * size)
        self.around_attention = Residual(size, dropout, "pre")
        self.around_feedforward = Residual(size, dropout, "pre")

    def forward(self, vectors: Float[Tensor, "batch region size"], mask: Mask) -> Float[Tensor, "batch region size"]:
        """Map [batch, region, size] to the same shape, with a mask of the regions that may be attended."""

        def attend_self(inputs: Tensor) -> Tensor:
            query, key, value = self.self_attention.project(inputs, 0, 3)
            return self.self_attention.attend(query, key, value, mask)[0]

        return self.around_feedforward(self.around_attention(vectors, attend_self), self.feedforward)


@final
class RegionContext(nn.Module):
    """Layers of self-attention over regions; the sinusoids of their order come first, a normalisation last.

    The encoder of Vaswani et al. 2017, arXiv:1706.03762, section 3.1, with normalisation before each sub-layer.

    Example:
        >>> import torch
        >>> layer = RegionContext(8, num_layers=1)
        >>> list(layer(torch.ones(2, 5, 8), torch.tensor([5, 3])).shape)
        [2, 5, 8]
    """

    def __init__(self, size: int, num_layers: int, dropout: float = 0.0, has_order: bool = True) -> None:
        """Make the layers.

        Args:
            size: features of a region, a multiple of 4.
            num_layers: number of layers, at least 1.
            dropout: probability in [0, 1) of leaving out a feature of a sub-layer's output.
            has_order: whether the order of regions is added, for those that do not say where they are.
        """
        super().__init__()
        self.positions = SinusoidalPositions(size) if has_order else None
        self.layers = nn.ModuleList(RegionLayer(size, dropout) for _ in range(num_layers))
        self.norm = nn.LayerNorm(size)

    def forward(
        self, vectors: Float[Tensor, "batch region size"], num_regions: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch region size"]:
        """Let regions see each other.

        Args:
            vectors: [batch, region, size].
            num_regions: [batch] numbers of real regions.

        Returns:
            The same shape; arbitrary where padded.
        """
        if self.positions is not None:
            vectors = self.positions(vectors)
        mask = padding(num_regions)
        for layer in self.layers:
            vectors = layer(vectors, mask)
        return self.norm(vectors)
