"""Lengths that padded sequences have where batches should have few shapes."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

ROWS: Final = 8
"""Multiple of the number of examples of a batch."""
_DIGITS: Final = 3


def on_grid(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Round lengths up to numbers of three binary digits and zeros: 1 to 8, 10, 12, 14, 16, 20, 24, 28, 32, 40 ...

    A length grows by less than a quarter.

    Args:
        lengths: numbers of any shape, 0 or larger.

    Returns:
        The same shape.

    Example:
        >>> on_grid(np.array([0, 5, 9, 13, 17, 33, 100])).tolist()
        [0, 5, 10, 14, 20, 40, 112]
    """
    numbers = np.asarray(lengths, dtype=np.int64)
    # The exponent of a double is exact: the number of binary digits of n - 1.
    digits = np.frexp(np.maximum(numbers - 1, 0).astype(np.float64))[1].astype(np.int64)
    steps = np.int64(1) << np.maximum(digits - _DIGITS, 0)
    return -(-numbers // steps) * steps
