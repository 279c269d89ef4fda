"""Numba kernels that check indices before other kernels use them."""

import numpy as np

from heedful.cpu.numba_cache import cached_njit


@cached_njit()
def is_within(ids: np.ndarray, least: int, end: int) -> bool:
    """Tell whether all indices are in a range.

    Args:
        ids: [index] integers.
        end: one past the largest allowed.
    """
    result = True
    for i in range(ids.shape[0]):
        result &= least <= ids[i] < end
    return result


@cached_njit()
def are_bounds_within(starts: np.ndarray, stops: np.ndarray, end: int) -> bool:
    """Tell whether two arrays of bounds are in a range from 0.

    Args:
        starts: [batch, query].
        stops: [batch, query].
        end: one past the largest allowed.
    """
    result = True
    for b in range(starts.shape[0]):
        for i in range(starts.shape[1]):
            result &= 0 <= starts[b, i] < end
            result &= 0 <= stops[b, i] < end
    return result


@cached_njit()
def are_spans_within(
    starts: np.ndarray, lengths: np.ndarray, first: int, count: int, num_rows: int, num_positions: int
) -> bool:
    """Tell whether some sequences lie within packed rows, and fit the positions that they are laid out in.

    Args:
        starts: [sequence] first row of each.
        lengths: [sequence] rows of each.
        first: first sequence.
        count: number of sequences; those beyond the last have no rows.
        num_rows: number of packed rows.
    """
    result = first >= 0
    for i in range(max(0, first), min(first + count, lengths.shape[0])):
        length = lengths[i]
        result &= 0 <= length <= num_positions
        result &= length == 0 or 0 <= starts[i] <= num_rows - length
    return result
