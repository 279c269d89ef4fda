"""Gated convolutions over a sequence, and an encoder made of them."""

import math
from typing import Final, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heedful.layers.dropout import dropout
from heedful.layers.embedding import draw_normal
from heedful.layers.positions import LearnedPositions

_HALF: Final = math.sqrt(0.5)
"""Factor that keeps the variance of a sum of two."""


@final
class GatedConvolution(nn.Module):
    """h' = (a * sigmoid(b) + h) / sqrt(2), [a; b]_j = W [h_{j-k/2} .. h_{j+k/2}] + bias; zeros beyond both ends.

    Gehring et al. 2017, arXiv:1705.03122, section 3.2, as in its encoder.

    Example:
        >>> layer = GatedConvolution(8, width=3)
        >>> list(layer(torch.ones(2, 5, 8), torch.ones(2, 5, dtype=torch.bool)).shape)
        [2, 5, 8]
    """

    def __init__(self, size: int, width: int, dropout: float = 0.0) -> None:
        """Make the map.

        Args:
            size: features of h and of the result.
            width: the paper's k, odd: positions that one output sees.
            dropout: probability in [0, 1) of leaving out a feature of the input.
        """
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2 * size, width * size))
        self.bias = nn.Parameter(torch.zeros(2 * size))
        self.width = width
        self.dropout = dropout
        draw_normal(self.weight, math.sqrt(4.0 * (1.0 - dropout) / (width * size)))

    def forward(
        self, vectors: Float[Tensor, "batch position size"], real: Bool[Tensor, "batch position"]
    ) -> Float[Tensor, "batch position size"]:
        """Map all positions at once.

        Args:
            vectors: [batch, position, size].
            real: [batch, position] bool, False where padded; padded positions count as zero.

        Returns:
            [batch, position, size].

        Cost: 2 width size^2 multiply-adds per position.
        """
        reach, length = self.width // 2, vectors.shape[1]
        inputs = dropout(vectors, self.dropout, self.training) * real[..., None]
        around = functional.pad(inputs, (0, 0, reach, reach))
        # One product over concatenated neighbours, because on a CPU it is faster than transposing for a convolution.
        beside = torch.cat([around[:, offset : offset + length] for offset in range(self.width)], dim=-1)
        return (functional.glu(functional.linear(beside, self.weight, self.bias), dim=-1) + vectors) * _HALF


@final
class ConvolutionalEncoder(nn.Module):
    """Words with their positions through gated convolutions; keys z_j, and values (z_j + e_j) / sqrt(2).

    Gehring et al. 2017, arXiv:1705.03122, sections 3.1 to 3.3; Gehring et al. 2016, arXiv:1611.02344, put such an
    encoder before a recurrent decoder.

    Example:
        >>> layer = ConvolutionalEncoder(4, 8, num_layers=2, width=3, max_positions=10)
        >>> [list(part.shape) for part in layer(torch.ones(2, 5, 4), torch.tensor([5, 3]))]  # keys, values
        [[2, 5, 4], [2, 5, 4]]
    """

    def __init__(
        self, size: int, hidden_size: int, num_layers: int, width: int, max_positions: int, dropout: float = 0.0
    ) -> None:
        """Make the layers.

        Args:
            size: features of words, keys and values.
            hidden_size: features of the input and output of each convolution.
            num_layers: number of stacked convolutions.
            width: width of each convolution, odd.
            max_positions: number of positions with a vector.
            dropout: probability in [0, 1) of leaving out a feature of a convolution's input.
        """
        super().__init__()
        self.output_size = size
        self.positions = LearnedPositions(size, max_positions)
        self.enter = nn.Linear(size, hidden_size)
        self.layers = nn.ModuleList(GatedConvolution(hidden_size, width, dropout) for _ in range(num_layers))
        self.leave = nn.Linear(hidden_size, size)
        draw_normal(self.positions.weight, 0.1)

    def forward(
        self, embedded: Float[Tensor, "batch position size"], lengths: Int[Tensor, " batch"]
    ) -> tuple[Tensor, Tensor]:
        """Encode the sequences.

        Args:
            embedded: [batch, position, size].
            lengths: [batch] real positions.

        Returns:
            Keys and values, both [batch, position, size], arbitrary where padded.
        """
        real = torch.arange(embedded.shape[1], device=embedded.device) < lengths[:, None]
        embedded = self.positions(embedded)
        vectors = self.enter(embedded)
        for layer in self.layers:
            vectors = layer(vectors, real)
        keys = self.leave(vectors)
        return keys, (keys + embedded) * _HALF
