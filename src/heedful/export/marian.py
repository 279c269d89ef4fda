"""Marian's models, as OPUS-MT has them, in Hugging Face's layout: a folder read into our Transformer.

config.json, model.safetensors, source.spm, target.spm, vocab.json. Their decoder starts from the padding token; ours
from bos, so that our bos has the padding token's row, and a bias by which it is never generated.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, final

import torch
from pydantic import ConfigDict, Field
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from heedful.config import Config, validate
from heedful.errors import ConfigError, FileRefused, UsageError
from heedful.layers.positions import sinusoids
from heedful.models.transformer import TransformerConfig
from heedful.text.marian import MarianTokenizer
from heedful.text.vocabulary import BOS, SPECIAL_TOKENS, Vocabulary

WEIGHTS: Final = "model.safetensors"
NEVER: Final = 100.0
"""Nats that our bos is less probable than their token that stands for it: nothing in float32."""
ENCODER: Final = {
    "self_attn_layer_norm": "around_attention.norm",
    "fc1": "feedforward.inner",
    "fc2": "feedforward.outer",
    "final_layer_norm": "around_feedforward.norm",
}
DECODER: Final = {
    "self_attn_layer_norm": "around_self.norm",
    "encoder_attn_layer_norm": "around_cross.norm",
    "fc1": "feedforward.inner",
    "fc2": "feedforward.outer",
    "final_layer_norm": "around_feedforward.norm",
}
TABLES: Final = ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")
"""Names under which the one embedding may stand, several times too."""


class MarianSettings(Config):
    """What config.json must say; what else it says concerns no weight."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    model_type: Literal["marian"]
    vocab_size: int = Field(ge=4, le=10_000_000)
    d_model: int = Field(ge=2, le=1_000_000)
    encoder_layers: int = Field(ge=1, le=100)
    decoder_layers: int = Field(ge=1, le=100)
    encoder_attention_heads: int = Field(ge=1)
    decoder_attention_heads: int = Field(ge=1)
    encoder_ffn_dim: int = Field(ge=1, le=10_000_000)
    decoder_ffn_dim: int = Field(ge=1, le=10_000_000)
    activation_function: Literal["swish", "silu", "relu"]
    pad_token_id: int = Field(ge=0)
    eos_token_id: int = Field(ge=0)
    decoder_start_token_id: int = Field(ge=0)
    scale_embedding: Literal[True]
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)
    attention_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    activation_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    max_position_embeddings: int = Field(default=512, ge=2, le=1_000_000)
    num_beams: int = Field(default=5, ge=1, le=1000)
    share_encoder_decoder_embeddings: Literal[True] = True
    tie_word_embeddings: Literal[True] = True
    normalize_before: Literal[False] = False
    normalize_embedding: Literal[False] = False
    add_final_layer_norm: Literal[False] = False
    static_position_embeddings: Literal[True] = True

    def transformer(self) -> TransformerConfig:
        """Say the same of our Transformer.

        Returns:
            Its configuration.

        Raises:
            ConfigError: encoder and decoder differ, or sizes do not fit each other.
        """
        for name, one, other in (
            ("attention_heads", self.encoder_attention_heads, self.decoder_attention_heads),
            ("ffn_dim", self.encoder_ffn_dim, self.decoder_ffn_dim),
        ):
            if one != other:
                raise ConfigError(f"encoder_{name} {one} and decoder_{name} {other} differ; they must be equal")
        tree = {
            "num_encoder_layers": self.encoder_layers,
            "num_decoder_layers": self.decoder_layers,
            "model_size": self.d_model,
            "num_heads": self.encoder_attention_heads,
            "feedforward_size": self.encoder_ffn_dim,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "feedforward_dropout": self.activation_dropout,
            "activation": "relu" if self.activation_function == "relu" else "swish",
            "norm": "post",
            "norm_epsilon": 1e-5,
            "positions": "sinusoidal_halves",
            "tie": "all",
            "output_bias": True,
        }
        return validate(TransformerConfig, tree)


@dataclass(frozen=True)
class MarianModel:
    """A model that was read, nothing of which is on disk in our form yet."""

    config: TransformerConfig
    weights: Mapping[str, Tensor]
    """By the names of our Transformer's parameters, float32."""
    token_order: tuple[int, ...]
    """Their id of each of our tokens."""
    source_tokenizer: MarianTokenizer
    target_tokenizer: MarianTokenizer
    max_tokens: int
    """Of a source or an output, without end mark."""
    num_beams: int
    languages: tuple[str, str]
    """Codes of source and target, or empty."""


