"""Encoders of images: a small convolutional network over pixels, and a map of precomputed features."""

from typing import Final, final

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor, nn
from torch.nn import functional

from heedful.layers.dropout import dropout
from heedful.layers.positions import LearnedPositions

_NUM_GROUPS: Final = 8
"""Groups of channels that are normalised together."""
_MIDDLE: Final = 127.5
_LEAST_DISTANCE: Final = 64.0
"""Difference of brightness from the background that makes ink."""


@final
class ConvolutionalBlock(nn.Module):
    """h' = relu(norm(convolution(h))), of 3 x 3 pixels, and h' + h where shapes allow; groups of channels normalised.

    Normalisation by groups, Wu and He 2018, arXiv:1803.08494, treats every image by itself, so that an image gets the
    same features alone and in a batch.

    Example:
        >>> layer = ConvolutionalBlock(3, 8, stride=2)
        >>> list(layer(torch.ones(2, 3, 16, 16)).shape)
        [2, 8, 8, 8]
    """

    def __init__(self, size_in: int, size: int, stride: int | tuple[int, int]) -> None:
        """Make the convolution.

        Args:
            size_in: channels before.
            size: channels after, a multiple of 8.
            stride: step between outputs, in pixels, or those down and across; 2 halves both sides.
        """
        super().__init__()
        self.convolution = nn.Conv2d(size_in, size, 3, stride, 1, bias=False)
        self.norm = nn.GroupNorm(_NUM_GROUPS, size)
        self.has_shortcut: Final = stride in (1, (1, 1)) and size_in == size

    def forward(self, vectors: Float[Tensor, "batch _ row column"]) -> Float[Tensor, "batch size _ _"]:
        """Map [batch, channel, row, column] to [batch, size, row / stride, column / stride]."""
        outputs = functional.relu(self.norm(self.convolution(vectors)))
        return outputs + vectors if self.has_shortcut else outputs


@final
class PictureEncoder(nn.Module):
    """Convolutions with strides from pixels to regions, then a learned vector for the place of each region.

    Regions are the annotation vectors of Xu et al. 2015, arXiv:1502.03044, section 3.1.1; blocks without stride have
    the shortcuts of He et al. 2016, arXiv:1512.03385.

    Example:
        >>> layer = PictureEncoder(3, region=(8, 8), num_regions=16, size=16, num_blocks=1)
        >>> list(layer(torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape)
        [2, 16, 16]
    """

    def __init__(
        self,
        channels: int,
        region: tuple[int, int],
        num_regions: int,
        size: int,
        num_blocks: int,
        dropout: float = 0.0,
    ) -> None:
        """Make the layers.

        Args:
            channels: colour channels of a picture.
            region: height and width of a region in pixels, powers of two; a halving doubles the channels up to `size`.
            num_regions: most regions of a picture; each has a learned vector.
            size: features of a region, a multiple of 8.
            num_blocks: number of blocks without stride at the end.
            dropout: probability in [0, 1) of leaving out a feature of a region.
        """
        super().__init__()
        self.dropout = dropout
        steps = [*_halvings(region, size), *[(size, (1, 1))] * num_blocks]
        before = [channels, *(width for width, _ in steps)]
        self.blocks = nn.Sequential(
            *(ConvolutionalBlock(entering, *step) for entering, step in zip(before, steps, strict=False))
        )
        self.leave = nn.Linear(before[-1], size)
        self.positions = LearnedPositions(size, num_regions)

    def forward(self, pixels: UInt8[Tensor, "batch channel row column"]) -> Float[Tensor, "batch region size"]:
        """Encode pictures.

        Args:
            pixels: [batch, channel, row, column] from 0 to 255.

        Returns:
            [batch, region, size], regions row by row.
        """
        maps = self.blocks(scaled_pixels(pixels, self.leave.weight.dtype))
        vectors = self.positions(self.leave(maps.flatten(2).transpose(1, 2)))
        return dropout(vectors, self.dropout, self.training)


def _halvings(region: tuple[int, int], size: int) -> list[tuple[int, tuple[int, int]]]:
    """Channels and strides of the convolutions that reduce a region to one pixel: both sides first, then the longer."""
    down, across = (side.bit_length() - 1 for side in region)
    both, most = min(down, across), max(down, across)
    # Where one side alone is left to halve there is room for all channels.
    doublings = [max(0, min(both, most - 1) - index) for index in range(most)]
    widths = [max(_NUM_GROUPS, size >> left) // _NUM_GROUPS * _NUM_GROUPS for left in doublings]
    strides = [(1 + (index < down), 1 + (index < across)) for index in range(most)]
    return [*zip(widths, strides, strict=True)]


def scaled_pixels(
    pixels: UInt8[Tensor, "batch channel row column"], dtype: torch.dtype
) -> Float[Tensor, "batch channel row column"]:
    """Map pixels from 0 to 255 to the interval [-1, 1].

    Args:
        pixels: [batch, channel, row, column].
        dtype: dtype of the result.

    Returns:
        [batch, channel, row, column].
    """
    return (pixels.to(dtype) - _MIDDLE) / _MIDDLE


def inked_regions(
    pixels: UInt8[Tensor, "batch channel row column"], region: tuple[int, int]
) -> Bool[Tensor, "batch region"]:
    """Find the regions of pictures that differ from their background, or that lie beside one that does.

    The background is the mean of the pixels at the border, in each channel; a pixel differs if its distance from it is
    more than a quarter of the range in some channel.

    Args:
        pixels: [batch, channel, row, column] from 0 to 255.
        region: height and width of a region in pixels.

    Returns:
        [batch, region], regions row by row; every region of a picture without any that differs.

    Cost: a few passes over the pixels.

    Example:
        >>> pixels = torch.full((1, 1, 4, 12), 255, dtype=torch.uint8)
        >>> pixels[0, 0, 2, 2] = 0
        >>> inked_regions(pixels, (2, 2)).view(2, 6).int().tolist()
        [[1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0]]
    """
    shades = pixels.float()
    border = torch.cat((shades[:, :, 0], shades[:, :, -1], shades[:, :, :, 0], shades[:, :, :, -1]), dim=-1)
    distance = (shades - border.mean(dim=-1)[..., None, None]).abs().amax(dim=1, keepdim=True)
    largest = functional.max_pool2d(functional.max_pool2d(distance, region), 3, 1, 1).flatten(1)
    inked = largest > _LEAST_DISTANCE
    return inked | ~inked.any(dim=1, keepdim=True)


@final
class RegionEncoder(nn.Module):
    """Linear map of precomputed features, normalised per region.

    The features may be those of detected objects, as in Anderson et al. 2018, arXiv:1707.07998.

    Example:
        >>> layer = RegionEncoder(20, 8)
        >>> list(layer(torch.ones(2, 5, 20)).shape)
        [2, 5, 8]
    """

    def __init__(self, num_features: int, size: int, dropout: float = 0.0) -> None:
        """Make the map.

        Args:
            num_features: precomputed features of a region.
            size: features after.
            dropout: probability in [0, 1) of leaving out a feature of a region.
        """
        super().__init__()
        self.dropout = dropout
        self.map = nn.Linear(num_features, size)
        self.norm = nn.LayerNorm(size)

    def forward(self, features: Float[Tensor, "batch region _"]) -> Float[Tensor, "batch region size"]:
        """Map [batch, region, feature] to [batch, region, size]."""
        return dropout(self.norm(self.map(features)), self.dropout, self.training)
