"""Interfaces of batches and samplers: all that a training loop knows of its data."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray


class Position(NamedTuple):
    """The point that a sampler has reached: the next batch is number `batch` of epoch `epoch`."""

    epoch: int
    batch: int


class Batch(Protocol):
    """Examples that are trained on together."""

    def __len__(self) -> int:
        """Number of examples."""
        ...

    @property
    def num_units(self) -> int:
        """Number of terms of the loss, by which its sum is divided: real target tokens, or labels."""
        ...

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """List the padded arrays that the task's training step takes.

        Returns:
            Arrays in the order of the step's parameters; PyTorch is not needed to make them.
        """
        ...

    def rows(self, selection: slice) -> "Batch":
        """Take some of the examples, without the padding that they no longer need.

        Args:
            selection: slice of rows; at least one row.

        Returns:
            A smaller batch.
        """
        ...


class Sampler(Protocol):
    """An endless sequence of batches that is a function of a seed, and that can go on from any position."""

    position: Position
    """The next batch; may be set, to go on there."""

    def num_batches(self, epoch: int) -> int:
        """Count the batches of an epoch.

        Args:
            epoch: 0-based.

        Returns:
            Their number.
        """
        ...

    def __iter__(self) -> Iterator[Batch]:
        """Draw batches without end, from the position on.

        Yields:
            A batch; the position is then that of the next one.
        """
        ...
