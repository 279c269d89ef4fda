"""Table of the measures, and their results for one source and one output."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import UsageError, did_you_mean
from heedful.inspection.layers import ROLES, LayerWeights, layer_weights
from heedful.inspection.measures.integrated_gradients import integrated_gradients
from heedful.inspection.measures.mixing import Mixed, Shares, attention_shares, contribution_shares, mixed
from heedful.inspection.measures.sublayers import AttentionSublayer, attention_sublayers
from heedful.inspection.measures.value_norms import shares, summed_value_norms, value_norms
from heedful.models.interface import Seq2Seq
from heedful.models.transformer import Transformer
from heedful.search.inputs import InputArrays, TokenArrays

LAST_LAYERS: Final = 2
"""Number of upper layers whose mean aligns words, for measures of single layers; see `Transformer.alignment`."""


@final
@dataclass(frozen=True)
class Measure:
    """Measure of the influence of positions on outputs."""

    layers: Callable[[Seq2Seq, InputArrays, Sequence[int]], list[LayerWeights]]
    """Shares of every layer and head; row i belongs to the prediction of output token i."""
    is_joined: bool = False
    """Whether the last layer sums up all layers before it, so that it alone aligns words."""
    needs_transformer: bool = True


def _value_norm_layers(model: Seq2Seq, source: InputArrays, output: Sequence[int]) -> list[LayerWeights]:
    return [_result(one, value_norms(one)) for one in _sublayers(model, source, output)]


def _mixed_layers(shares_of: Shares) -> Callable[[Seq2Seq, InputArrays, Sequence[int]], list[LayerWeights]]:
    def layers(model: Seq2Seq, source: InputArrays, output: Sequence[int]) -> list[LayerWeights]:
        sublayers = _sublayers(model, source, output)
        return [_result(one, _normalized(one.role, one.shares)) for one in mixed(sublayers, shares_of)]

    return layers


def _normalized(role: str, amounts: Tensor) -> Tensor:
    """Shares among the source tokens alone, whose sum over the source is otherwise the share of the source."""
    return (amounts if role == "encoder" else shares(amounts))[None]


def _gradient_layers(model: Seq2Seq, source: InputArrays, output: Sequence[int]) -> list[LayerWeights]:
    if not isinstance(source, TokenArrays):
        raise UsageError("gradients: only sources of tokens have integrated gradients")
    signed, _ = integrated_gradients(model, source.sequences[0].tolist(), [*output])
    return [LayerWeights("cross", 0, _array(shares(signed.abs())[None]))]


MEASURES: Final[dict[str, Measure]] = {
    "attention": Measure(layer_weights, needs_transformer=False),
    "value-norm": Measure(_value_norm_layers),
    "rollout": Measure(_mixed_layers(attention_shares), is_joined=True),
    "alti": Measure(_mixed_layers(contribution_shares), is_joined=True),
    "gradients": Measure(_gradient_layers, is_joined=True, needs_transformer=False),
}
"""Measures by name."""


def why_not(model: Seq2Seq, name: str) -> str:
    """Say why a measure is not defined for a model.

    Returns:
        The reason; empty where the measure is defined.

    Raises:
        UsageError: there is no such measure.
    """
    if name not in MEASURES:
        raise UsageError(f"no measure {name!r}{did_you_mean(name, MEASURES)}; there are {', '.join(MEASURES)}")
    if MEASURES[name].needs_transformer and not isinstance(model, Transformer):
        return f"{name} is defined for the Transformer alone; attention and gradients take every model"
    if name == "gradients" and not hasattr(model, "source_embedding"):
        return "gradients need a source of tokens"
    return ""


def measured_layers(model: Seq2Seq, source: InputArrays, output: Sequence[int], name: str) -> list[LayerWeights]:
    """Compute a measure for every layer and head.

    Args:
        output: token ids of the output, with EOS if the model ended it.

    Returns:
        Shares, by role and layer; those of rollout, ALTI and gradients have one head, and gradients one layer.

    Raises:
        UsageError: there is no such measure, or it is not defined for this model.
    """
    if reason := why_not(model, name):
        raise UsageError(reason)
    layers = MEASURES[name].layers(model, source, output)
    return sorted(layers, key=lambda one: (ROLES.index(one.role), one.layer))


def source_shares(model: Seq2Seq, source: InputArrays, output: Sequence[int], name: str) -> NDArray[np.float32]:
    """Compute the shares of the source tokens in each output token, all layers and heads taken together.

    Args:
        output: token ids of the output, with EOS if the model ended it.

    Returns:
        [output, source] shares.

    Raises:
        UsageError: there is no such measure, or it is not defined for this model, or the model attends to nothing.
    """
    if name == "value-norm" and isinstance(model, Transformer):
        cross = [one for one in attention_sublayers(model, source, [*output]) if one.role == "cross"]
        return _array(torch.stack([summed_value_norms(one) for one in cross[-LAST_LAYERS:]]).mean(dim=0))
    layers = [one.weights for one in measured_layers(model, source, output, name) if one.role == "cross"]
    if not layers:
        raise UsageError(f"{name}: this model has no attention over the source")
    return joined_layers(layers, name)


def joined_layers(layers: Sequence[NDArray[np.float32]], name: str) -> NDArray[np.float32]:
    """Join the layers of the attention over the source: the last one, or the mean of the upper ones.

    Args:
        layers: [head, output, source] shares by a measure, the lowest layer first; at least one.

    Returns:
        [output, source] mean over the heads.
    """
    used = layers[-1:] if MEASURES[name].is_joined else layers[-LAST_LAYERS:]
    return np.stack([one.mean(axis=0) for one in used]).mean(axis=0)


def _sublayers(model: Seq2Seq, source: InputArrays, output: Sequence[int]) -> list[AttentionSublayer]:
    if not isinstance(model, Transformer):
        raise UsageError("this measure is defined for the Transformer alone")
    return attention_sublayers(model, source, [*output])


def _result(one: AttentionSublayer | Mixed, values: Tensor) -> LayerWeights:
    return LayerWeights(one.role, one.layer, _array(values))


def _array(values: Tensor) -> NDArray[np.float32]:
    return values.detach().float().cpu().numpy()
