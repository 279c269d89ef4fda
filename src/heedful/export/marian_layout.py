"""Names of files and weights in Hugging Face's layout of Marian models, and of our Transformer's matching weights.

The table is used for import (`heedful.export.marian`) and export (`heedful.export.huggingface`).
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
"""Epsilon of layer norms in Marian models, where it cannot be configured."""

Axis = Literal["model", "heads", "hidden"]
"""Kind of a weight's axis: model dimensions, concatenated head dimensions, or hidden feed-forward dimensions."""
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
    """Tensor of a Marian model and its location in ours."""

    theirs: str
    ours: str
    axes: tuple[Axis, ...]
    third: int = -1
    """Index of the third of our tensor's rows (query, key, value) that equals this tensor; -1 = all rows."""


def layer_tensors(num_encoder_layers: int, num_decoder_layers: int) -> list[Named]:
    """List the tensors of all layers.

    Args:
        num_encoder_layers: number of encoder layers.
        num_decoder_layers: number of decoder layers.

    Returns:
        Each tensor once; the thirds of one of our tensors are in order.

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
    """Weights and biases of a projection, a layer norm, or the four projections of an attention layer."""
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