def read_marian(folder: Path) -> MarianModel:
    """Read a folder.

    Args:
        folder: in Hugging Face's layout.

    Returns:
        The model.

    Raises:
        UsageError: there is no such folder, or it holds no model.
        FileRefused: a file is missing, damaged, unsafe or does not fit the others, or says what our Transformer cannot.
    """
    if not (folder / "config.json").is_file():
        what = "no config.json in it" if folder.is_dir() else "not a folder" if folder.exists() else "no such folder"
        raise UsageError(f"{folder}: {what}; import takes a Marian model's folder in Hugging Face's layout")
    try:
        settings = validate(MarianSettings, _read_json(folder / "config.json"))
        config = settings.transformer()
    except ConfigError as error:
        raise FileRefused(f"{folder / 'config.json'}: not a Marian model that heedful can run: {error}") from None
    order, vocabulary = _read_vocabulary(folder / "vocab.json", settings)
    source, target = (_read_tokenizer(folder / f"{side}.spm", vocabulary) for side in ("source", "target"))
    weights = _Weights(_weights_file(folder), settings).translated(order)
    most = settings.max_position_embeddings - 1
    return MarianModel(config, weights, order, source, target, most, settings.num_beams, _languages(folder))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileRefused(f"{path}: {(error.strerror or 'not readable').lower()}; copy the whole folder") from None
    except (ValueError, RecursionError) as error:
        raise FileRefused(f"{path}: not JSON: {error}") from None
    if not isinstance(held, dict):
        raise FileRefused(f"{path}: expected a JSON object")
    return held


def _read_vocabulary(path: Path, settings: MarianSettings) -> tuple[tuple[int, ...], Vocabulary]:
    """Their ids in our order, and the tokens in it: pad, unk, bos, eos, then all others as they come.

    Raises:
        FileRefused: the ids are not 0, 1, 2 ... without a gap, or the special ones are not among them.
    """
    tokens: dict[int, str] = {}
    for token, index in _read_json(path).items():
        if type(index) is not int or not 0 <= index < settings.vocab_size or index in tokens:
            fault = f"id {index!r} of {token!r} is given twice or is outside the vocabulary of {settings.vocab_size}"
            raise FileRefused(f"{path}: {fault}")
        tokens[index] = token
    if len(tokens) != settings.vocab_size:
        raise FileRefused(f"{path}: {len(tokens)} tokens, but config.json says vocab_size {settings.vocab_size}")
    unknown = next((index for index, token in tokens.items() if token == "<unk>"), -1)
    pad, eos, start = settings.pad_token_id, settings.eos_token_id, settings.decoder_start_token_id
    if unknown < 0 or max(pad, eos, start) >= settings.vocab_size or len({pad, eos, unknown}) < 3:
        raise FileRefused(f"{path}: has no <unk>, or pad {pad}, eos {eos}, start {start} of config.json do not fit it")
    rest = [index for index in range(settings.vocab_size) if index not in (pad, unknown, eos)]
    try:
        vocabulary = Vocabulary([*SPECIAL_TOKENS, *(tokens[index] for index in rest)])
    except FileRefused as error:
        raise FileRefused(f"{path}: {error}") from None
    return (pad, unknown, start, eos, *rest), vocabulary


def _read_tokenizer(path: Path, vocabulary: Vocabulary) -> MarianTokenizer:
    try:
        return MarianTokenizer(path.read_bytes(), vocabulary)
    except OSError as error:
        raise FileRefused(f"{path}: {(error.strerror or 'not readable').lower()}; copy the whole folder") from None
    except FileRefused as error:
        raise FileRefused(f"{path}: {error}") from None


def _weights_file(folder: Path) -> Path:
    """Where the weights are.

    Raises:
        FileRefused: there are none, or only such as can run code when they are read.
    """
    path = folder / WEIGHTS
    if path.is_file():
        return path
    if pickles := sorted(found.name for found in folder.glob("*.bin")):
        why = f"{pickles[0]} is a pickle, which can run code when it is read"
        raise FileRefused(f"{folder}: no {WEIGHTS}; {why}: save the model anew as safetensors")
    raise FileRefused(f"{path}: no such file; copy the whole folder")


def _languages(folder: Path) -> tuple[str, str]:
    path = folder / "tokenizer_config.json"
    held = _read_json(path) if path.is_file() else {}
    source, target = held.get("source_lang"), held.get("target_lang")
    return (source, target) if isinstance(source, str) and isinstance(target, str) else ("", "")


