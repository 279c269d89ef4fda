"""Attention drawn over an image: one panel for each word, bright where the model looked."""

from collections.abc import Sequence
from math import ceil, gcd
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import ResourceError, UsageError, needed_for
from heedful.inspection.fonts import choose_fonts
from heedful.inspection.plot import FORMATS, INK, new_figure
from heedful.text.token_labels import readable_labels, shorten

_COLUMNS: Final = 6
_PANEL_INCHES: Final = 1.5
_TITLE_INCHES: Final = 0.3
_DIM: Final = 0.25
"""Brightness of an image where no attention is."""
_LABEL_COLUMNS: Final = 18
_MOST_PANELS: Final = 60


def save_attention_over_image(
    path: Path,
    image: str,
    pieces: Sequence[str],
    weights: NDArray[np.floating],
    grid: tuple[int, int],
    region: tuple[int, int] = (1, 1),
) -> str:
    """Draw an image once for each token of its caption, dimmed where the token did not look.

    Args:
        path: the file; its suffix determines the format.
        pieces: tokens of the caption, of which the first 60 are drawn.
        weights: [token, region] in [0, 1], regions row by row.
        grid: rows and columns of regions; (1, 0) = places unknown, and a heat map is drawn in the image's place.
        region: height and width of a region, by which the image keeps its shape.

    Returns:
        A note that names a font to install, where no installed font has some of the characters; else empty.

    Raises:
        UsageError: the suffix is none that can be drawn.
        MissingExtra: Matplotlib or Pillow is not installed.
        ResourceError: the file cannot be written.
    """
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: cannot draw a {path.suffix or 'file without suffix'}; use {', '.join(FORMATS)}")
    labels = [shorten(label, _LABEL_COLUMNS) for label in readable_labels(pieces)][:_MOST_PANELS]
    fonts = choose_fonts(labels)
    numbers = {label: f"{index}" for index, label in enumerate(labels, start=1) if fonts.missing & {*label}}
    labels = [numbers.get(label, label) for label in labels]
    pixels = _pixels(image, grid, region) if grid[1] else np.ones((1, weights.shape[1], 3))
    maps = [_dimmed(pixels, row.reshape(grid[0], grid[1] or -1)) for row in weights[:_MOST_PANELS]]
    panels = [("", pixels), *zip(labels, maps, strict=True)] if grid[1] else [*zip(labels, maps, strict=True)]
    num_rows = ceil(len(panels) / _COLUMNS)
    height = min(1.0, pixels.shape[0] / pixels.shape[1]) if grid[1] else 1.0  # of a panel, in widths of it
    figure = new_figure(_COLUMNS * _PANEL_INCHES, num_rows * (height * _PANEL_INCHES + _TITLE_INCHES))
    for index, (label, shown) in enumerate(panels):
        axes = figure.add_subplot(num_rows, _COLUMNS, index + 1)
        axes.imshow(shown, vmin=0.0, vmax=1.0, aspect="equal" if grid[1] else "auto")
        title = axes.set_title(label, fontsize=9, color=INK)
        title.set_parse_math(False)  # a $ is a token like any other
        title.set_fontfamily(list(fonts.families))
        axes.set_axis_off()
    try:
        figure.savefig(path, dpi=150, bbox_inches="tight", pad_inches=0.1)
    except OSError as error:
        raise ResourceError(f"{path}: not written: {error.strerror or error}") from None
    return fonts.note


def _pixels(image: str, grid: tuple[int, int], region: tuple[int, int]) -> NDArray[np.float64]:
    """[row, column, colour] of an image in [0, 1], whose sides are multiples of the grid."""
    with needed_for("drawing images"):
        from heedful.data.images import ImageConfig, read_image
    height, width = (number * side // gcd(*region) for number, side in zip(grid, region, strict=True))
    scale = max(1, 256 // max(height, width))
    side = 1 << scale.bit_length() - 1
    config = ImageConfig(height=height * side, width=width * side, channels=3, region_size=side)
    return read_image(Path(image), config)[0].transpose(1, 2, 0) / 255.0


def _dimmed(pixels: NDArray[np.float64], weights: NDArray[np.floating]) -> NDArray[np.float64]:
    """Image with the brightness of each region by its weight, in shares of the largest."""
    height, width = pixels.shape[0] // weights.shape[0], pixels.shape[1] // weights.shape[1]
    largest = max(float(weights.max()), 1e-12)
    shares = np.kron(weights / largest, np.ones((height, width)))[..., None]
    return pixels * (_DIM + (1.0 - _DIM) * shares)
