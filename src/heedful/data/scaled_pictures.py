"""Pictures scaled to fit: upright, opaque and centred, without a second copy of a large one."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_BAND: Final = 1 << 18
"""Pixels that are converted at a time."""
_OPAQUE: Final = 65535 / 255
_ORIENTATION: Final = 0x0112
"""Tag of EXIF that says how to turn a picture."""
_METHODS: Final = (
    "FLIP_LEFT_RIGHT",
    "ROTATE_180",
    "FLIP_TOP_BOTTOM",
    "TRANSPOSE",
    "ROTATE_270",
    "TRANSVERSE",
    "ROTATE_90",
)
"""Pillow's names of what turns a picture upright, for the tag's values from 2 on."""
_SIDEWAYS: Final = (5, 6, 7, 8)
"""Values of the tag for pictures that are turned by a quarter."""
_FROM_BELOW: Final = (3, 4, 7, 8)
"""Values of the tag for pictures whose upper edge is stored last."""


def fit(size: tuple[int, int], width: int, height: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Scale a picture to fit, without distortion, and centre it.

    Returns:
        Width and height of the scaled picture, and the column and row of its upper left corner.

    Example:
        >>> fit((100, 50), 48, 48)
        ((48, 24), (0, 12))
    """
    scale = min(width / size[0], height / size[1])
    scaled = max(1, round(size[0] * scale)), max(1, round(size[1] * scale))
    return scaled, ((width - scaled[0]) // 2, (height - scaled[1]) // 2)


def turned_size(picture: Any) -> tuple[int, int]:
    """Width and height of a picture of Pillow's that is turned as its camera says."""
    is_sideways = _orientation(picture) in _SIDEWAYS
    return (picture.height, picture.width) if is_sideways else (picture.width, picture.height)


def fitted(picture: Any, width: int, height: int, mode: str) -> Any:
    """Scale a picture to fit and centre it on the most usual colour of its border.

    Bands of rows are turned, converted and made narrow, then all rows together are made few: a large picture is never
    copied, and the values do not depend on the release of Pillow, which makes a tall picture few first since 13.

    Args:
        picture: of Pillow's; its first frame is read.
        width: of the result, in pixels.
        height: of the result.
        mode: "L" for grey or "RGB".

    Returns:
        Picture of that size and mode: upright, and opaque on white.
    """
    from PIL import Image

    picture.seek(0)
    picture.load()
    turned = turned_size(picture)
    size, corner = fit(turned, width, height)
    is_smaller = width < turned[0] or height < turned[1]
    how = Image.Resampling.BOX if is_smaller else Image.Resampling.BILINEAR
    narrow = Image.new(mode, (size[0], turned[1]))
    border: list[NDArray[np.uint8]] = []
    rows = max(1, _BAND // turned[0])
    for top in range(0, turned[1], rows):
        band = _opaque(_upright_rows(picture, top, min(turned[1], top + rows))).convert(mode)
        values = np.asarray(band)
        border += [values[:, 0].copy(), values[:, -1].copy()]
        border += [values[row].copy() for row, is_edge in ((0, not top), (-1, top + rows >= turned[1])) if is_edge]
        narrow.paste(band.resize((size[0], band.height), how), (0, top))
    edges = np.concatenate(border)
    colour = np.median(edges.reshape(len(edges), -1), axis=0).round().astype(int).tolist()
    canvas = Image.new(mode, (width, height), tuple(colour) if len(colour) > 1 else colour[0])
    canvas.paste(narrow.resize(size, how), corner)
    return canvas


def _orientation(picture: Any) -> int:
    value = picture.getexif().get(_ORIENTATION, 1)
    return value if value in range(2, 9) else 1


def _upright_rows(picture: Any, top: int, bottom: int) -> Any:
    """Rows of a picture, counted after it is turned as its camera says."""
    from PIL import Image

    orientation = _orientation(picture)
    is_sideways = orientation in _SIDEWAYS
    length = picture.width if is_sideways else picture.height
    first, last = (length - bottom, length - top) if orientation in _FROM_BELOW else (top, bottom)
    box = (first, 0, last, picture.height) if is_sideways else (0, first, picture.width, last)
    rows = picture.crop(box)
    return rows if orientation == 1 else rows.transpose(Image.Transpose[_METHODS[orientation - 2]])


def _opaque(picture: Any) -> Any:
    """Picture of 8 bits a colour, laid on white where it is transparent."""
    from PIL import Image

    if picture.mode.startswith("I") or picture.mode == "F":  # 16 bits
        values = np.asarray(picture, dtype=np.float64) / _OPAQUE
        return Image.fromarray(values.clip(0.0, 255.0).round().astype(np.uint8))
    if "transparency" in picture.info or picture.mode in ("P", "PA", "LA", "RGBA", "La", "RGBa"):
        coloured = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", coloured.size, "white"), coloured)
    return picture
