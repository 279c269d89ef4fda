"""Import of Marian models, such as OPUS-MT's, from Hugging Face's layout into our Transformer.

The files are config.json, model.safetensors, source.spm, target.spm and vocab.json. Marian's decoder starts from the
padding token, ours from BOS: so our BOS gets the embedding of the padding token, and a bias so low that it is never
generated.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, final

import torch
from pydantic import ConfigDict, Field
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from heedful.config.base import Config, validate
from heedful.errors import ConfigError, FileRefused, UsageError
from heedful.export.marian_layout import (
    BIAS,
    CONFIG,
    NORM_EPSILON,
    OUTPUT_TABLE,
    POSITIONS,
    SHARED_TABLE,
    SOURCE_PIECES,
    SOURCE_TABLE,
    TARGET_PIECES,
    TARGET_TABLE,
    TARGET_VOCABULARY,
    TOKENIZER_CONFIG,
    VOCABULARY,
    WEIGHTS,
    Axis,
    layer_tensors,
)
from heedful.files.bounded_read import MOST_BULK_BYTES, read_bytes, read_json_object
from heedful.layers.positions import sinusoids
from heedful.models.transformer import TransformerConfig
from heedful.text.marian import MarianTokenizer
from heedful.text.vocabulary import BOS, SPECIAL_TOKENS, Vocabulary

NEVER: Final = 100.0
"""Amount by which the logit of BOS is lowered, in nats: its probability becomes zero in float32."""


class MarianSettings(Config):
    """Fields of config.json that determine the model; all others are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    model_type: Literal["marian"]
    vocab_size: int = Field(ge=4, le=10_000_000)
    decoder_vocab_size: int = Field(default=0, ge=0, le=10_000_000)
    """Size of the target vocabulary; 0 = vocab_size."""
    d_model: int = Field(ge=2, le=1_000_000)
    encoder_layers: int = Field(ge=1, le=100)
    decoder_layers: int = Field(ge=1, le=100)
    encoder_attention_heads: int = Field(ge=1, le=1_000_000)
    decoder_attention_heads: int = Field(ge=1, le=1_000_000)
    encoder_ffn_dim: int = Field(ge=1, le=10_000_000)
    decoder_ffn_dim: int = Field(ge=1, le=10_000_000)
    activation_function: Literal["swish", "silu", "relu"]
    pad_token_id: int = Field(ge=0, le=10_000_000)
    eos_token_id: int = Field(ge=0, le=10_000_000)
    decoder_start_token_id: int = Field(ge=0, le=10_000_000)
    scale_embedding: Literal[True]
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)
    attention_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    activation_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    max_position_embeddings: int = Field(default=512, ge=2, le=1_000_000)
    num_beams: int = Field(default=5, ge=1, le=1000)
    share_encoder_decoder_embeddings: bool = True
    tie_word_embeddings: bool = True
    normalize_before: Literal[False] = False
    normalize_embedding: Literal[False] = False
    add_final_layer_norm: Literal[False] = False
    static_position_embeddings: Literal[True] = True

    @property
    def target_size(self) -> int:
        """Size of the target vocabulary."""
        return self.decoder_vocab_size or self.vocab_size

    def transformer(self) -> TransformerConfig:
        """Convert the settings to the configuration of our Transformer.

        Raises:
            ConfigError: encoder and decoder differ in size, or settings contradict each other.
        """
        is_shared = self.share_encoder_decoder_embeddings
        if is_shared and not self.tie_word_embeddings:
            raise ConfigError(
                "share_encoder_decoder_embeddings without tie_word_embeddings; one table or two, or three"
            )
        if is_shared and self.target_size != self.vocab_size:
            raise ConfigError("share_encoder_decoder_embeddings, but decoder_vocab_size is not vocab_size")
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
            "norm_epsilon": NORM_EPSILON,
            "positions": "sinusoidal_halves",
            "tie": "all" if is_shared else "target" if self.tie_word_embeddings else "none",
            "output_bias": True,
        }
        return validate(TransformerConfig, tree)


@dataclass(frozen=True)
class MarianModel:
    """Marian model in memory, converted to our Transformer but not yet written."""

    config: TransformerConfig
    weights: Mapping[str, Tensor]
    """Float32 weights by parameter name of our Transformer."""
    source_order: tuple[int, ...]
    """Marian id of each of our source token ids."""
    target_order: tuple[int, ...]
    source_tokenizer: MarianTokenizer
    target_tokenizer: MarianTokenizer
    max_tokens: int
    """Maximum number of tokens of a source or an output, without EOS."""
    num_beams: int
    languages: tuple[str, str]
    """Language codes of source and target; empty = unknown."""


