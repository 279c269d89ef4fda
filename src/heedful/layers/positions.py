"""Position codes: sinusoids of any length, or a learned table."""

import math
from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heedful.errors import UsageError
from heedful.layers.embedding import draw_normal


def sinusoids(
    positions: Int[Tensor, "... position"], size: int, is_halved: bool = False
) -> Float[Tensor, "... position size"]:
    """Encode positions by sines and cosines of geometrically growing wavelength.

    PE(p, 2i) = sin(p / 10000^(2i/size)), PE(p, 2i+1) = cos(p / 10000^(2i/size)); Vaswani et al. 2017, section 3.5.

    Args:
        positions: [*, position] integers.
        size: even number of features.
        is_halved: whether all sines come before all cosines, as in Marian, rather than alternating.

    Returns:
        [*, position, size] float64, in [-1, 1].

    Example:
        >>> [round(x, 6) for x in sinusoids(torch.tensor([1]), 4)[0].tolist()]
        [0.841471, 0.540302, 0.01, 0.99995]
    """
    exponents = torch.arange(0, size, 2, dtype=torch.float64, device=positions.device) * (-math.log(10_000.0) / size)
    angles = positions.to(torch.float64)[..., None] * exponents.exp()
    waves = angles.sin(), angles.cos()
    return torch.cat(waves, dim=-1) if is_halved else torch.stack(waves, dim=-1).flatten(-2)


class Positions(nn.Module, ABC):
    """Layer that adds a code of its position to each vector.

    Example:
        >>> [issubclass(kind, Positions) for kind in (SinusoidalPositions, LearnedPositions, NoPositions)]
        [True, True, True]
    """

    @abstractmethod
    def codes(self, start: int, length: int) -> Float[Tensor, "length size"]:
        """Return the codes of consecutive positions.

        Args:
            start: first position, from 0.
            length: number of positions.

        Returns:
            [length, size].
        """

    @abstractmethod
    def at(self, places: Int[Tensor, "..."]) -> Float[Tensor, "... size"]:
        """Return the codes of any positions for which `codes` has been called before.

        Args:
            places: [*] int64 positions, from 0.

        Returns:
            [*, size].
        """

    def forward(
        self, vectors: Float[Tensor, "*batch position size"], start: int = 0
    ) -> Float[Tensor, "*batch position size"]:
        """Add position codes.

        Args:
            vectors: [*batch, position, size].
            start: position of the first vector.

        Returns:
            [*batch, position, size].
        """
        return vectors + self.codes(start, vectors.shape[-2]).to(vectors.dtype)


@final
class SinusoidalPositions(Positions):
    """Fixed codes of any length; see `sinusoids`. Vaswani et al. 2017, arXiv:1706.03762, section 3.5.

    The table grows with the longest sequence.

    Example:
        >>> layer = SinusoidalPositions(8)
        >>> list(layer(torch.ones(2, 5, 8), start=3).shape)
        [2, 5, 8]
    """

    def __init__(self, size: int, is_halved: bool = False) -> None:
        super().__init__()
        self.size = size
        self.is_halved = is_halved
        self.register_buffer("table", torch.zeros(0, size), persistent=False)
        self.table: Tensor

    def codes(self, start: int, length: int) -> Float[Tensor, "length size"]:
        if start + length > self.table.shape[0]:
            rows = torch.arange(max(64, 2 * (start + length)), device=self.table.device)
            self.table = sinusoids(rows, self.size, self.is_halved).to(self.table.dtype)
        return self.table[start : start + length]

    def at(self, places: Int[Tensor, "..."]) -> Float[Tensor, "... size"]:
        return self.table[places]


@final
class NoPositions(Positions):
    """Codes of zeros, for models whose attention has a bias by positions.

    Example:
        >>> layer = NoPositions(8)
        >>> list(layer(torch.ones(2, 5, 8)).shape)
        [2, 5, 8]
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("zeros", torch.zeros(1, size), persistent=False)
        self.zeros: Tensor

    def codes(self, start: int, length: int) -> Float[Tensor, "length size"]:
        return self.zeros.expand(length, -1)

    def at(self, places: Int[Tensor, "..."]) -> Float[Tensor, "... size"]:
        return self.zeros[0].expand(*places.shape, -1)


@final
class LearnedPositions(Positions):
    """Learned vector per position, up to a maximum; Vaswani et al. 2017, table 3, row E.

    Example:
        >>> layer = LearnedPositions(8, max_positions=10)
        >>> list(layer(torch.ones(2, 5, 8)).shape)
        [2, 5, 8]
    """

    def __init__(self, size: int, max_positions: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, size))
        draw_normal(self.weight, size**-0.5)

    def codes(self, start: int, length: int) -> Float[Tensor, "length size"]:
        if start + length > self.weight.shape[0]:
            raise UsageError(
                f"learned positions: {start + length} tokens, but the table has {self.weight.shape[0]}; "
                "train with a larger model.max_positions or with sinusoidal positions"
            )
        return self.weight[start : start + length]

    def at(self, places: Int[Tensor, "..."]) -> Float[Tensor, "... size"]:
        # Unlike indexing, this has the same gradient for any number of threads.
        return functional.embedding(places, self.weight)
