"""Names of files and weights in Marian's Hugging Face layout, and of their counterparts in our Transformer.

Both directions, `heedful.export.marian` and `heedful.export.huggingface`, read this one table.
"""

from dataclasses import dataclass
from typing import Final, Literal, final

CONFIG: Final = "config.json"
WEIGHTS: Final = "model.safetensors"
SOURCE_PIECES: Final = "source.spm"
TARGET_PIECES: Final = "target.spm"
VOCABULARY: Final = "vocab.json"
TARGET_VOCABULARY: Final = "target_vocab.json"
TOKENIZER_CONFIG: Final = "tokenizer_config.json"
GENERATION_CONFIG: Final = "generation_config.json"

BIAS: Final = "final_logits_bias"
SHARED_TABLE: Final = "model.shared.weight"
SOURCE_TABLE: Final = "model.encoder.embed_tokens.weight"
TARGET_TABLE: Final = "model.decoder.embed_tokens.weight"
OUTPUT_TABLE: Final = "lm_head.weight"
POSITIONS: Final = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")

NORM_EPSILON: Final = 1e-5
"""Constant that Marian's normalisations add to the variance; it cannot be configured there."""

Axis = Literal["model", "heads", "hidden"]
"""Kind of an axis: the model's vectors, the heads' depths in sequence, or the feed-forward layer."""
_ATTENTION: Final[tuple[tuple[str, str, int], ...]] = (
    ("q_proj", "in_proj_", 0),
    ("k_proj", "in_proj_", 1),
    ("v_proj", "in_proj_", 2),
    ("out_proj", "out_proj.", -1),
)
_ENCODER: Final = {
    "self_attn": "self_attention",
    "self_attn_layer_norm": "around_attention.norm",
    "fc1": "feedforward.inner",
    "fc2": "feedforward.outer",
    "final_layer_norm": "around_feedforward.norm",
}
_DECODER: Final = {
    "self_attn": "self_attention",
    "self_attn_layer_norm": "around_self.norm",
    "encoder_attn": "cross_attention",
    "encoder_attn_layer_norm": "around_cross.norm",
    "fc1": "feedforward.inner",
    "fc2": "feedforward.outer",
    "final_layer_norm": "around_feedforward.norm",
}
_AXES: Final[dict[str, tuple[Axis, ...]]] = {
    "q_proj": ("heads", "model"),
    "k_proj": ("heads", "model"),
    "v_proj": ("heads", "model"),
    "out_proj": ("model", "heads"),
    "fc1": ("hidden", "model"),
    "fc2": ("model", "hidden"),
}


@final
@dataclass(frozen=True)
class Named:
    """Marian tensor and its location in our model."""

    theirs: str
    ours: str
    axes: tuple[Axis, ...]
    third: int = -1
    """Third of our tensor's rows that it fills, since ours has query, key and value in one; -1 = all rows."""


def layer_tensors(num_encoder_layers: int, num_decoder_layers: int) -> list[Named]:
    """List the tensors of all layers.

    Args:
        num_encoder_layers: of the model.
        num_decoder_layers: of the model.

    Returns:
        Each once; the thirds of a tensor of ours stand in order.

    Example:
        >>> layer_tensors(1, 1)[0]
        Named(theirs='model.encoder.layers.0.self_attn.q_proj.weight', \
ours='encoder_layers.0.self_attention.in_proj_weight', axes=('heads', 'model'), third=0)
    """
    tensors: list[Named] = []
    for side, number, names in (("encoder", num_encoder_layers, _ENCODER), ("decoder", num_decoder_layers, _DECODER)):
        for index in range(number):
            for theirs, ours in names.items():
                tensors += _tensors(f"model.{side}.layers.{index}.{theirs}", f"{side}_layers.{index}.{ours}")
    return tensors


def _tensors(theirs: str, ours: str) -> list[Named]:
    """Weight and bias of a projection or a normalisation, or of the four projections of an attention."""
    name = theirs.rpartition(".")[2]
    if not name.endswith("_attn"):
        return _pair(theirs, f"{ours}.", _AXES.get(name, ("model",)))
    tensors: list[Named] = []
    for theirs_part, ours_part, third in _ATTENTION:
        tensors += _pair(f"{theirs}.{theirs_part}", f"{ours}.{ours_part}", _AXES[theirs_part], third)
    return tensors


def _pair(theirs: str, ours: str, axes: tuple[Axis, ...], third: int = -1) -> list[Named]:
    return [
        Named(f"{theirs}.weight", f"{ours}weight", axes, third),
        Named(f"{theirs}.bias", f"{ours}bias", axes[:1], third),
    ]
