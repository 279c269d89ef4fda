"""Shapes and ranges that the kernels of distance attention take, compared in compiled code.

Python takes 3 us to compare more than ten arrays, compiled code some nanoseconds.
"""

from numba import njit

from heedful.attention.kernels.distance.arrays import ROWS, ForwardResult, OutputGradients, Points, Room, Sums
from heedful.cpu.numba_ranges import are_bounds_within


@njit
def are_inputs_right(points: Points, row: int, end: int, result: ForwardResult) -> bool:
    """Tell whether the shapes of both kernels' arrays agree, and rows and bounds are in range.

    Args:
        points: queries, keys and values.
        row: first query, counted across the batch.
        end: one past the last query.
        result: contexts and sums of weights.
    """
    num_elements, num_queries, size = points.query.shape
    value_size, pitch = points.value.shape[1:]
    rows = (num_elements, num_queries)
    return (
        value_size > 0
        and 0 <= row <= end <= num_elements * num_queries
        and points.key.shape == (num_elements, size, pitch)
        and points.value.shape[0] == num_elements
        and points.start.shape == points.stop.shape == rows
        and result.context.shape == (num_elements, num_queries, value_size)
        and result.nearest.shape == result.totals.shape == rows
        and are_bounds_within(points.start, points.stop, pitch + 1)
    )


@njit
def are_gradients_right(points: Points, grads: OutputGradients, room: Room, sums: Sums) -> bool:
    """Tell whether the shapes of the arrays of `backward` alone agree with those of its inputs.

    Args:
        points: queries, keys and values.
        grads: gradients of the outputs.
        room: work arrays.
        sums: gradients of the inputs.
    """
    num_elements, num_queries, size = points.query.shape
    value_size, pitch = points.value.shape[1:]
    num_keys = room.costs.shape[0]
    return (
        grads.context.shape == (num_elements, num_queries, value_size)
        and grads.log_normalizer.shape == (num_elements, num_queries)
        and room.weights.shape == room.slopes.shape == (4, num_keys)
        and room.local.shape == (size + value_size, num_keys)
        and room.gains.shape == (ROWS, value_size + 1)
        and sums.query.shape == points.query.shape
        and sums.key.shape[:2] == (num_elements, size + value_size)
        and sums.key.shape[2] <= pitch
        and sums.kernel.shape == (num_elements, num_queries, 2)
    )
