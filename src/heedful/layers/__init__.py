"""Layers that take plain keywords: multi-head attention, recurrent cells, convolutions, positions, embeddings.

>>> from heedful.layers import MultiheadAttention
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

from heedful.errors import needed_for

if TYPE_CHECKING:
    from heedful.layers.backbone import BackboneEncoder
    from heedful.layers.convolution import ConvolutionalEncoder, GatedConvolution
    from heedful.layers.embedding import Embedding, OutputLayer
    from heedful.layers.feedforward import FeedForward
    from heedful.layers.hugging_face import use_in_transformers
    from heedful.layers.multihead import MultiheadAttention
    from heedful.layers.normalizing import NormalizerLayer, SoftStart, set_soft
    from heedful.layers.packing import Packing
    from heedful.layers.picture import ConvolutionalBlock, PictureEncoder, RegionEncoder
    from heedful.layers.positions import (
        LearnedPositions,
        NoPositions,
        Positions,
        SinusoidalPositions,
        sinusoids,
    )
    from heedful.layers.projected_score import ProjectedScore
    from heedful.layers.query_vectors import (
        MultiQueryVectorAttention,
        StepQueryVectorAttention,
        TanhDot,
        overlap_penalty,
    )
    from heedful.layers.recurrent import BidirectionalEncoder, GatedRecurrentUnit, LongShortTermMemory, RecurrentUnit
    from heedful.layers.recurrent_stack import BidirectionalStack, RecurrentStack
    from heedful.layers.region_context import RegionContext, RegionLayer
    from heedful.layers.residual import Residual
    from heedful.layers.row_context import RowContext
    from heedful.layers.self_attentive_words import SelfAttentiveWords
    from heedful.layers.sentence_states import SentenceStates
    from heedful.layers.summed_score import SummedScore

__all__ = [
    "BackboneEncoder",
    "BidirectionalEncoder",
    "BidirectionalStack",
    "ConvolutionalBlock",
    "ConvolutionalEncoder",
    "Embedding",
    "FeedForward",
    "GatedConvolution",
    "GatedRecurrentUnit",
    "LearnedPositions",
    "LongShortTermMemory",
    "MultiQueryVectorAttention",
    "MultiheadAttention",
    "NoPositions",
    "NormalizerLayer",
    "OutputLayer",
    "Packing",
    "PictureEncoder",
    "Positions",
    "ProjectedScore",
    "RecurrentStack",
    "RecurrentUnit",
    "RegionContext",
    "RegionEncoder",
    "RegionLayer",
    "Residual",
    "RowContext",
    "SelfAttentiveWords",
    "SentenceStates",
    "SinusoidalPositions",
    "SoftStart",
    "StepQueryVectorAttention",
    "SummedScore",
    "TanhDot",
    "overlap_penalty",
    "set_soft",
    "sinusoids",
    "use_in_transformers",
]

# Names are imported on first use, so that importing the package is cheap.
_LAZY: Final[dict[str, tuple[str, ...]]] = {
    "heedful.layers.convolution": ("ConvolutionalEncoder", "GatedConvolution"),
    "heedful.layers.embedding": ("Embedding", "OutputLayer"),
    "heedful.layers.feedforward": ("FeedForward",),
    "heedful.layers.hugging_face": ("use_in_transformers",),
    "heedful.layers.multihead": ("MultiheadAttention",),
    "heedful.layers.normalizing": ("NormalizerLayer", "SoftStart", "set_soft"),
    "heedful.layers.packing": ("Packing",),
    "heedful.layers.backbone": ("BackboneEncoder",),
    "heedful.layers.picture": ("ConvolutionalBlock", "PictureEncoder", "RegionEncoder"),
    "heedful.layers.positions": ("LearnedPositions", "NoPositions", "Positions", "SinusoidalPositions", "sinusoids"),
    "heedful.layers.projected_score": ("ProjectedScore",),
    "heedful.layers.query_vectors": (
        "MultiQueryVectorAttention",
        "StepQueryVectorAttention",
        "TanhDot",
        "overlap_penalty",
    ),
    "heedful.layers.recurrent": ("BidirectionalEncoder", "GatedRecurrentUnit", "LongShortTermMemory", "RecurrentUnit"),
    "heedful.layers.recurrent_stack": ("BidirectionalStack", "RecurrentStack"),
    "heedful.layers.region_context": ("RegionContext", "RegionLayer"),
    "heedful.layers.row_context": ("RowContext",),
    "heedful.layers.residual": ("Residual",),
    "heedful.layers.self_attentive_words": ("SelfAttentiveWords",),
    "heedful.layers.sentence_states": ("SentenceStates",),
    "heedful.layers.summed_score": ("SummedScore",),
}


def __getattr__(name: str) -> Any:
    module = next((module for module, names in _LAZY.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module 'heedful.layers' has no attribute {name!r}")
    with needed_for(f"heedful.layers.{name}"):
        return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
