"""Image encoder of models: annotation vectors of regions, from pixels or from precomputed features."""

from typing import Final, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.errors import ConfigError
from heedful.layers.backbone import PREFIX, BackboneEncoder
from heedful.layers.picture import PictureEncoder, RegionEncoder
from heedful.models.inputs import FeatureInputs, Inputs, PixelInputs

BACKBONE: Final = rf"^({PREFIX}[A-Za-z0-9_.\-]{{1,100}})?$"
"""Names that a configuration may give a backbone; empty = our own encoder."""


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
        backbone: str = "",
    ) -> None:
        """Make the encoder.

        Args:
            num_channels: colour channels of a picture, or precomputed features of a region.
            region_size: side of a region in pixels; 0 = precomputed features.
            num_regions: regions of a picture; 0 = any number.
            size: features of an annotation vector.
            num_blocks: convolutions at the resolution of regions.
            dropout: probability in [0, 1) of leaving out a feature of an annotation vector.
            backbone: network of timm that replaces our own, such as "timm:resnet18"; empty = our own.

        Raises:
            ConfigError: the backbone is unknown, does not fit, or the data have features instead of pictures.
            MissingExtra: timm is not installed.
        """
        super().__init__()
        if not region_size:
            if backbone:
                raise ConfigError(f"model.backbone: {backbone} reads pictures, but the data are features; leave it out")
            self.inner = RegionEncoder(num_channels, size, dropout)
        elif backbone:
            self.inner = BackboneEncoder(backbone, num_channels, region_size, num_regions, size, dropout)
        else:
            self.inner = PictureEncoder(num_channels, region_size, num_regions, size, num_blocks, dropout)

    def forward(self, inputs: Inputs) -> tuple[Float[Tensor, "source region size"], Int[Tensor, " source"]]:
        """Encode images.

        Args:
            inputs: pictures, or precomputed features.

        Returns:
            [source, region, size] annotation vectors, and [source] numbers of real regions.

        Raises:
            TypeError: the images are of another kind.
        """
        if isinstance(inputs, PixelInputs) and isinstance(self.inner, PictureEncoder | BackboneEncoder):
            vectors = self.inner(inputs.pixels)
            return vectors, torch.full_like(vectors[:, 0, 0], vectors.shape[1], dtype=torch.int64)
        if isinstance(inputs, FeatureInputs) and isinstance(self.inner, RegionEncoder):
            return self.inner(inputs.features.to(self.inner.map.weight.dtype)), inputs.num_regions
        raise TypeError(f"{type(self.inner).__name__}: got {type(inputs).__name__}")
