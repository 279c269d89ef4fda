"""Transformer over regions of an image. Vaswani et al. 2017, arXiv:1706.03762; for captions Cornia et al. 2020."""

from typing import Final, Literal, Self, final

from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from heedful.attention.interface import Need
from heedful.config.base import Config
from heedful.models.image_encoder import Backbone, ImageEncoder
from heedful.models.inputs import Inputs, VectorInputs
from heedful.models.interface import Decoded, Memory, Seq2Seq, State
from heedful.models.transformer import Transformer, TransformerConfig, TransformerMemory, TransformerState


class ImageTransformerConfig(Config):
    """Configuration of a Transformer that reads images: a convolutional encoder, then a whole Transformer."""

    kind: Literal["image_transformer"] = "image_transformer"
    layers: TransformerConfig = TransformerConfig(
        num_encoder_layers=1, num_decoder_layers=2, model_size=128, num_heads=4, feedforward_size=512
    )
    """The Transformer, whose first encoder layer reads annotation vectors in the place of words."""
    num_blocks: int = Field(default=2, ge=0, le=100)
    """Convolutions of the image encoder at the resolution of regions."""
    backbone: Backbone = ""
    """Network of timm in the place of our encoder, such as timm:resnet18, with random weights; empty = ours."""

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.layers.model_size % 8:
            raise ValueError(f"layers.model_size {self.layers.model_size} is no multiple of 8")
        if self.layers.tie != "all":
            raise ValueError("layers.tie: an image has no words with an embedding of their own; leave it at all")
        if self.layers.has_copy:
            raise ValueError("layers.has_copy: an image has no words to copy; leave it out")
        return self

    def build(
        self, num_channels: int, region_height: int, region_width: int, num_regions: int, num_tokens: int
    ) -> "ImageTransformer":
        """Build a model with fresh parameters.

        Args:
            num_channels: colour channels of a picture, or precomputed features of a region.
            region_height: height of a region in pixels; 0 = precomputed features.
            region_width: its width.
            num_regions: regions of a picture; 0 = any number.
        """
        return ImageTransformer(self, num_channels, (region_height, region_width), num_regions, num_tokens)


PRESETS: Final[dict[str, ImageTransformerConfig]] = {"image_transformer": ImageTransformerConfig()}


@final
class ImageTransformer(Seq2Seq):
    """A convolutional network turns an image into annotation vectors; a Transformer encodes them and decodes words."""

    def __init__(
        self,
        config: ImageTransformerConfig,
        num_channels: int,
        region: tuple[int, int],
        num_regions: int,
        num_tokens: int,
    ) -> None:
        super().__init__()
        self.config = config
        inner = config.layers
        sizes = (inner.model_size, config.num_blocks, inner.dropout, config.backbone)
        self.image_encoder = ImageEncoder(num_channels, region, num_regions, *sizes)
        # One vocabulary for both sides: the Transformer then has no embedding that nothing would read.
        self.transformer = Transformer(inner, num_tokens, num_tokens, is_shared=True)
        self.output = self.transformer.output
        self.alignment = self.transformer.alignment

    def encode(self, inputs: Inputs) -> TransformerMemory:
        return self.transformer.encode(VectorInputs(*self.image_encoder(inputs)))

    def start(self, memory: Memory, num_hypotheses: int = 1) -> TransformerState:
        return self.transformer.start(memory, num_hypotheses)

    def step(
        self, tokens: Int[Tensor, "source hypothesis"], state: State, memory: Memory, need: tuple[Need, ...] = ()
    ) -> tuple[Decoded, TransformerState]:
        return self.transformer.step(tokens, state, memory, need)

    def forward(self, inputs: Inputs, target_in: Int[Tensor, "batch target"], need: tuple[Need, ...] = ()) -> Decoded:
        return self.transformer(VectorInputs(*self.image_encoder(inputs)), target_in, need)

    def extra_losses(
        self, decoded: Decoded, token_log_probs: Float[Tensor, "batch target"], real: Bool[Tensor, "batch target"]
    ) -> dict[str, Tensor]:
        return self.transformer.extra_losses(decoded, token_log_probs, real)
