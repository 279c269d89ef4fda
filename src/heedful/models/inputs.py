"""Encoder inputs: one record of tensors per kind of source, such as token ids with lengths."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from heedful.engines.images import FeatureArrays, PixelArrays
from heedful.engines.passages import PassageArrays
from heedful.engines.stories import StoryArrays
from heedful.models.record import Record
from heedful.search.inputs import InputArrays, TokenArrays


@dataclass(frozen=True)
class Inputs(Record):
    """Encoder inputs of one batch of sources. Axis 0 of every tensor = source."""


@final
@dataclass(frozen=True)
class TokenInputs(Inputs):
    """Sources that are sequences of tokens.

    Example:
        >>> import torch
        >>> inputs = TokenInputs(torch.tensor([[7, 8, 3], [9, 3, 0]]), torch.tensor([3, 2]))
        >>> inputs.ids.shape
        torch.Size([2, 3])
    """

    ids: Int[Tensor, "source position"]
    """[source, position] token ids padded with 0, each row ending in EOS."""
    lengths: Int[Tensor, " source"]
    """[source] number of real positions, EOS included."""


@final
@dataclass(frozen=True)
class VectorInputs(Inputs):
    """Sources that are vectors already, such as those of another encoder, with position codes."""

    vectors: Float[Tensor, "source position size"]
    """[source, position, size]"""
    lengths: Int[Tensor, " source"]
    """[source] number of real positions."""


@final
@dataclass(frozen=True)
class PixelInputs(Inputs):
    """Sources that are pictures of one size."""

    pixels: UInt8[Tensor, "source channel row column"]
    """[source, channel, row, column] brightness from 0 to 255."""


@final
@dataclass(frozen=True)
class FeatureInputs(Inputs):
    """Sources that are images as precomputed features of their regions."""

    features: Float[Tensor, "source region feature"]
    """[source, region, feature], padded with 0."""
    num_regions: Int[Tensor, " source"]
    """[source] number of real regions, at least 1."""


@final
@dataclass(frozen=True)
class StoryInputs(Inputs):
    """Sources that are a question and facts."""

    question: Int[Tensor, "source question_word"]
    """[source, question_word] token ids padded with 0."""
    facts: Int[Tensor, "source fact word"]
    """[source, fact, word] token ids padded with 0, the newest fact first."""
    num_facts: Int[Tensor, " source"]
    """[source] number of real facts, 0 or more."""


@final
@dataclass(frozen=True)
class PassageInputs(Inputs):
    """Sources that are a question and a passage that has the answer."""

    question: Int[Tensor, "source question_word"]
    """[source, question_word] token ids padded with 0, each row ending in EOS."""
    question_lengths: Int[Tensor, " source"]
    """[source] number of real tokens of the question, EOS included."""
    passage: Int[Tensor, "source position"]
    """[source, position] token ids padded with 0, each row ending in EOS."""
    passage_lengths: Int[Tensor, " source"]
    """[source] number of real tokens of the passage, EOS included."""


INPUTS: Final[Mapping[type[InputArrays], type[Inputs]]] = {
    TokenArrays: TokenInputs,
    PixelArrays: PixelInputs,
    FeatureArrays: FeatureInputs,
    StoryArrays: StoryInputs,
    PassageArrays: PassageInputs,
}
"""Record of tensors by kind of arrays; its fields have the order of `InputArrays.named_arrays`."""


def inputs_on(device: torch.device, arrays: InputArrays) -> Inputs:
    """Move sources to a device.

    Args:
        device: device of the model.

    Returns:
        The same sources as tensors.
    """
    tensors = [torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in arrays.named_arrays().values()]
    return INPUTS[type(arrays)](*tensors)


def token_inputs(inputs: Inputs) -> TokenInputs:
    """Narrow inputs to token ids, for models that take nothing else.

    Returns:
        The same object.

    Raises:
        TypeError: the sources are of another kind.
    """
    if not isinstance(inputs, TokenInputs):
        raise TypeError(f"this model reads token ids, got {type(inputs).__name__}")
    return inputs
