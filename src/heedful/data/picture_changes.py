"""Random changes of training pictures, after which their captions are still right: place, slant, contrast, noise."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

MOST_SHIFT: Final = 0.05
"""Largest shift, as a share of each side."""
MOST_TURN: Final = 0.06
"""Largest angle in radians; a larger one would make "on the left" wrong."""
MOST_SLANT: Final = 0.2
"""Largest shift to the side of a row, in rows of its distance from the middle."""
MOST_STRETCH: Final = 0.12
"""Largest change of each side, as a share of it."""
CONTRAST: Final = (0.7, 1.2)
MOST_LIGHT: Final = 20.0
"""Largest change of brightness, of 255."""
MOST_NOISE: Final = 12.0
"""Largest standard deviation of the noise of a pixel, of 255."""


def change_pictures(pixels: NDArray[np.uint8], share: float, generator: np.random.Generator) -> NDArray[np.uint8]:
    """Change pictures at random.

    Args:
        pixels: [batch, channel, row, column].
        share: probability in [0, 1] that a picture is changed.
        generator: random numbers.

    Returns:
        [batch, channel, row, column]; what comes in from outside continues the edge.
    """
    chosen = np.flatnonzero(generator.random(len(pixels)) < share)
    if not len(chosen):
        return pixels
    changed = pixels.copy()
    moved = _moved(pixels[chosen], generator)
    each = (len(chosen), 1, 1, 1)
    middle = moved.mean(axis=(1, 2, 3), keepdims=True)
    contrast = generator.uniform(*CONTRAST, each).astype(np.float32)
    light = generator.uniform(-MOST_LIGHT, MOST_LIGHT, each).astype(np.float32)
    noise = generator.standard_normal(moved.shape, dtype=np.float32)
    noise *= generator.uniform(0.0, MOST_NOISE, each).astype(np.float32)
    changed[chosen] = ((moved - middle) * contrast + (middle + light) + noise).clip(0.0, 255.0).astype(np.uint8)
    return changed


def _moved(pixels: NDArray[np.uint8], generator: np.random.Generator) -> NDArray[np.float32]:
    """Pictures that are shifted, turned, slanted and stretched, each by its own affine map, interpolated bilinearly."""
    number, _, num_rows, num_columns = pixels.shape

    def draw(most: float) -> NDArray[np.float32]:
        return generator.uniform(-most, most, (number, 1, 1)).astype(np.float32)

    turn, slant = draw(MOST_TURN), draw(MOST_SLANT)
    high, wide = 1.0 + draw(MOST_STRETCH), 1.0 + draw(MOST_STRETCH)
    down, right = num_rows * draw(MOST_SHIFT), num_columns * draw(MOST_SHIFT)
    row = (np.arange(num_rows, dtype=np.float32) - (num_rows - 1) / 2)[None, :, None]
    column = (np.arange(num_columns, dtype=np.float32) - (num_columns - 1) / 2)[None, None, :]
    from_row = (row + turn * column) * high + (num_rows - 1) / 2 + down
    from_column = (column - turn * row + slant * row) * wide + (num_columns - 1) / 2 + right
    top, first = np.floor(from_row).astype(np.int64), np.floor(from_column).astype(np.int64)
    share_below, share_after = (from_row - top)[:, None], (from_column - first)[:, None]
    pictures = np.arange(number)[:, None, None]

    def at(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float32]:
        inside = rows.clip(0, num_rows - 1), columns.clip(0, num_columns - 1)
        return np.moveaxis(pixels[pictures, :, inside[0], inside[1]], -1, 1).astype(np.float32)

    upper = at(top, first) * (1 - share_after) + at(top, first + 1) * share_after
    lower = at(top + 1, first) * (1 - share_after) + at(top + 1, first + 1) * share_after
    return upper * (1 - share_below) + lower * share_below
