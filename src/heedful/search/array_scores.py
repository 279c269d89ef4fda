"""Step scores over NumPy arrays: top-k selection with deterministic ties, and sparse adjustments."""

from typing import final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import NeedError, NonFiniteError
from heedful.search.interface import Adjust, FloatArray, IntArray, StepScores, WeightsArray

_BLOCK = 64


def best(log_probs: NDArray[np.floating], k: int) -> tuple[FloatArray, IntArray]:
    """Return the k largest log probabilities of each row and their ids.

    Args:
        log_probs: [..., vocab] values; not NaN.
        k: number of values, at least 1; at most the size of the vocabulary counts.

    Returns:
        [..., k] float64 values, largest first and, among equals, lower ids first; [..., k] int64 ids.

    Raises:
        NonFiniteError: a value is NaN.

    Cost: one pass over the values, then a sort of about 64 k + vocab / 64 of them per row; for k above vocab / 128 a
    partition and three passes, then a sort of k.

    Example:
        >>> values, ids = best(np.array([-2.0, -1.0, -3.0, -1.0]), 3)
        >>> ids.tolist()
        [1, 3, 0]
    """
    if k == 1:  # as greedy search asks at each step
        largest = log_probs.max(axis=-1, keepdims=True)
        _refuse_nan(largest)
        return largest.astype(np.float64), log_probs.argmax(axis=-1, keepdims=True)
    vocab_size = log_probs.shape[-1]
    num_blocks = vocab_size // _BLOCK
    if num_blocks <= 2 * k:
        if vocab_size <= max(4 * k, _BLOCK):
            return _sorted(log_probs, np.broadcast_to(np.arange(vocab_size), log_probs.shape), k)
        _refuse_nan(log_probs)
        flat = log_probs.reshape(-1, vocab_size)
        thresholds = np.partition(flat, vocab_size - k, axis=1)[:, vocab_size - k]
        ids = np.nonzero(mark_largest(flat, thresholds, np.full(thresholds.size, k)))[1]
        ids = ids.reshape(*log_probs.shape[:-1], k)
        return _sorted(np.take_along_axis(log_probs, ids, axis=-1), ids, k)
    # The k largest values lie in the k blocks with the largest maxima (the earlier ones among equals) or in the tail
    # after the last whole block: k values that are larger, or equal and earlier, rank before any other.
    tail = np.arange(num_blocks * _BLOCK, vocab_size)
    blocks = log_probs[..., : num_blocks * _BLOCK].reshape(*log_probs.shape[:-1], num_blocks, _BLOCK)
    maxima = blocks.max(axis=-1)
    _, chosen = _sorted(maxima, np.broadcast_to(np.arange(num_blocks), maxima.shape), k)
    ids = np.sort(chosen, axis=-1)[..., None] * _BLOCK + np.arange(_BLOCK)
    ids = ids.reshape(*log_probs.shape[:-1], k * _BLOCK)
    ids = np.concatenate([ids, np.broadcast_to(tail, (*ids.shape[:-1], tail.size))], axis=-1)
    return _sorted(np.take_along_axis(log_probs, ids, axis=-1), ids, k)


def mark_largest(values: NDArray[np.floating], thresholds: NDArray[np.floating], nums: IntArray) -> NDArray[np.bool_]:
    """Mark the largest values of each row, the first ones among equals.

    Args:
        values: [row, any] values; not NaN.
        thresholds: [row] the smallest value that is marked.
        nums: [row] number of values to mark.

    Returns:
        [row, any] True for the marked values.

    Example:
        >>> mark_largest(np.array([[1.0, 3.0, 1.0, 2.0]]), np.array([1.0]), np.array([3])).tolist()
        [[True, True, False, True]]
    """
    is_above, is_equal = values > thresholds[:, None], values == thresholds[:, None]
    room = nums - is_above.sum(axis=1)
    if (is_equal.sum(axis=1) > room).any():
        is_equal &= np.cumsum(is_equal, axis=1) <= room[:, None]
    return is_above | is_equal


def _refuse_nan(values: NDArray[np.floating]) -> None:
    """Raise where a value is NaN.

    Raises:
        NonFiniteError: a value is NaN.
    """
    if np.isnan(values).any():
        raise NonFiniteError("a log probability is NaN; the model's weights are broken or its arithmetic overflowed")


def _sorted(values: NDArray[np.floating], ids: IntArray, k: int) -> tuple[FloatArray, IntArray]:
    """The k largest of `values` with their `ids`, which ascend along the last axis, so that a stable sort settles ties.

    Raises:
        NonFiniteError: a value is NaN.
    """
    _refuse_nan(values)
    order = np.argsort(-values, axis=-1, kind="stable")[..., :k]
    largest = np.take_along_axis(values, order, axis=-1).astype(np.float64)
    return largest, np.take_along_axis(ids, order, axis=-1)


def adjusted(log_probs: NDArray[np.floating], adjust: Adjust) -> NDArray[np.floating]:
    """Apply an adjustment to log probabilities.

    Args:
        log_probs: [source, hypothesis, vocab] values; not changed.

    Returns:
        A changed copy.
    """
    changed = log_probs.copy()
    if adjust.ids.size:
        np.add.at(changed, (adjust.sources, adjust.hypotheses, adjust.ids), adjust.values)
    changed[..., adjust.banned] = -np.inf
    return changed


@final
class ArrayScores(StepScores):
    """`StepScores` over log probabilities that are already in memory."""

    def __init__(self, log_probs: NDArray[np.floating], weights: WeightsArray | None = None) -> None:
        """Wrap the scores of one step.

        Args:
            log_probs: [source, hypothesis, vocab] log probabilities.
            weights: [source, hypothesis, position] attention to the source; None when the model gives none.
        """
        self._log_probs = log_probs
        self._weights = weights

    def top(self, k: int, adjust: Adjust | None = None) -> tuple[FloatArray, IntArray]:
        """Return the most probable next tokens, as `StepScores.top`.

        Args:
            k: number of tokens, at least 1.
            adjust: changes to apply first.

        Returns:
            [source, hypothesis, k] log probabilities and ids, best first and, among equals, lower ids first.

        Raises:
            NonFiniteError: a log probability is NaN.
        """
        return best(self._log_probs if adjust is None else adjusted(self._log_probs, adjust), k)

    def full(self) -> NDArray[np.floating]:
        """Return all log probabilities, unadjusted.

        Returns:
            [source, hypothesis, vocab] log probabilities, which callers must not change.
        """
        return self._log_probs

    @property
    def weights(self) -> WeightsArray:
        """[source, hypothesis, position] attention to the source.

        Raises:
            NeedError: the model gives none.
        """
        if self._weights is None:
            raise NeedError("this model gives no attention weights; search without alignment and with beta = 0")
        return self._weights
