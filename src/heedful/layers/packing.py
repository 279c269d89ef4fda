"""Packing: sequences in consecutive rows, without padding between them."""

from dataclasses import dataclass
from typing import Final, Self, final

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from heedful.errors import ShapeError

ROW_MULTIPLE: Final = 64
"""Multiple that numbers of packed rows are rounded up to. On a CPU, the first product with a new number of rows costs
one to two milliseconds more, because a kernel is generated; so few numbers should occur."""


def round_up(number: int, multiple: int = ROW_MULTIPLE) -> int:
    """Round up to a multiple.

    Args:
        number: not negative.
        multiple: positive.

    Example:
        >>> round_up(65), round_up(64), round_up(9, 8)
        (128, 64, 16)
    """
    return -(-number // multiple) * multiple


@final
@dataclass(frozen=True)
class Packing:
    """Layout of [sequence, position] in rows: sequences one after another, then filler rows.

    Example:
        >>> packing = Packing.of(torch.tensor([3, 1]), 3)
        >>> packing.starts.tolist(), packing.num_real
        ([0, 3], 4)
    """

    lengths: Int[Tensor, " sequence"]
    """[sequence] int64, positions of each, on the CPU."""
    starts: Int[Tensor, " sequence"]
    """[sequence] int64, first row of each."""
    is_real: Bool[Tensor, "sequence position"]
    """[sequence, position] bool."""
    num_real: int
    num_rows: int
    """Number of rows, filler rows included."""

    @classmethod
    def of(cls, lengths: Int[Tensor, " sequence"], num_positions: int) -> Self:
        """Plan rows.

        Args:
            lengths: [sequence] integers, on the CPU.
            num_positions: number of positions of the padded form, at least the largest length.

        Raises:
            ShapeError: a length is greater than the number of positions.
        """
        lengths = lengths.to(torch.int64).contiguous()
        if len(lengths) and int(lengths.max()) > num_positions:
            raise ShapeError(
                f"packing: a sequence has {int(lengths.max())} positions, but the padded form only {num_positions}"
            )
        is_real = torch.arange(num_positions) < lengths[:, None]
        ends = lengths.cumsum(0)
        num_real = int(ends[-1]) if len(ends) else 0
        return cls(lengths, ends - lengths, is_real, num_real, round_up(num_real))

    def pack(self, padded: Shaped[Tensor, "sequence position ..."]) -> Shaped[Tensor, "row ..."]:
        """Gather positions into consecutive rows.

        Args:
            padded: [sequence, position, *].

        Returns:
            [row, *], zeros after the last sequence.
        """
        rows = padded.new_zeros(self.num_rows, *padded.shape[2:])
        rows[: self.num_real] = padded[self.is_real]
        return rows

    def unpack(self, rows: Shaped[Tensor, "row ..."]) -> Shaped[Tensor, "sequence position ..."]:
        """Invert `pack`.

        Args:
            rows: [row, *].

        Returns:
            [sequence, position, *], zeros after each sequence.
        """
        padded = rows.new_zeros(*self.is_real.shape, *rows.shape[1:])
        padded[self.is_real] = rows[: self.num_real]
        return padded

    def positions(self) -> Int[Tensor, " row"]:
        """Return the position in its sequence of each row.

        Returns:
            [row] int64, from 0; 0 after the last sequence.
        """
        return self.pack(torch.arange(self.is_real.shape[1]).expand_as(self.is_real))
