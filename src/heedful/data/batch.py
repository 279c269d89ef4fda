"""Interfaces of batches and samplers, the only view that the training loop has of its data."""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Protocol

from numpy.typing import NDArray


class Position(NamedTuple):
    """Position of a sampler: the next batch is number `batch` of epoch `epoch`."""

    epoch: int
    batch: int


class Batch(Protocol):
    """Examples of one training step."""

    def __len__(self) -> int:
        """Number of examples."""
        ...

    @property
    def num_units(self) -> int:
        """Number of loss terms, the divisor of their sum: real target tokens, or labels."""
        ...

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """List the padded arrays for the task's training step.

        Returns:
            NumPy arrays in the order of the step's parameters.
        """
        ...

    def rows(self, selection: slice) -> "Batch":
        """Select some of the examples, trimming the padding.

        Args:
            selection: slice of rows; at least one row.

        Returns:
            A smaller batch.
        """
        ...


class Sampler(Protocol):
    """Endless sequence of batches, determined by a seed, that can resume from any position."""

    unit: ClassVar[str]
    """Name of what `Batch.num_units` counts, in the plural."""
    position: Position
    """Position of the next batch; set it to continue from there."""

    def num_batches(self, epoch: int) -> int:
        """Count the batches of an epoch.

        Args:
            epoch: 0-based.

        Returns:
            Their number.
        """
        ...

    def __iter__(self) -> Iterator[Batch]:
        """Yield batches without end, from the current position on.

        Yields:
            A batch; `position` then points to the next one.
        """
        ...
