"""Image encoder of models: annotation vectors of regions, from pixels or from precomputed features."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.layers.picture import PictureEncoder, RegionEncoder
from heedful.models.inputs import FeatureInputs, Inputs, PixelInputs


@final
class ImageEncoder(nn.Module):
    """Encoder of the kind of images that the data has."""

    def __init__(
        self,
        num_channels: int,
        region_size: int,
        num_regions: int,
        size: int,
        num_blocks: int,
        dropout: float,
    ) -> None:
        """Make the encoder.

        Args:
            num_channels: colour channels of a picture, or precomputed features of a region.
            region_size: side of a region in pixels; 0 = precomputed features.
            num_regions: regions of a picture; 0 = any number.
            size: features of an annotation vector.
            num_blocks: convolutions at the resolution of regions.
            dropout: probability in [0, 1) of leaving out a feature of an annotation vector.
        """
        super().__init__()
        self.inner = (
            PictureEncoder(num_channels, region_size, num_regions, size, num_blocks, dropout)
            if region_size
            else RegionEncoder(num_channels, size, dropout)
        )

    def forward(self, inputs: Inputs) -> tuple[Float[Tensor, "source region size"], Int[Tensor, " source"]]:
        """Encode images.

        Args:
            inputs: pictures, or precomputed features.

        Returns:
            [source, region, size] annotation vectors, and [source] numbers of real regions.

        Raises:
            TypeError: the images are of another kind.
        """
        if isinstance(inputs, PixelInputs) and isinstance(self.inner, PictureEncoder):
            vectors = self.inner(inputs.pixels)
            return vectors, torch.full_like(vectors[:, 0, 0], vectors.shape[1], dtype=torch.int64)
        if isinstance(inputs, FeatureInputs) and isinstance(self.inner, RegionEncoder):
            return self.inner(inputs.features.to(self.inner.map.weight.dtype)), inputs.num_regions
        raise TypeError(f"{type(self.inner).__name__}: got {type(inputs).__name__}")
