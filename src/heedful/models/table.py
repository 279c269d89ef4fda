"""Every model by the kind that a configuration names, and every preset of sizes."""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field

from heedful.models import luong, rnn_encoder_decoder, rnnsearch, text_classifier, transformer
from heedful.models.luong import LuongConfig
from heedful.models.rnn_encoder_decoder import RNNEncoderDecoderConfig
from heedful.models.rnnsearch import RNNsearchConfig
from heedful.models.text_classifier import TextClassifierConfig
from heedful.models.transformer import TransformerConfig

AnyModelConfig = TransformerConfig | RNNsearchConfig | LuongConfig | RNNEncoderDecoderConfig | TextClassifierConfig
ModelConfig = Annotated[AnyModelConfig, Field(discriminator="kind")]

MODELS: Final[Mapping[str, type[AnyModelConfig]]] = {
    "transformer": TransformerConfig,
    "rnnsearch": RNNsearchConfig,
    "luong": LuongConfig,
    "rnn_encoder_decoder": RNNEncoderDecoderConfig,
    "text_classifier": TextClassifierConfig,
}
PRESETS: Final[Mapping[str, AnyModelConfig]] = {
    **transformer.PRESETS,
    **rnnsearch.PRESETS,
    **luong.PRESETS,
    **rnn_encoder_decoder.PRESETS,
    **text_classifier.PRESETS,
}
