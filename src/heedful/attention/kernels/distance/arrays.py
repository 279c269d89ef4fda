"""What goes into the loops of distance attention and comes out: NumPy arrays with names."""

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
"""Profiles. A power is that of the inverse temperature; those before boxcar are exponentials."""

LIFT: Final = 11
"""Exponential weights stay below 2^-10.5, so that a tile of values at the end of the range still has a sum."""
FAR: Final = 2.0**22
"""Largest rate * cost, in bits, from which another may be subtracted."""
ROWS: Final = 64
"""Queries that walk through the keys together: a tile of keys is fetched once for all of them."""


class Points(NamedTuple):
    """What attends to what, C-contiguous; within a loop without the batch axis."""

    query: Array
    """[batch, query, size]"""
    key: Array
    """[batch, size, key]; rows may be longer than there are keys."""
    value: Array
    """[batch, value_size, key], value_size at least 1."""
    start: Array
    """[batch, query] int64, first key a query may attend, at least 0."""
    stop: Array
    """[batch, query] int64, one past the last, at most the number of keys."""


class Kernel(NamedTuple):
    """The shape of the weights."""

    profile: int
    whole: Any
    """What differences are taken from: the bandwidth (triangular), else its square."""
    crumb: Any
    """What that lost in rounding."""
    bound: Any
    """Squares from here on surely have no weight, if the kernel is compact."""
    lowest: Any
    """The exponent whose power of two counts as 0: one below that of the smallest normal number."""
    farthest: Any
    """The largest number."""
    is_finite: bool
    """Whether every coordinate is finite; then tiles of no weight are left out."""


class Found(NamedTuple):
    """What attention found."""

    context: Array
    """[batch, query, value_size]"""
    nearest: Array
    """[batch, query] smallest cost of an exponential kernel"""
    totals: Array
    """[batch, query] float64, sums of weights; 0 where no key has weight."""


class Given(NamedTuple):
    """Gradients that come in, and which are wanted."""

    context: Array
    """[batch, query, value_size]"""
    log_normalizer: Array
    """[batch, query] float64"""
    wants_slopes: bool
    """Any but that of the values."""
    wants_points: bool
    wants_value: bool


class Room(NamedTuple):
    """Arrays to work in, of one part."""

    costs: Array
    """[key]"""
    weights: Array
    """[4, key]"""
    slopes: Array
    """[4, key]"""
    local: Array
    """[size + value_size, key] what a block of rows gives to keys and values"""
    gains: Array
    """[ROWS, value_size + 1] gradients of the contexts, and their part that all keys share, over the sum of weights"""


class Sums(NamedTuple):
    """Gradients that go out, but for factors; float64, added to what is there."""

    query: Array
    """[batch, query, size]"""
    key: Array
    """[batch, size + value_size, key] of keys, then of values"""
    kernel: Array
    """[batch, query, 2] sums of slopes times exponents, and of slopes times squares"""


class Span(NamedTuple):
    """Keys of one row in one tile. Unsigned: Numba then looks for no negative index, which no vector would survive."""

    tile: Any
    """The first key of the tile; key j stands at j - tile in a buffer."""
    first: Any
    last: Any
    """One past the last."""