def read_marian(folder: Path) -> MarianModel:
    """Read a Marian model.

    Args:
        folder: folder in Hugging Face's layout.

    Raises:
        UsageError: there is no such folder, or it has no config.json.
        FileRefused: a file is missing, damaged, unsafe or inconsistent with the others, or our Transformer cannot
            express the model.
    """
    if not (folder / CONFIG).is_file():
        what = "no config.json in it" if folder.is_dir() else "not a folder" if folder.exists() else "no such folder"
        raise UsageError(f"{folder}: {what}; import takes a Marian model's folder in Hugging Face's layout")
    try:
        settings = validate(MarianSettings, _read_json(folder / CONFIG))
        config = settings.transformer()
    except ConfigError as error:
        raise FileRefused(f"{folder / CONFIG}: not a Marian model that heedful can run: {error}") from None
    (source_order, source_tokens), (target_order, target_tokens) = _read_sides(folder, settings)
    return MarianModel(
        config,
        _Weights(_weights_file(folder), settings).translated(source_order, target_order),
        source_order,
        target_order,
        _read_tokenizer(folder / SOURCE_PIECES, source_tokens),
        _read_tokenizer(folder / TARGET_PIECES, target_tokens),
        settings.max_position_embeddings - 1,
        settings.num_beams,
        _languages(folder),
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = read_json_object(path, MOST_BULK_BYTES)
    except OSError as error:
        raise FileRefused(f"{path}: {(error.strerror or 'not readable').lower()}; copy the whole folder") from None
    return {key: value for key, value in content.items() if value is not None}


def _read_sides(folder: Path, settings: MarianSettings) -> tuple[tuple[tuple[int, ...], Vocabulary], ...]:
    """Order of Marian's ids and vocabulary, for source and target, which may share one.

    Raises:
        FileRefused: a vocabulary is damaged or lacks special tokens, or pad and eos differ between the sides.
    """
    path = folder / VOCABULARY
    tokens = _read_tokens(path, settings.vocab_size)
    if settings.share_encoder_decoder_embeddings:
        both = _ordered(path, tokens, settings, settings.decoder_start_token_id)
        return both, both
    target_path = folder / TARGET_VOCABULARY
    target_path = target_path if target_path.is_file() else path
    target_tokens = _read_tokens(target_path, settings.target_size)
    target = _ordered(target_path, target_tokens, settings, settings.decoder_start_token_id)
    # A source never contains BOS, so on the source side any token may stand for it: its own, or else the padding token.
    names = {token: index for index, token in tokens.items()}
    source = _ordered(path, tokens, settings, names.get(SPECIAL_TOKENS[BOS], settings.pad_token_id))
    for index in (settings.pad_token_id, settings.eos_token_id):
        if tokens[index] != target_tokens[index]:
            raise FileRefused(f"{target_path}: id {index} is {target_tokens[index]!r}, but {tokens[index]!r} in {path}")
    return source, target


def _read_tokens(path: Path, size: int) -> dict[int, str]:
    """Marian tokens by id.

    Raises:
        FileRefused: the file cannot be read, or the ids are not 0, 1, 2, ... up to the size.
    """
    tokens: dict[int, str] = {}
    for token, index in _read_json(path).items():
        if type(index) is not int or not 0 <= index < size or index in tokens:
            raise FileRefused(f"{path}: id {index!r} of {token!r} occurs twice or is outside the vocabulary of {size}")
        tokens[index] = token
    if len(tokens) != size:
        raise FileRefused(f"{path}: {len(tokens)} tokens, but config.json says vocab_size {size}")
    return tokens


def _ordered(
    path: Path, tokens: Mapping[int, str], settings: MarianSettings, start: int
) -> tuple[tuple[int, ...], Vocabulary]:
    """Marian ids in our order (pad, unk, bos, eos, then the others in Marian's order), and the vocabulary so ordered.

    Raises:
        FileRefused: a special token is missing, or a token is repeated.
    """
    unknown = next((index for index, token in tokens.items() if token == "<unk>"), -1)
    pad, eos = settings.pad_token_id, settings.eos_token_id
    if unknown < 0 or max(pad, eos, start) >= len(tokens) or len({pad, eos, unknown}) < 3:
        raise FileRefused(f"{path}: has no <unk>, or pad {pad}, eos {eos}, start {start} of config.json do not fit it")
    special = {pad, unknown, eos}
    if tokens[start] == SPECIAL_TOKENS[BOS]:
        special.add(start)  # as in our exports, where the start token is BOS and not also the padding token
    rest = [index for index in range(len(tokens)) if index not in special]
    try:
        vocabulary = Vocabulary([*SPECIAL_TOKENS, *(tokens[index] for index in rest)])
    except FileRefused as error:
        raise FileRefused(f"{path}: {error}") from None
    return (pad, unknown, start, eos, *rest), vocabulary


def _read_tokenizer(path: Path, vocabulary: Vocabulary) -> MarianTokenizer:
    try:
        return MarianTokenizer(read_bytes(path, MOST_BULK_BYTES), vocabulary)
    except OSError as error:
        raise FileRefused(f"{path}: {(error.strerror or 'not readable').lower()}; copy the whole folder") from None
    except FileRefused as error:
        raise FileRefused(f"{path}: {error}") from None


def _weights_file(folder: Path) -> Path:
    """Path of the weights.

    Raises:
        FileRefused: there are no weights, or only pickles, which can run code when they are read.
    """
    path = folder / WEIGHTS
    if path.is_file():
        return path
    if pickles := sorted(weights.name for weights in folder.glob("*.bin")):
        why = f"{pickles[0]} is a pickle, which can run code when it is read"
        raise FileRefused(f"{folder}: no {WEIGHTS}; {why}: save the model anew as safetensors")
    raise FileRefused(f"{path}: no such file; copy the whole folder")


def _languages(folder: Path) -> tuple[str, str]:
    path = folder / TOKENIZER_CONFIG
    content = _read_json(path) if path.is_file() else {}
    source, target = content.get("source_lang"), content.get("target_lang")
    return (source, target) if isinstance(source, str) and isinstance(target, str) else ("", "")


@final
class _Weights:
    """Tensors of a Marian model, each removed when it is converted, so that leftover tensors are noticed."""

    def __init__(self, path: Path, settings: MarianSettings) -> None:
        self._path = path
        self._settings = settings
        try:
            self._left = load_file(path)
        except (OSError, SafetensorError) as error:
            raise FileRefused(f"{path}: not readable: {error}") from None

    def translated(self, source_order: tuple[int, ...], target_order: tuple[int, ...]) -> dict[str, Tensor]:
        """Return all weights by our parameter names.

        Raises:
            FileRefused: a tensor is missing, unknown, of another size or not finite.
        """
        settings, rows = self._settings, torch.tensor(target_order)
        bias = self._take(BIAS, 1, settings.target_size)[0][rows]
        if target_order.count(target_order[BOS]) > 1:
            bias[BOS] -= NEVER
        weights = self._tables(torch.tensor(source_order), rows) | {"output.bias": bias}
        sizes: dict[Axis, int] = {"hidden": settings.encoder_ffn_dim}
        parts: dict[str, list[Tensor]] = {}
        for named in layer_tensors(settings.encoder_layers, settings.decoder_layers):
            shape = [sizes.get(axis, settings.d_model) for axis in named.axes]
            parts.setdefault(named.ours, []).append(self._take(named.theirs, *shape))
        weights |= {name: tensors[0] if len(tensors) == 1 else torch.cat(tensors) for name, tensors in parts.items()}
        self._check_positions()
        if self._left:
            raise FileRefused(f"{self._path}: unknown tensors {', '.join(sorted(self._left)[:3])}; not a Marian model")
        return weights

    def _tables(self, source_rows: Tensor, target_rows: Tensor) -> dict[str, Tensor]:
        """Embeddings, and the output layer's weight where it is a separate table."""
        settings, source, target = self._settings, "source_embedding.weight", "target_embedding.weight"
        if settings.share_encoder_decoder_embeddings:
            names = (SHARED_TABLE, SOURCE_TABLE, TARGET_TABLE, OUTPUT_TABLE)
            return {source: self._one_table(names, settings.vocab_size)[source_rows]}
        tables = {source: self._one_table((SOURCE_TABLE,), settings.vocab_size)[source_rows]}
        if settings.tie_word_embeddings:
            return tables | {target: self._one_table((TARGET_TABLE, OUTPUT_TABLE), settings.target_size)[target_rows]}
        for name, theirs in ((target, TARGET_TABLE), ("output.weight", OUTPUT_TABLE)):
            tables[name] = self._one_table((theirs,), settings.target_size)[target_rows]
        return tables

    def _take(self, name: str, *shape: int) -> Tensor:
        tensor = self._left.pop(name, None)
        if tensor is None:
            raise FileRefused(f"{self._path}: has no {name}")
        if tuple(tensor.shape) != shape or not tensor.is_floating_point():
            actual = f"{tuple(tensor.shape)} {tensor.dtype}"
            raise FileRefused(f"{self._path}: {name} is {actual}, but config.json asks for {shape} numbers")
        tensor = tensor.to(torch.float32, copy=True)
        if not tensor.isfinite().all():
            raise FileRefused(f"{self._path}: {name} holds numbers that are not finite")
        return tensor

    def _one_table(self, names: tuple[str, ...], num_tokens: int) -> Tensor:
        """Embedding table that may be stored under several names.

        Raises:
            FileRefused: the tables stored under these names differ, or none is stored.
        """
        present = [name for name in names if name in self._left] or [names[0]]
        tables = [self._take(name, num_tokens, self._settings.d_model) for name in present]
        if not all(torch.equal(table, tables[0]) for table in tables[1:]):
            raise FileRefused(f"{self._path}: {', '.join(present)} differ, but config.json says that they are one")
        return tables[0]

    def _check_positions(self) -> None:
        """Check that stored position codes, which old folders have, are the sinusoids of the formula.

        Raises:
            FileRefused: the codes differ from the formula.
        """
        num, size = self._settings.max_position_embeddings, self._settings.d_model
        for name in POSITIONS:
            if name in self._left and not torch.allclose(
                self._take(name, num, size), sinusoids(torch.arange(num), size, is_halved=True).float(), atol=1e-3
            ):
                raise FileRefused(f"{self._path}: {name} are not the sinusoids of a Marian model")
