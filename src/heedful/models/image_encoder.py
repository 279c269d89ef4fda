"""Image encoder of models: annotation vectors of regions, from pixels or from precomputed features."""

import re
from typing import Annotated, Final, final

import torch
from jaxtyping import Bool, Float, Int
from pydantic import AfterValidator
from torch import Tensor, nn

from heedful.errors import ConfigError
from heedful.layers.backbone import PREFIX, BackboneEncoder
from heedful.layers.picture import PictureEncoder, RegionEncoder, inked_regions
from heedful.layers.region_context import RegionContext
from heedful.layers.row_context import RowContext
from heedful.models.inputs import FeatureInputs, Inputs, PixelInputs

_NAME: Final = re.compile(r"[A-Za-z0-9_.\-]{1,100}")


def _checked(name: str) -> str:
    """Check the name of a backbone.

    Raises:
        ValueError: it is none of timm.
    """
    if name and not (name.startswith(PREFIX) and _NAME.fullmatch(name, len(PREFIX))):
        advice = f"; for the network {name} of timm, write {PREFIX}{name}" if _NAME.fullmatch(name) else ""
        raise ValueError(f"expected {PREFIX} and the name of a network, or nothing, got {name!r}{advice}")
    return name


Backbone = Annotated[str, AfterValidator(_checked)]
"""Name that a configuration may give a backbone; empty = our own encoder."""


@final
class ImageEncoder(nn.Module):
    """Encoder of the kind of images that the data has."""

    def __init__(
        self,
        num_channels: int,
        region: tuple[int, int],
        num_regions: int,
        size: int,
        num_blocks: int,
        dropout: float,
        backbone: str = "",
        num_layers: int = 0,
        num_row_layers: int = 0,
    ) -> None:
        """Make the encoder.

        Args:
            num_channels: colour channels of a picture, or precomputed features of a region.
            region: height and width of a region in pixels; (0, 0) = precomputed features.
            num_regions: regions of a picture; 0 = any number.
            size: features of an annotation vector.
            num_blocks: convolutions at the resolution of regions.
            dropout: probability in [0, 1) of leaving out a feature of an annotation vector.
            backbone: network of timm that replaces our own, such as "timm:resnet18"; empty = our own.
            num_layers: layers of self-attention over the regions.
            num_row_layers: bidirectional recurrent layers over the regions of each row.

        Raises:
            ConfigError: the backbone is unknown, does not fit, or the data have features instead of pictures.
            MissingExtra: timm is not installed.
        """
        super().__init__()
        is_picture = region[0] > 0
        if not is_picture:
            if backbone:
                raise ConfigError(f"model.backbone: {backbone} reads pictures, but the data are features; leave it out")
            self.inner = RegionEncoder(num_channels, size, dropout)
        elif backbone:
            self.inner = BackboneEncoder(backbone, num_channels, _square(region), num_regions, size, dropout)
        else:
            self.inner = PictureEncoder(num_channels, region, num_regions, size, num_blocks, dropout)
        self.region: Final = region
        self.rows = RowContext(size, num_row_layers, dropout) if num_row_layers else None
        # Pictures have learned places already.
        self.context = RegionContext(size, num_layers, dropout, not is_picture) if num_layers else None

    def forward(self, inputs: Inputs) -> tuple[Float[Tensor, "source region size"], Int[Tensor, " source"]]:
        """Encode images.

        Args:
            inputs: pictures, or precomputed features.

        Returns:
            [source, region, size] annotation vectors, and [source] numbers of real regions.

        Raises:
            TypeError: the images are of another kind.
        """
        vectors, num_regions = self._regions(inputs)
        if self.rows is not None:
            num_columns = inputs.pixels.shape[3] // self.region[1] if isinstance(inputs, PixelInputs) else 0
            vectors = self.rows(vectors, num_regions, num_columns)
        return (vectors if self.context is None else self.context(vectors, num_regions)), num_regions

    def _regions(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Vectors of regions, each without its context, and numbers of regions.

        Raises:
            TypeError: the images are of another kind.
        """
        if isinstance(inputs, PixelInputs) and isinstance(self.inner, PictureEncoder | BackboneEncoder):
            vectors = self.inner(inputs.pixels)
            return vectors, torch.full_like(vectors[:, 0, 0], vectors.shape[1], dtype=torch.int64)
        if isinstance(inputs, FeatureInputs) and isinstance(self.inner, RegionEncoder):
            return self.inner(inputs.features.to(self.inner.map.weight.dtype)), inputs.num_regions
        raise TypeError(f"{type(self.inner).__name__}: got {type(inputs).__name__}")

    def without_background(self, inputs: Inputs) -> Bool[Tensor, "source region"]:
        """Find the regions of pictures that show something.

        Returns:
            [source, region] True for regions of ink and those beside them; see `inked_regions`.

        Raises:
            TypeError: the images are precomputed features.
        """
        if not isinstance(inputs, PixelInputs):
            raise TypeError(f"the background of {type(inputs).__name__} is not known")
        return inked_regions(inputs.pixels, self.region)


def _square(region: tuple[int, int]) -> int:
    """Side of a square region.

    Raises:
        ConfigError: the region is not square.
    """
    if region[0] != region[1]:
        raise ConfigError(
            f"images.region_height: backbones have square regions, not of {region[0]} x {region[1]} pixels; set it to 0"
        )
    return region[0]
