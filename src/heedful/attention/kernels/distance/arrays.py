"""Inputs and outputs of the numba kernels of distance attention: named tuples of NumPy arrays."""

from typing import Any, Final, NamedTuple

from numpy.typing import NDArray

Array = NDArray[Any]

GAUSSIAN: Final = 0
LAPLACIAN: Final = 1
TRIANGULAR_POWER: Final = 2
EPANECHNIKOV_POWER: Final = 3
BOXCAR: Final = 4
TRIANGULAR: Final = 5
EPANECHNIKOV: Final = 6
"""Profiles by number; profiles before boxcar are exponentials, the others powers with the inverse temperature."""

LIFT: Final = 11
"""Exponential weights stay below 2^-10.5, so that a tile of values at the end of the range still has a sum."""
FAR: Final = 2.0**22
"""Largest rate * cost, in bits, from which another may be subtracted."""
ROWS: Final = 64
"""Queries processed together: each tile of keys is loaded once for all of them."""


class Points(NamedTuple):
    """Queries, keys and values, C-contiguous; inside a kernel without the batch axis."""

    query: Array
    """[batch, query, size]"""
    key: Array
    """[batch, size, key]; rows may be longer than there are keys."""
    value: Array
    """[batch, value_size, key], value_size at least 1."""
    start: Array
    """[batch, query] int64 first key that a query may attend to, at least 0."""
    stop: Array
    """[batch, query] int64 index after the last key, at most the number of keys."""


class Kernel(NamedTuple):
    """Shape of the weights."""

    profile: int
    whole: Any
    """Bandwidth (triangular), else its square: the minuend of difference weights."""
    crumb: Any
    """Rounding error of `whole`."""
    bound: Any
    """Squared distance from which a compact kernel is certainly zero."""
    lowest: Any
    """Exponent whose power of two counts as 0: one below that of the smallest normal number."""
    farthest: Any
    """Largest number of the type."""
    is_finite: bool
    """Whether all coordinates are finite, so that tiles without weight can be skipped."""


class ForwardResult(NamedTuple):
    """Result of the forward pass."""

    context: Array
    """[batch, query, value_size]"""
    nearest: Array
    """[batch, query] smallest cost of an exponential kernel"""
    totals: Array
    """[batch, query] float64, sums of weights; 0 where no key has weight."""


class OutputGradients(NamedTuple):
    """Gradients of the outputs, and which input gradients are needed."""

    context: Array
    """[batch, query, value_size]"""
    log_normalizer: Array
    """[batch, query] float64"""
    wants_slopes: bool
    """Whether any gradient except the values' is needed."""
    wants_points: bool
    wants_value: bool


class Room(NamedTuple):
    """Work arrays of one part."""

    costs: Array
    """[key]"""
    weights: Array
    """[4, key]"""
    slopes: Array
    """[4, key]"""
    local: Array
    """[size + value_size, key] gradients of keys and values from a block of rows."""
    gains: Array
    """[ROWS, value_size + 1] gradients of the contexts over the sum of weights, and their part common to all keys."""


class Sums(NamedTuple):
    """Gradients of the inputs up to factors; float64, added to the contents."""

    query: Array
    """[batch, query, size]"""
    key: Array
    """[batch, size + value_size, key] of keys, then of values."""
    kernel: Array
    """[batch, query, 2] sums of slopes times exponents, and of slopes times squares"""


class Span(NamedTuple):
    """Keys of one row in one tile; unsigned, because checks for negative indices would prevent vectorisation."""

    tile: Any
    """First key of the tile; key j is at j - tile in a buffer."""
    first: Any
    last: Any
    """Index after the last key."""
