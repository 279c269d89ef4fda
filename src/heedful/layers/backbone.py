"""Encoder of pictures by a network of timm, the collection of image models. Wightman 2019."""

import math
from typing import Any, Final, final

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from heedful.errors import ConfigError, needed_for
from heedful.layers.dropout import dropout
from heedful.layers.picture import scaled_pixels
from heedful.layers.positions import LearnedPositions

PREFIX: Final = "timm:"
"""Beginning of the names of backbones that timm builds."""
_MOST_GROUPS: Final = 8
_SIDE: Final = 4
"""Side in regions of the picture that a new network is tried on."""


@final
class BackboneEncoder(nn.Module):
    """First stages of a network of timm, up to the size of a region, a linear map, and a learned vector for each place.

    The weights are random. Normalisation over batches becomes normalisation over groups of channels (Wu and He 2018,
    arXiv:1803.08494), so that an image gets the same features alone and in a batch, and all state is in parameters.

    Example:
        >>> layer = BackboneEncoder("resnet18", 3, 8, num_regions=16, size=12)  # doctest: +SKIP
        >>> list(layer(torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape)  # doctest: +SKIP
        [2, 16, 12]
    """

    def __init__(
        self, name: str, channels: int, region_size: int, num_regions: int, size: int, dropout: float = 0.0
    ) -> None:
        """Build the network.

        Args:
            name: such as "timm:resnet18".
            channels: colour channels of a picture.
            region_size: side of a region in pixels, which is the reduction of one stage of the network.
            num_regions: most regions of a picture; each has a learned vector.
            size: features of a region.
            dropout: probability in [0, 1) of leaving out a feature of a region.

        Raises:
            ConfigError: there is no such network, none of its stages has regions of this size, or it has state that no
                parameter holds.
            MissingExtra: timm is not installed.
        """
        super().__init__()
        self.dropout = dropout
        self.network, width = _stages(name, channels, region_size)
        self.leave = nn.Linear(width, size)
        self.positions = LearnedPositions(size, num_regions)

    def forward(self, pixels: UInt8[Tensor, "batch channel row column"]) -> Float[Tensor, "batch region size"]:
        """Encode pictures.

        Args:
            pixels: [batch, channel, row, column] from 0 to 255.

        Returns:
            [batch, region, size], regions row by row.
        """
        (maps,) = self.network(scaled_pixels(pixels, self.leave.weight.dtype))
        vectors = self.positions(self.leave(maps.flatten(2).transpose(1, 2)))
        return dropout(vectors, self.dropout, self.training)


def _stages(name: str, channels: int, region_size: int) -> tuple[nn.Module, int]:
    """Stages of a network up to regions of a size, and the number of features there.

    Raises:
        ConfigError: there is no such network, or it does not fit.
        MissingExtra: timm is not installed.
    """
    with needed_for(f"model.backbone={name}"):
        import timm  # pyright: ignore[reportMissingImports]
    build: Any = timm.create_model  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    options: dict[str, Any] = {"pretrained": False, "features_only": True, "in_chans": channels}
    try:
        try:  # Transformers are made for one size of pictures, unless they are told otherwise
            whole = build(name.removeprefix(PREFIX), **options, dynamic_img_size=True)
            options["dynamic_img_size"] = True
        except TypeError:
            whole = build(name.removeprefix(PREFIX), **options)
        reductions: list[int] = [*whole.feature_info.reduction()]
        if region_size not in reductions:
            sizes = ", ".join(map(str, dict.fromkeys(reductions)))
            raise ConfigError(
                f"model.backbone: the stages of {name} have regions of {sizes} pixels, not of {region_size}; set "
                "images.region_size to one of them"
            )
        index = len(reductions) - 1 - reductions[::-1].index(region_size)
        network = build(name.removeprefix(PREFIX), **options, out_indices=(index,))
        _normalize_groups(network)
        _drop_unused(network, channels, region_size)
    except (AssertionError, AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"model.backbone: timm builds no stages of {name.removeprefix(PREFIX)} ({reason})") from None
    known = dict(network.named_parameters(remove_duplicate=False))
    if others := [key for key in network.state_dict() if key not in known]:
        raise ConfigError(f"model.backbone: {name} has state beside its parameters ({others[0]}); choose another")
    return network, int(network.feature_info.channels()[-1])


def _drop_unused(network: nn.Module, channels: int, region_size: int) -> None:
    """Remove the modules, in place, that have no part in the features, such as later stages: none would be trained.

    Raises:
        ValueError: regions have another size than the network says.
    """
    device = next(network.parameters()).device
    side = _SIDE * region_size
    with torch.enable_grad():
        (maps,) = network(torch.zeros(1, channels, side, side, device=device))
        maps.sum().backward()
    for module in [*network.modules()]:
        for name, part in module.named_children():
            parameters = [*part.parameters()]
            if parameters and all(parameter.grad is None for parameter in parameters):
                setattr(module, name, nn.Identity())
    network.zero_grad()
    if maps.shape[-2:] != (_SIDE, _SIDE):
        raise ValueError(f"{side} x {side} pixels become {maps.shape[-2]} x {maps.shape[-1]} regions")


def _normalize_groups(network: nn.Module) -> None:
    """Replace each normalisation over batches, in place, with what follows it in the same module."""
    for module in network.modules():
        for name, part in module.named_children():
            if isinstance(part, nn.BatchNorm2d):
                groups = math.gcd(part.num_features, _MOST_GROUPS)
                # Modules of timm may hold the dropout and the activation that follow.
                after = [each for each in (getattr(part, "drop", None), getattr(part, "act", None)) if each is not None]
                setattr(module, name, nn.Sequential(nn.GroupNorm(groups, part.num_features, part.eps), *after))
