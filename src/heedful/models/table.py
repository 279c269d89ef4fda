"""Table of models: every kind with its configuration, and every preset of sizes."""

import json
from collections.abc import Mapping
from typing import Annotated, Final, cast

from pydantic import Field, SerializeAsAny, ValidatorFunctionWrapHandler, WrapValidator

from heedful.config.base import Config
from heedful.config.plugins import import_class, is_custom
from heedful.models import (
    bidaf,
    hard_attention,
    hierarchical,
    image_transformer,
    luong,
    memory_network,
    rnn_encoder_decoder,
    rnnsearch,
    self_attentive,
    show_attend_tell,
    text_classifier,
    transformer,
)
from heedful.models.bidaf import BidafConfig
from heedful.models.hard_attention import HardAttentionConfig
from heedful.models.hierarchical import HierarchicalConfig
from heedful.models.image_transformer import ImageTransformerConfig
from heedful.models.luong import LuongConfig
from heedful.models.memory_network import MemoryNetworkConfig
from heedful.models.rnn_encoder_decoder import RNNEncoderDecoderConfig
from heedful.models.rnnsearch import RNNsearchConfig
from heedful.models.self_attentive import SelfAttentiveConfig
from heedful.models.show_attend_tell import ShowAttendTellConfig
from heedful.models.text_classifier import TextClassifierConfig
from heedful.models.transformer import TransformerConfig

AnyModelConfig = (
    TransformerConfig
    | RNNsearchConfig
    | LuongConfig
    | RNNEncoderDecoderConfig
    | HardAttentionConfig
    | TextClassifierConfig
    | HierarchicalConfig
    | SelfAttentiveConfig
    | ShowAttendTellConfig
    | ImageTransformerConfig
    | MemoryNetworkConfig
    | BidafConfig
)


def _custom_or(value: object, known: ValidatorFunctionWrapHandler) -> object:
    """Validate by the class of a kind ``module:Class``, or by the class of one of the package's kinds."""
    kind = cast(Mapping[str, object], value).get("kind") if isinstance(value, Mapping) else None
    if isinstance(kind, str) and is_custom(kind):
        return import_class(kind, Config).model_validate_json(json.dumps(value))
    if isinstance(value, Config) and is_custom(str(getattr(value, "kind", ""))):
        return value
    return known(value)


ModelConfig = Annotated[
    SerializeAsAny[Annotated[AnyModelConfig, Field(discriminator="kind")]], WrapValidator(_custom_or)
]

MODELS: Final[dict[str, type[AnyModelConfig]]] = {
    "transformer": TransformerConfig,
    "rnnsearch": RNNsearchConfig,
    "luong": LuongConfig,
    "rnn_encoder_decoder": RNNEncoderDecoderConfig,
    "hard_attention": HardAttentionConfig,
    "text_classifier": TextClassifierConfig,
    "hierarchical": HierarchicalConfig,
    "self_attentive": SelfAttentiveConfig,
    "show_attend_tell": ShowAttendTellConfig,
    "image_transformer": ImageTransformerConfig,
    "memory_network": MemoryNetworkConfig,
    "bidaf": BidafConfig,
}
PRESETS: Final[dict[str, AnyModelConfig]] = {
    **transformer.PRESETS,
    **rnnsearch.PRESETS,
    **luong.PRESETS,
    **rnn_encoder_decoder.PRESETS,
    **hard_attention.PRESETS,
    **text_classifier.PRESETS,
    **hierarchical.PRESETS,
    **self_attentive.PRESETS,
    **show_attend_tell.PRESETS,
    **image_transformer.PRESETS,
    **memory_network.PRESETS,
    **bidaf.PRESETS,
}
DEFAULT_PRESET: Final = "small"


def model_class(kind: str) -> type[Config]:
    """Find the configuration class of a kind of model.

    Args:
        kind: in `MODELS`, or ``module:Class``.
    """
    return import_class(kind, Config) if is_custom(kind) else MODELS[kind]
