"""Reading of images: pictures as pixels of one size, and precomputed features of regions from NumPy's `.npy` files."""

import io
import math
import os
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from heedful.config.base import Config
from heedful.data.scaled_pictures import fitted, turned_size
from heedful.errors import DataError, FileRefused, needed_for
from heedful.files.bounded_read import open_regular

MOST_PIXELS: Final = 50_000_000
"""Largest number of pixels of a picture that is decoded; a small file may claim billions."""
_BYTES_OF_PIXEL: Final = {"WEBP": 16, "progressive JPEG": 12}
"""Bytes of a pixel while a picture is decoded, where they are more than four: these decoders keep copies of all."""
MOST_REGIONS: Final = 10_000
FEATURES_SUFFIX: Final = ".npy"
_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")


class ImageConfig(Config):
    """Settings of images."""

    kind: Literal["pixels", "features"] = "pixels"
    """Pictures, or arrays of precomputed features."""
    height: int = Field(default=64, ge=1, le=4096)
    """Rows of pixels; pictures are scaled to fit, without distortion."""
    width: int = Field(default=64, ge=1, le=4096)
    """Columns of pixels."""
    channels: Literal[1, 3] = 3
    """Colour channels: 1 = grey, 3 = red, green and blue."""
    region_size: int = Field(default=8, ge=1, le=256)
    """Side of a region that the decoder may attend to, in pixels: a power of two that divides height and width."""
    region_height: int = Field(default=0, ge=0, le=256)
    """Height of a region, a power of two that divides the height; 0 = `region_size`. With the height of the picture,
    regions are its columns, as suits a line of text: Shi et al. 2015, arXiv:1507.05717, section 2.1."""
    num_features: int = Field(default=1, ge=1, le=65536)
    """Numbers per region of precomputed features."""

    @model_validator(mode="after")
    def _check_regions(self) -> Self:
        for name in ("region_size", "region_height"):
            if getattr(self, name) & (getattr(self, name) - 1):
                raise ValueError(f"{name} {getattr(self, name)} is no power of two")
        rows, columns = self.region
        if self.height % rows or self.width % columns:
            sizes = f"{rows}" if rows == columns else f"{rows} and {columns}"
            raise ValueError(f"height {self.height} and width {self.width} must be multiples of {sizes}")
        return self

    @property
    def region(self) -> tuple[int, int]:
        """Rows and columns of pixels of a region."""
        return self.region_height or self.region_size, self.region_size

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of a stored row: a whole picture [channel, row, column], or the features of a region."""
        is_picture = self.kind == "pixels"
        return (self.channels, self.height, self.width) if is_picture else (self.num_features,)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of regions; (1, 0) for precomputed features, whose places are unknown."""
        is_picture = self.kind == "pixels"
        rows, columns = self.region
        return (self.height // rows, self.width // columns) if is_picture else (1, 0)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Sizes for a model: channels or features, rows and columns of a region (0 = features), regions (0 = any)."""
        rows, columns = self.grid
        if self.kind == "features":
            return self.num_features, 0, 0, rows * columns
        return self.channels, *self.region, rows * columns


def stack_features(features: Sequence[NDArray[np.float32]], width: int = 0) -> tuple[NDArray[Any], ...]:
    """Pad the features of several images.

    Args:
        features: [region, feature] of each image, one image or more.
        width: least number of regions of the result.

    Returns:
        [image, region, feature] float32, padded with 0, and [image] numbers of real regions.

    Example:
        >>> padded, lengths = stack_features([np.ones((1, 2), np.float32), np.ones((3, 2), np.float32)])
        >>> padded.shape, lengths.tolist()
        ((2, 3, 2), [1, 3])
    """
    lengths = np.array([len(each) for each in features], dtype=np.int64)
    size = features[0].shape[1] if features else 0
    padded = np.zeros((len(features), max(width, int(lengths.max(initial=0))), size), dtype=np.float32)
    for row, each in zip(padded, features, strict=True):
        row[: len(each)] = each
    return padded, lengths


def inside(folder: Path, name: str, where: str) -> Path:
    """Find the file that a row names.

    Args:
        name: path in the row, relative to that folder.

    Raises:
        DataError: the path is empty or leads out of the folder.
    """
    root = os.path.abspath(folder)
    path = os.path.normpath(os.path.join(root, name.strip()))
    if not name.strip() or "\0" in name or os.path.commonpath((root, path)) != root or path == root:
        raise DataError(f"{where}: {name!r} is no path inside {folder}; put images beside the file that names them")
    return folder / os.path.relpath(path, root)


def read_image(path: Path, config: ImageConfig, where: str = "") -> NDArray[Any]:
    """Read one image.

    Args:
        path: file of a picture, or of features.
        config: expected kind and sizes.
        where: file and line that name the image, for messages.

    Returns:
        [1, channel, row, column] uint8, or [region, feature] float32.

    Raises:
        DataError: the file is missing, no image, truncated, too large, or of the other kind.
        MissingExtra: Pillow, which reads pictures, is not installed.
    """
    is_features = path.suffix.lower() == FEATURES_SUFFIX
    prefix = f"{where}: {path}" if where else str(path)
    if is_features != (config.kind == "features"):
        raise DataError(f"{prefix}: this data has {config.kind}; give {_KINDS[config.kind]}")
    _check_regular(path, prefix)
    return (
        checked_features(_load_features(path, prefix), config, prefix)
        if is_features
        else _read_pixels(path, config, prefix)
    )


def read_picture(content: bytes, config: ImageConfig, name: str = "picture") -> NDArray[np.uint8]:
    """Read a picture in memory.

    Args:
        content: content of its file.
        config: expected sizes; of pixels.
        name: name of the picture, for messages.

    Returns:
        [1, channel, row, column] uint8.

    Raises:
        DataError: it is no picture, truncated or too large.
        MissingExtra: Pillow is not installed.
    """
    return _read_pixels(content, config, name)


def check_picture(content: bytes, most_pixels: int, most_bytes: int, name: str = "picture") -> None:
    """Check the size of a picture in memory by its head, before anything is decoded.

    Args:
        content: content of its file.
        most_pixels: largest number of pixels.
        most_bytes: largest memory that decoding may take for each megabyte of the file, or part of one.

    Raises:
        DataError: it is no picture, or too large.
        MissingExtra: Pillow is not installed.
    """
    needed = _opened(content, name, _decoded_bytes, most_pixels)
    allowed = most_bytes * math.ceil(len(content) / 1_000_000)
    if needed > allowed:
        raise DataError(
            f"{name}: decoding takes {needed / 1e6:.0f} MB, and a file of this size may take {allowed / 1e6:.0f}; "
            "scale it down"
        )


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Write a picture in memory.

    Args:
        pixels: [1, channel, row, column], as `read_image` returns them.

    Raises:
        MissingExtra: Pillow is not installed.
    """
    with needed_for("images"):
        from PIL import Image
    rows = pixels[0].transpose(1, 2, 0)
    stream = io.BytesIO()
    Image.fromarray(rows[..., 0] if rows.shape[-1] == 1 else rows).save(stream, "PNG")
    return stream.getvalue()


def upright_size(path: Path, where: str) -> tuple[int, int]:
    """Read the width and height of a picture, turned as its camera says.

    Args:
        where: file and line that name the image, for messages.

    Returns:
        Columns and rows of pixels.

    Raises:
        DataError: as for `read_image`.
    """
    prefix = f"{where}: {path}"
    _check_regular(path, prefix)
    return _opened(path, prefix, turned_size)


def look_at(path: Path, where: str) -> dict[str, Any]:
    """Inspect an image for the settings that suit it.

    Args:
        path: file of a picture, or of features.
        where: file and line that name the image, for messages.

    Returns:
        Values of `ImageConfig`: its kind, and the number of features, or height, width and channels.

    Raises:
        DataError: as for `read_image`.
    """
    prefix = f"{where}: {path}"
    _check_regular(path, prefix)
    if path.suffix.lower() == FEATURES_SUFFIX:
        return {"kind": "features", "num_features": _load_features(path, prefix).shape[1]}
    return _opened(path, prefix, _about)


_KINDS: Final = {"pixels": "a picture such as PNG or JPEG", "features": f"an array of features, {FEATURES_SUFFIX}"}


def _check_regular(path: Path, prefix: str) -> None:
    """Refuse what is no file with content.

    Raises:
        DataError: the file is missing, empty, a folder or a device.
    """
    try:
        with open_regular(path) as stream:
            is_empty = not stream.read(1)
    except (OSError, FileRefused) as error:
        reason = getattr(error, "strerror", None) or "no regular file"
        raise DataError(f"{prefix}: {reason}; correct the path, or leave the row out") from None
    if is_empty:
        raise DataError(f"{prefix}: empty file; copy the image again, or leave the row out")


def _opened(source: Path | bytes, prefix: str, use: Callable[[Any], Any], most_pixels: int = MOST_PIXELS) -> Any:
    """Open a picture without decoding it, and use its first frame.

    Raises:
        DataError: it is no picture, truncated or too large.
    """
    with needed_for("reading images"):
        from PIL import Image
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # our own limit is lower than that of Pillow's warning
            with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=_FORMATS) as picture:
                if picture.width * picture.height > most_pixels:
                    raise DataError(
                        f"{prefix}: {picture.width:,} x {picture.height:,} pixels are too many; scale it down to at "
                        f"most {most_pixels:,}"
                    )
                return use(picture)
    except Image.DecompressionBombError:  # more than about 180 million pixels, which Pillow does not even open
        raise DataError(f"{prefix}: too many pixels; scale it down to at most {most_pixels:,}") from None
    except Image.UnidentifiedImageError:
        raise DataError(f"{prefix}: no picture; give {', '.join(_FORMATS)}, or features as .npy") from None
    except (OSError, SyntaxError, ValueError, EOFError, IndexError) as error:  # what Pillow's decoders raise
        reason = str(error).partition("\n")[0]
        raise DataError(f"{prefix}: truncated or damaged picture ({reason}); copy it again") from None


def _decoded_bytes(picture: Any) -> int:
    """Memory that Pillow and the decoder below it take, at most, as measured."""
    kind = f"progressive {picture.format}" if picture.info.get("progressive") else picture.format
    return picture.width * picture.height * _BYTES_OF_PIXEL.get(kind, 4)


def _about(picture: Any) -> dict[str, Any]:
    is_grey = picture.mode in ("1", "L", "LA", "I;16", "I", "F")
    width, height = turned_size(picture)
    return {"kind": "pixels", "height": height, "width": width, "channels": 1 if is_grey else 3}


def picture_pixels(picture: Any, config: ImageConfig, prefix: str) -> NDArray[np.uint8]:
    """Convert a picture in memory, as `read_image` reads one from a file.

    Args:
        picture: Pillow's image, or a uint8 array [row, column], or [row, column, channel] of 3 or 4 channels.

    Returns:
        [1, channel, row, column] uint8.

    Raises:
        DataError: it is neither, empty or too large.
        MissingExtra: Pillow is not installed.
    """
    with needed_for("images"):
        from PIL import Image
    if isinstance(picture, np.ndarray):
        shape, dtype = list(picture.shape), picture.dtype
        if dtype != np.uint8 or not (picture.ndim == 2 or shape[2:] in ([3], [4])) or not picture.size:
            expected = "uint8 [rows, columns], or [rows, columns, 3 or 4 channels]"
            raise DataError(f"{prefix}: shape {shape} of {dtype}; expected a picture as {expected}")
        picture = Image.fromarray(picture)
    if picture.width * picture.height > MOST_PIXELS:
        size = f"{picture.width:,} x {picture.height:,}"
        raise DataError(f"{prefix}: {size} pixels are too many; scale it down to at most {MOST_PIXELS:,}")
    return _pixels(picture, config)


def _read_pixels(source: Path | bytes, config: ImageConfig, prefix: str) -> NDArray[np.uint8]:
    return _opened(source, prefix, partial(_pixels, config=config))


def _pixels(picture: Any, config: ImageConfig) -> NDArray[np.uint8]:
    shown = fitted(picture, config.width, config.height, "L" if config.channels == 1 else "RGB")
    pixels = np.asarray(shown, dtype=np.uint8)
    return pixels[None, None] if config.channels == 1 else pixels.transpose(2, 0, 1)[None]


def _load_features(path: Path, prefix: str) -> NDArray[Any]:
    """Features of a file, not yet read.

    Raises:
        DataError: the file holds no [region, feature] array of numbers.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, SyntaxError, OverflowError, MemoryError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{prefix}: no array of numbers ({reason}); write it with numpy.save") from None
    _check_regions(array, prefix)
    return array


def _check_regions(array: Any, prefix: str) -> None:
    """Refuse what is no [region, feature] array of numbers.

    Raises:
        DataError: it is none, or has too many regions.
    """
    is_array = isinstance(array, np.ndarray)
    shape = list(array.shape) if is_array else "of an archive"
    if not is_array or array.ndim != 2 or not array.size or array.dtype.kind not in "fiu":
        kind = array.dtype if is_array else "several arrays"
        raise DataError(f"{prefix}: shape {shape} of {kind}; expected numbers [regions, features]")
    if len(array) > MOST_REGIONS:
        raise DataError(f"{prefix}: {len(array):,} regions; at most {MOST_REGIONS:,}")


def checked_features(array: NDArray[Any], config: ImageConfig, prefix: str) -> NDArray[np.float32]:
    """Check the features of an image and convert them.

    Args:
        array: [region, feature] numbers.
        config: number of features.

    Returns:
        [region, feature] in float32.

    Raises:
        DataError: the array is no such array, there are more or fewer features, or some are not finite.
    """
    _check_regions(array, prefix)
    if array.shape[1] != config.num_features:
        raise DataError(f"{prefix}: {array.shape[1]} features per region, not {config.num_features} as expected")
    with np.errstate(over="ignore"):
        features = np.array(array, dtype=np.float32)
    if not np.isfinite(features).all():
        raise DataError(f"{prefix}: numbers that are not finite in float32; correct the array")
    return features
