"""Blocks of fixed shapes: an engine wrapper that pads batches to a few shapes; used by `heedful.engines.exact`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.search.inputs import InputArrays
from heedful.search.interface import (
    Adjust,
    Engine,
    FloatArray,
    IntArray,
    PosteriorEngine,
    StepScores,
    WeightsArray,
    posteriors_of,
)
from heedful.text.vocabulary import BOS, EOS

MOST_ROWS: Final = 64
"""Maximum number of sources in a block; larger blocks hardly lower the cost per row."""
STEP: Final = 8
"""Multiple to which short lengths are rounded up."""
_MOST_POSITIONS: Final = 4096
"""Maximum of rows times hypotheses times width in a block, so that long sources are decoded in smaller blocks."""


def width_of(length: int, most: int) -> int:
    """Round a source length up to the width of its block.

    Args:
        length: positions of a source, at least 1.
        most: positions of the longest source that the model accepts.

    Returns:
        The length rounded up to a multiple of 8, or for lengths from 129 on to a multiple of an eighth of the next
        lower power of two; at most `most`, but a source longer than `most` keeps its length.

    Example:
        >>> [width_of(length, 200) for length in (1, 8, 9, 70, 129, 195, 200, 300)]
        [8, 8, 16, 72, 144, 200, 200, 300]
    """
    step = max(STEP, 2 ** (max(1, length - 1).bit_length() - 1) // 8)
    return max(length, min(-(-length // step) * step, most))


def rows_of(width: int, num_hypotheses: int) -> int:
    """Return the maximum number of sources in a block.

    Args:
        width: positions of each source, padding included.
        num_hypotheses: number of hypotheses per source.

    Returns:
        A power of two, at most `MOST_ROWS`.

    Example:
        >>> rows_of(32, 5), rows_of(256, 5), rows_of(4096, 5)
        (16, 2, 1)
    """
    rows = MOST_ROWS
    while rows > 1 and rows * width * num_hypotheses > _MOST_POSITIONS:
        rows //= 2
    return rows


@final
class BlockScores(StepScores):
    """Scores of the rows of a block that belong to live sources."""

    def __init__(self, scores: StepScores, rows: IntArray, width: int) -> None:
        """Wrap the scores of a block.

        Args:
            rows: [source] index of each live source's row in the block.
            width: source positions of the search's batch, without the padding of the block.
        """
        self._scores = scores
        self._rows = rows
        self._width = width

    def top(self, k: int, adjust: Adjust | None = None) -> tuple[FloatArray, IntArray]:
        if adjust is not None:
            row_indices = self._rows[adjust.sources]
            adjust = Adjust(adjust.banned, row_indices, adjust.hypotheses, adjust.ids, adjust.values)
        log_probs, ids = self._scores.top(k, adjust)
        return log_probs[self._rows], ids[self._rows]

    def full(self) -> NDArray[np.floating]:
        return self._scores.full()[self._rows]

    def of(self, sources: IntArray, hypotheses: IntArray, ids: IntArray) -> FloatArray:
        return self._scores.of(self._rows[sources], hypotheses, ids)

    @property
    def vocab_size(self) -> int:
        return self._scores.vocab_size

    @property
    def weights(self) -> WeightsArray:
        return self._scores.weights[self._rows][:, :, : self._width]


@dataclass(frozen=True)
class _Running:
    """State of a block: the engine's own state, and the rows of the live sources."""

    inner: object
    num_rows: int
    rows: IntArray
    longest: int
    """Index of a row as long as the block is wide."""
    width: int
    """Source positions of the search's batch, without the padding of the block."""
    is_first: bool = True


@final
class BlockEngine(Engine, PosteriorEngine):
    """Engine wrapper that computes every batch in blocks of few shapes."""

    def __init__(self, engine: Engine, width: int, fitting: Callable[[int], int]) -> None:
        """Wrap an engine.

        Args:
            width: source positions of a block, padding included.
            fitting: function from a number of rows to the number of rows of the smallest block with room for them.
        """
        self._engine = engine
        self._width: Final = width
        self._fitting: Final = fitting

    def start(self, inputs: InputArrays, num_hypotheses: int) -> object:
        number, width = len(inputs), inputs.width
        has_longest = bool((inputs.num_positions == self._width).any())
        size = self._fitting(number if has_longest or number == 1 == self._fitting(2) else number + 1)
        fillers = [1] * (size - number)
        if fillers and not has_longest:
            fillers[0] = self._width
        filled = inputs.with_fillers(fillers).widened(self._width)
        inner = self._engine.start(filled, num_hypotheses)
        return _Running(inner, size, np.arange(number), int(filled.num_positions.argmax()), width)

    def posteriors(self, inputs: InputArrays, outputs: Sequence[Sequence[int]]) -> list[WeightsArray] | None:
        weights: list[WeightsArray] = []
        for row, output in enumerate(outputs):  # alone, so that others change no bit
            alone = posteriors_of(self._engine, inputs.take(np.array([row])), [output])
            if alone is None:
                return None
            weights += alone
        return weights

    def step(
        self, state: object, tokens: IntArray, parents: IntArray | None, keep: IntArray | None
    ) -> tuple[StepScores, object]:
        if not isinstance(state, _Running):
            raise TypeError(f"engine: got a state of type {type(state).__name__}")
        rows = state.rows if keep is None else state.rows[keep]
        remaining = self._kept(state, rows)
        if remaining is not None:
            rows = np.searchsorted(remaining, rows)
        num_rows, num_hypotheses = state.num_rows if remaining is None else remaining.size, tokens.shape[1]
        fed = np.full((num_rows, num_hypotheses), BOS if state.is_first else EOS, dtype=np.int64)
        fed[rows] = tokens
        moved = None
        if num_hypotheses > 1 and not state.is_first:
            moved = np.tile(np.arange(num_hypotheses), (num_rows, 1))
            if parents is not None:
                moved[rows] = parents
        scores, inner = self._engine.step(state.inner, fed, moved, remaining)
        longest = state.longest if remaining is None else int(np.searchsorted(remaining, state.longest))
        return BlockScores(scores, rows, state.width), _Running(inner, num_rows, rows, longest, state.width, False)

    def _kept(self, state: _Running, rows: IntArray) -> IntArray | None:
        """Rows to keep in the next block, ascending; None if the block stays as it is."""
        if state.is_first:
            return np.arange(state.num_rows)
        if state.num_rows == 1 or rows.size == state.rows.size:
            return None
        needed = np.union1d(rows, state.longest)
        size = self._fitting(needed.size)
        if size >= state.num_rows:
            return None
        others = np.setdiff1d(np.arange(state.num_rows), needed)
        return np.sort(np.concatenate((needed, others[: size - needed.size])))
