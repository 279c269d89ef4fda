"""Sources of a batch as named NumPy arrays, the input of engines, for any kind of source."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Final, Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import ShapeError
from heedful.text.vocabulary import EOS, PAD, UNK

IntArray = NDArray[np.int64]
_FIRST_TOKEN: Final = EOS + 1


class InputArrays(ABC):
    """Sources of one batch; `heedful.models.inputs` has the PyTorch counterpart of each kind."""

    axis_names: ClassVar[Mapping[str, Mapping[int, str]]] = MappingProxyType({})
    """Names of axes of the arrays of `named_arrays`, where several differ in size; every other axis that varies from
    batch to batch is named "position"."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of sources."""

    @abstractmethod
    def take(self, rows: Iterable[int]) -> Self:
        """Select sources.

        Args:
            rows: indices, in any order.

        Returns:
            Inputs of these sources, padded no wider than they need.
        """

    @abstractmethod
    def named_arrays(self) -> dict[str, NDArray[Any]]:
        """Pad the sources to arrays.

        Returns:
            Arrays by the names of a graph's inputs, in the order of the counterpart's fields; axis 0 = source.
        """

    @property
    @abstractmethod
    def num_positions(self) -> IntArray:
        """[source] number of positions that a decoder may attend to, at least 1."""

    @property
    def num_numbers(self) -> IntArray:
        """[source] size of the arrays of each source, which limits the number of sources of a batch."""
        return self.num_positions

    @property
    @abstractmethod
    def length_hint(self) -> IntArray:
        """[source] size of each source that determines the length limit of its outputs, such as its token count."""

    @property
    def width(self) -> int:
        """Number of positions that weights have, padding included."""
        return int(self.num_positions.max(initial=0))

    @abstractmethod
    def widened(self, width: int) -> Self:
        """Pad further than the sources need.

        Args:
            width: least number of positions of the padded arrays.

        Returns:
            The same sources.
        """

    @abstractmethod
    def with_fillers(self, num_positions: Sequence[int]) -> Self:
        """Add dummy sources, to make a batch of a certain size.

        Args:
            num_positions: number of positions of each added source, at least 1.

        Returns:
            The same sources, then the added ones.
        """


@final
class TokenArrays(InputArrays):
    """Sources that are sequences of token ids."""

    def __init__(self, sequences: Sequence[IntArray], room: int = 0) -> None:
        """Store the sequences unpadded; `named_arrays` pads them.

        Args:
            sequences: [position] ids of each source, ending in EOS; an empty one counts as EOS alone.
            room: least number of positions of the padded arrays.

        Raises:
            ShapeError: a source is not a flat array.
        """
        self.sequences: Final = tuple(_with_end(ids, index) for index, ids in enumerate(sequences))
        self._lengths: Final = np.array([ids.size for ids in self.sequences], dtype=np.int64)
        self._room: Final = room

    def __len__(self) -> int:
        return len(self.sequences)

    def take(self, rows: Iterable[int]) -> "TokenArrays":
        return TokenArrays([self.sequences[row] for row in rows])

    def named_arrays(self) -> dict[str, NDArray[Any]]:
        ids = np.full((len(self), self.width), PAD, dtype=np.int64)
        for row, sequence in zip(ids, self.sequences, strict=True):
            row[: sequence.size] = sequence
        return {"source": ids, "source_lengths": self.num_positions}

    @property
    def num_positions(self) -> IntArray:
        """[source] number of ids, EOS included."""
        return self._lengths

    @property
    def length_hint(self) -> IntArray:
        """[source] number of ids without EOS."""
        return np.array([ids.size - (ids[-1] == EOS) for ids in self.sequences], dtype=np.int64)

    @property
    def width(self) -> int:
        """Positions of the padded array."""
        return max(self._room, super().width)

    def widened(self, width: int) -> "TokenArrays":
        return TokenArrays(self.sequences, width)

    def with_fillers(self, num_positions: Sequence[int]) -> "TokenArrays":
        fillers = [np.array([*[UNK] * (number - 1), EOS], dtype=np.int64) for number in num_positions]
        return TokenArrays([*self.sequences, *fillers], self._room)


Sources = InputArrays | Sequence[IntArray]
"""Sources of any kind; a plain list of token ids stands for `TokenArrays` of it."""


def as_inputs(sources: Sources) -> InputArrays:
    """Convert a list of token ids to `TokenArrays`.

    Args:
        sources: inputs of any kind, or [position] ids of each source.

    Raises:
        ShapeError: a source is not a flat array.

    Example:
        >>> as_inputs([np.array([4, 5, 3]), np.array([])]).named_arrays()["source"].tolist()
        [[4, 5, 3], [3, 0, 0]]
    """
    return sources if isinstance(sources, InputArrays) else TokenArrays(sources)


def token_sequences(sources: Sources) -> tuple[IntArray, ...]:
    """Narrow sources to token ids, for an engine that reads nothing else.

    Args:
        sources: inputs of any kind, or [position] ids of each source.

    Returns:
        [position] ids of each source.

    Raises:
        TypeError: the sources are of another kind.
    """
    inputs = as_inputs(sources)
    if not isinstance(inputs, TokenArrays):
        raise TypeError(f"this engine reads token ids, got {type(inputs).__name__}")
    return inputs.sequences


class InputDraw(Protocol):
    """Function that draws random sources of the kind that a model reads, to try an engine with."""

    def __call__(self, num_positions: IntArray, generator: np.random.Generator) -> InputArrays:
        """Draw sources.

        Args:
            num_positions: [source] number of positions of each source, at least 1.
            generator: random number generator.

        Returns:
            A source for each number of positions.
        """
        ...


def token_draw(num_tokens: int) -> InputDraw:
    """Return a function that draws random token sources.

    Returns:
        A function that draws ordinary tokens and EOS.

    Example:
        >>> token_draw(6)(np.array([1, 4]), np.random.default_rng(0)).num_positions.tolist()
        [1, 4]
    """
    first = min(_FIRST_TOKEN, num_tokens - 1)

    def draw(num_positions: IntArray, generator: np.random.Generator) -> InputArrays:
        return TokenArrays(
            [np.append(generator.integers(first, num_tokens, number - 1), EOS) for number in num_positions]
        )

    return draw


def _with_end(ids: IntArray, index: int) -> IntArray:
    """The source as an array, an empty one as EOS alone.

    Raises:
        ShapeError: the source is not flat.
    """
    ids = np.asarray(ids, dtype=np.int64)
    if ids.ndim != 1:
        raise ShapeError(f"source {index} has shape {list(ids.shape)}; expected [position]")
    return ids if ids.size else np.array([EOS], dtype=np.int64)