@final
class _Weights:
    """Their tensors, taken one by one, so that what is left over is known."""

    def __init__(self, path: Path, settings: MarianSettings) -> None:
        self._path = path
        self._settings = settings
        try:
            self._left = load_file(path)
        except (OSError, SafetensorError) as error:
            raise FileRefused(f"{path}: not readable: {error}") from None

    def translated(self, order: tuple[int, ...]) -> dict[str, Tensor]:
        """Give all weights in our names.

        Raises:
            FileRefused: one is missing, too many, of another size, or not finite.
        """
        settings, rows = self._settings, torch.tensor(order)
        bias = self._take("final_logits_bias", 1, settings.vocab_size)[0][rows]
        bias[BOS] -= NEVER
        found = {"source_embedding.weight": self._table()[rows], "output.bias": bias}
        for index in range(settings.encoder_layers):
            theirs, ours = f"model.encoder.layers.{index}", f"encoder_layers.{index}"
            found |= self._attention(f"{theirs}.self_attn", f"{ours}.self_attention")
            found |= self._maps(theirs, ours, ENCODER)
        for index in range(settings.decoder_layers):
            theirs, ours = f"model.decoder.layers.{index}", f"decoder_layers.{index}"
            found |= self._attention(f"{theirs}.self_attn", f"{ours}.self_attention")
            found |= self._attention(f"{theirs}.encoder_attn", f"{ours}.cross_attention")
            found |= self._maps(theirs, ours, DECODER)
        self._check_positions()
        if self._left:
            raise FileRefused(f"{self._path}: what are {', '.join(sorted(self._left)[:3])}? not of a Marian model")
        return found

    def _take(self, name: str, *shape: int) -> Tensor:
        tensor = self._left.pop(name, None)
        if tensor is None:
            raise FileRefused(f"{self._path}: has no {name}")
        if tuple(tensor.shape) != shape or not tensor.is_floating_point():
            held = f"{tuple(tensor.shape)} {tensor.dtype}"
            raise FileRefused(f"{self._path}: {name} is {held}, but config.json asks for {shape} numbers")
        tensor = tensor.to(torch.float32, copy=True)
        if not tensor.isfinite().all():
            raise FileRefused(f"{self._path}: {name} holds numbers that are not finite")
        return tensor

    def _table(self) -> Tensor:
        names = [f"{name}.weight" for name in TABLES if f"{name}.weight" in self._left] or [f"{TABLES[0]}.weight"]
        tables = [self._take(name, self._settings.vocab_size, self._settings.d_model) for name in names]
        if not all(torch.equal(table, tables[0]) for table in tables[1:]):
            raise FileRefused(f"{self._path}: {', '.join(names)} differ, but config.json says that they are one")
        return tables[0]

    def _attention(self, theirs: str, ours: str) -> dict[str, Tensor]:
        size, maps = self._settings.d_model, ("q_proj", "k_proj", "v_proj")
        return {
            f"{ours}.in_proj_weight": torch.cat([self._take(f"{theirs}.{each}.weight", size, size) for each in maps]),
            f"{ours}.in_proj_bias": torch.cat([self._take(f"{theirs}.{each}.bias", size) for each in maps]),
            f"{ours}.out_proj.weight": self._take(f"{theirs}.out_proj.weight", size, size),
            f"{ours}.out_proj.bias": self._take(f"{theirs}.out_proj.bias", size),
        }

    def _maps(self, theirs: str, ours: str, names: Mapping[str, str]) -> dict[str, Tensor]:
        size, hidden = self._settings.d_model, self._settings.encoder_ffn_dim
        shapes = {"fc1": (hidden, size), "fc2": (size, hidden)}
        found: dict[str, Tensor] = {}
        for name, own in names.items():
            shape = shapes.get(name, (size,))
            found[f"{ours}.{own}.weight"] = self._take(f"{theirs}.{name}.weight", *shape)
            found[f"{ours}.{own}.bias"] = self._take(f"{theirs}.{name}.bias", shape[0])
        return found

    def _check_positions(self) -> None:
        """Old folders hold the position codes too; they must be the formula's.

        Raises:
            FileRefused: they are others.
        """
        num, size = self._settings.max_position_embeddings, self._settings.d_model
        for name in ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"):
            if name in self._left and not torch.allclose(
                self._take(name, num, size), sinusoids(torch.arange(num), size, is_halved=True).float(), atol=1e-3
            ):
                raise FileRefused(f"{self._path}: {name} are not the sinusoids of a Marian model")
