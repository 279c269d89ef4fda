"""Export of a Transformer to CTranslate2, with our token ids as token names, so that tokenizers stay outside."""

from pathlib import Path
from typing import Any, Final

import ctranslate2
import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.engines.ctranslate2 import token_names
from heedful.errors import UsageError
from heedful.layers.feedforward import FeedForward
from heedful.layers.multihead import MultiheadAttention
from heedful.layers.positions import LearnedPositions, Positions
from heedful.layers.residual import Residual
from heedful.models.interface import Seq2Seq
from heedful.models.transformer import DecoderLayer, EncoderLayer, Transformer

ACTIVATIONS: Final = {
    "relu": ctranslate2.specs.Activation.RELU,
    "swish": ctranslate2.specs.Activation.SWISH,
}

FloatArray = NDArray[np.float32]


def export_ctranslate2(model: Seq2Seq, folder: Path, max_length: int, is_int8: bool = False) -> None:
    """Write a model in CTranslate2's format.

    Args:
        model: a Transformer; it is not changed.
        max_length: maximum number of positions of a source or tokens of an output.
        is_int8: whether weight matrices are quantised to int8; activations are then quantised at run time.

    Raises:
        UsageError: the model is not a Transformer, or has attention that CTranslate2 cannot compute.
    """
    if not isinstance(model, Transformer):
        raise UsageError(f"ctranslate2 runs Transformers, not {type(model).__name__}; export --to onnx runs any model")
    if not model.has_papers_form:
        raise UsageError(
            "ctranslate2 has scaled dot products and softmax only, and copies nothing; export --to onnx runs any model"
        )
    config = model.config
    layers = (config.num_encoder_layers, config.num_decoder_layers)
    spec: Any = ctranslate2.specs.TransformerSpec.from_config(
        layers, config.num_heads, pre_norm=config.norm == "pre", activation=ACTIVATIONS[config.activation]
    )
    _set_encoder(spec.encoder, model, max_length)
    _set_decoder(spec.decoder, model, max_length)
    spec.register_source_vocabulary(token_names(model.source_embedding.weight.shape[0]))
    spec.register_target_vocabulary(token_names(model.output.weight.shape[0]))
    spec.config.layer_norm_epsilon = config.norm_epsilon
    spec.validate()
    spec.optimize(quantization="int8_float32" if is_int8 else "float32")
    spec.save(str(folder))


def _set_encoder(spec: Any, model: Transformer, max_length: int) -> None:
    spec.embeddings[0].weight = _array(model.source_embedding.weight)
    spec.scale_embeddings = model.source_embedding.scale
    spec.position_encodings.encodings = _positions(model.source_positions, max_length)
    for part, layer in zip(spec.layer, model.encoder_layers, strict=True):
        if isinstance(layer, EncoderLayer):
            _set_self_attention(part.self_attention, layer.self_attention, layer.around_attention)
            _set_feedforward(part.ffn, layer.feedforward, layer.around_feedforward)
    if isinstance(model.encoder_norm, nn.LayerNorm):
        _set_norm(spec.layer_norm, model.encoder_norm)


def _set_decoder(spec: Any, model: Transformer, max_length: int) -> None:
    spec.embeddings.weight = _array(model.target_embedding.weight)
    spec.scale_embeddings = model.target_embedding.scale
    spec.position_encodings.encodings = _positions(model.target_positions, max_length)
    for part, layer in zip(spec.layer, model.decoder_layers, strict=True):
        if isinstance(layer, DecoderLayer):
            _set_self_attention(part.self_attention, layer.self_attention, layer.around_self)
            _set_cross_attention(part.attention, layer.cross_attention, layer.around_cross)
            _set_feedforward(part.ffn, layer.feedforward, layer.around_feedforward)
    if isinstance(model.decoder_norm, nn.LayerNorm):
        _set_norm(spec.layer_norm, model.decoder_norm)
    spec.projection.weight = _array(model.output.weight)
    if model.output.bias is not None:
        spec.projection.bias = _array(model.output.bias)


def _set_self_attention(spec: Any, layer: MultiheadAttention, around: Residual) -> None:
    """Set the projection of query, key and value, which is one matrix as in our model."""
    _set_map(spec.linear[0], *_input_map(layer, 0, 3))
    _set_linear(spec.linear[1], layer.out_proj)
    _set_norm(spec.layer_norm, around.norm)


def _set_cross_attention(spec: Any, layer: MultiheadAttention, around: Residual) -> None:
    """Set the projection of the query, and the joint projection of key and value."""
    _set_map(spec.linear[0], *_input_map(layer, 0, 1))
    _set_map(spec.linear[1], *_input_map(layer, 1, 3))
    _set_linear(spec.linear[2], layer.out_proj)
    _set_norm(spec.layer_norm, around.norm)


def _input_map(layer: MultiheadAttention, first: int, last: int) -> tuple[FloatArray, FloatArray]:
    """Weights and biases of the input projections from `first` up to `last`: query (0), key (1), value (2).

    Raises:
        UsageError: the layer does not have them in one matrix, or has no biases.
    """
    if layer.in_proj_weight is None or layer.in_proj_bias is None:
        raise UsageError("ctranslate2: attention with keys of another size, or without biases, cannot be exported")
    rows = slice(first * layer.embed_dim, last * layer.embed_dim)
    return _array(layer.in_proj_weight[rows]), _array(layer.in_proj_bias[rows])


def _set_feedforward(spec: Any, layer: FeedForward, around: Residual) -> None:
    _set_linear(spec.linear_0, layer.inner)
    _set_linear(spec.linear_1, layer.outer)
    _set_norm(spec.layer_norm, around.norm)


def _set_linear(spec: Any, layer: nn.Linear) -> None:
    _set_map(spec, _array(layer.weight), _array(layer.bias))


def _set_map(spec: Any, weight: FloatArray, bias: FloatArray) -> None:
    spec.weight = weight
    spec.bias = bias


def _set_norm(spec: Any, layer: nn.LayerNorm) -> None:
    spec.gamma = _array(layer.weight)
    spec.beta = _array(layer.bias)


def _positions(positions: Positions, max_length: int) -> FloatArray:
    """Position codes, one row for every possible position, because CTranslate2 refuses positions beyond its table."""
    most = len(positions.weight) if isinstance(positions, LearnedPositions) else max_length + 1
    codes = _array(positions.codes(0, min(most, max_length + 1)))
    # CTranslate2 also reads the position after the last token of an output of maximum length, but does not use it.
    return np.pad(codes, ((0, max_length + 1 - len(codes)), (0, 0)))


def _array(tensor: Tensor) -> FloatArray:
    # A contiguous copy, which CTranslate2 needs for writing.
    return tensor.detach().cpu().float().contiguous().numpy().copy()
