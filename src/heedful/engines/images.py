"""Images of a batch as NumPy arrays, the input of engines: pixels, or precomputed features of regions."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.data.images import ImageConfig, stack_features
from heedful.errors import ShapeError
from heedful.search.inputs import InputArrays, InputDraw, IntArray

UNLIMITED: Final = 1 << 40
"""Length hint of an image, because its size says nothing about the length of its caption."""


@final
class PixelArrays(InputArrays):
    """Images of one size as pixels."""

    def __init__(self, pixels: NDArray[np.uint8], region: tuple[int, int]) -> None:
        """Store the images.

        Args:
            pixels: [image, channel, row, column] uint8.
            region: height and width of a region that a decoder may attend to, in pixels; they divide those of images.

        Raises:
            ShapeError: the array has other axes, or its sides are no multiples of the region's.
        """
        if pixels.ndim != 4 or pixels.shape[2] % region[0] or pixels.shape[3] % region[1]:
            raise ShapeError(
                f"pixels {list(pixels.shape)}: expected [image, channel, row, column] with a multiple of {region[0]} "
                f"rows and of {region[1]} columns"
            )
        self.pixels: Final = np.asarray(pixels, dtype=np.uint8)
        self.region: Final = region

    def __len__(self) -> int:
        return len(self.pixels)

    def take(self, rows: Iterable[int]) -> "PixelArrays":
        return PixelArrays(self.pixels[[*rows]], self.region)

    def named_arrays(self) -> dict[str, NDArray[Any]]:
        return {"pixels": self.pixels}

    @property
    def num_positions(self) -> IntArray:
        """[source] number of regions, the same for all images."""
        _, _, height, width = self.pixels.shape
        return np.full(len(self), (height // self.region[0]) * (width // self.region[1]), dtype=np.int64)

    @property
    def length_hint(self) -> IntArray:
        """[source] no limit."""
        return np.full(len(self), UNLIMITED, dtype=np.int64)

    def widened(self, width: int) -> "PixelArrays":
        """Return the same images, which have no padding.

        Args:
            width: number of regions.

        Returns:
            The same object.

        Raises:
            ShapeError: the images have fewer regions.
        """
        if len(self) and width > self.width:
            raise ShapeError(f"images of {self.width} regions cannot be padded to {width}")
        return self

    def with_fillers(self, num_positions: Sequence[int]) -> "PixelArrays":
        fillers = np.zeros((len(num_positions), *self.pixels.shape[1:]), dtype=np.uint8)
        return PixelArrays(np.concatenate((self.pixels, fillers)), self.region)


@final
class FeatureArrays(InputArrays):
    """Images as precomputed feature vectors of their regions."""

    def __init__(self, features: Sequence[NDArray[np.float32]], room: int = 0) -> None:
        """Store the features unpadded; `named_arrays` pads them.

        Args:
            features: [region, feature] of each image, with at least one region each.
            room: least number of regions of the padded array.

        Raises:
            ShapeError: an array has other axes, no region, or another number of features.
        """
        self.features: Final = tuple(np.asarray(each, dtype=np.float32) for each in features)
        for index, each in enumerate(self.features):
            if each.ndim != 2 or not each.size or each.shape[1] != self.features[0].shape[1]:
                raise ShapeError(f"features {index}: shape {list(each.shape)}; expected [region, feature]")
        self._lengths: Final = np.array([len(each) for each in self.features], dtype=np.int64)
        self._room: Final = room

    def __len__(self) -> int:
        return len(self.features)

    def take(self, rows: Iterable[int]) -> "FeatureArrays":
        return FeatureArrays([self.features[row] for row in rows])

    def named_arrays(self) -> dict[str, NDArray[Any]]:
        padded, lengths = stack_features(self.features, self.width)
        return {"features": padded, "num_regions": lengths}

    @property
    def num_positions(self) -> IntArray:
        """[source] number of regions."""
        return self._lengths

    @property
    def length_hint(self) -> IntArray:
        """[source] no limit."""
        return np.full(len(self), UNLIMITED, dtype=np.int64)

    @property
    def width(self) -> int:
        """Regions of the padded array."""
        return max(self._room, super().width)

    def widened(self, width: int) -> "FeatureArrays":
        return FeatureArrays(self.features, width)

    def with_fillers(self, num_positions: Sequence[int]) -> "FeatureArrays":
        size = self.features[0].shape[1] if self.features else 1
        fillers = [np.zeros((number, size), dtype=np.float32) for number in num_positions]
        return FeatureArrays([*self.features, *fillers], self._room)


def image_arrays(rows: Sequence[NDArray[Any]], config: ImageConfig) -> InputArrays:
    """Put images together.

    Args:
        rows: results of `heedful.data.images.read_image`.
    """
    if config.kind == "features":
        return FeatureArrays(rows)
    pixels = np.concatenate(rows) if rows else np.zeros((0, *config.row_shape), dtype=np.uint8)
    return PixelArrays(pixels, config.region)


def image_draw(config: ImageConfig) -> InputDraw:
    """Return a function that draws random images, to try an engine with.

    Returns:
        A function that draws random pixels, whatever the numbers of positions, or normal random features.

    Example:
        >>> config = ImageConfig(height=8, width=16, channels=1, region_size=4)
        >>> image_draw(config)(np.array([1, 1]), np.random.default_rng(0)).num_positions.tolist()
        [8, 8]
    """

    def draw(num_positions: IntArray, generator: np.random.Generator) -> InputArrays:
        if config.kind == "features":
            sizes = [(number, config.num_features) for number in num_positions]
            return image_arrays([generator.standard_normal(size, dtype=np.float32) for size in sizes], config)
        pixels = generator.integers(0, 256, (len(num_positions), *config.row_shape), dtype=np.uint8)
        return image_arrays([*pixels[:, None]], config)

    return draw
