"""Context of regions along their row: a bidirectional recurrence from left to right and back, for lines of text."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.layers.dropout import dropout
from heedful.layers.recurrent_stack import BidirectionalStack


@final
class RowContext(nn.Module):
    """Bidirectional LSTMs over the regions of each row of a picture, which is read as a sequence of its own.

    The row encoder of Deng et al. 2016, arXiv:1609.04938, section 4; where regions have the height of the picture, the
    recurrent layers of Shi et al. 2015, arXiv:1507.05717, section 2.2.

    Example:
        >>> layer = RowContext(8, num_layers=1)
        >>> list(layer(torch.ones(2, 6, 8), torch.tensor([6, 6]), num_columns=3).shape)
        [2, 6, 8]
    """

    def __init__(self, size: int, num_layers: int, dropout: float = 0.0) -> None:
        """Make the layers.

        Args:
            size: features of a region, an even number; each direction has half of them.
            num_layers: number of layers, at least 1.
            dropout: probability in [0, 1) of leaving out a feature of an output.
        """
        super().__init__()
        self.stack = BidirectionalStack("lstm", size, size // 2, num_layers)
        self.dropout = dropout

    def forward(
        self,
        vectors: Float[Tensor, "batch region size"],
        num_regions: Int[Tensor, " batch"],
        num_columns: int = 0,
    ) -> Float[Tensor, "batch region size"]:
        """Read each row.

        Args:
            vectors: [batch, region, size], regions row by row.
            num_regions: [batch] numbers of real regions.
            num_columns: regions of a row, by which all pictures are full; 0 = all regions are one row.

        Returns:
            The same shape; arbitrary where padded.
        """
        rows = vectors.reshape(-1, num_columns, vectors.shape[-1]) if num_columns else vectors
        lengths = torch.full_like(rows[:, 0, 0], num_columns, dtype=torch.int64) if num_columns else num_regions
        outputs, _ = self.stack.run(rows, lengths)
        return dropout(outputs.reshape(vectors.shape), self.dropout, self.training)
