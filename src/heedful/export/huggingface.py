"""Export of our Transformer as a Marian model in Hugging Face's layout, which `transformers` loads as MarianMTModel.

Differences for which MarianMTModel has no setting are expressed in the weights. Interleaved instead of concatenated
sines and cosines are a permutation of the model dimensions. Another layer-norm epsilon is a rescaling of the vectors
between layer norms. Both are exact, with one exception: the first layer norm of each stack normalises a sum with
sinusoids, whose scale is fixed, so there Marian's epsilon applies. (A rescaled table of sinusoids would be read, but
lost when `transformers` saves the model again.) By default our models already have Marian's epsilon.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from heedful.engines.exported import Parity
from heedful.errors import FileRefused, ResourceError, UsageError
from heedful.export.marian import read_marian
from heedful.export.marian_layout import (
    BIAS,
    CONFIG,
    GENERATION_CONFIG,
    NORM_EPSILON,
    OUTPUT_TABLE,
    SHARED_TABLE,
    SOURCE_PIECES,
    SOURCE_TABLE,
    TARGET_PIECES,
    TARGET_TABLE,
    TARGET_VOCABULARY,
    TOKENIZER_CONFIG,
    VOCABULARY,
    WEIGHTS,
    layer_tensors,
)
from heedful.export.parity import draw_sources, measure
from heedful.files.atomic_write import sync, temporary_path
from heedful.models.engine import torch_backend
from heedful.models.interface import Seq2Seq
from heedful.models.transformer import Transformer, TransformerConfig
from heedful.search.config import SearchConfig
from heedful.search.inputs import token_draw
from heedful.text.marian import MarianTokenizer
from heedful.text.tokenizer import PieceTokenizer, Tokenizer
from heedful.text.vocabulary import BOS, EOS, PAD, SPECIAL_TOKENS, UNK
from heedful.version import __version__

MOST_COMPARED: Final = 100
"""Maximum length, in positions, of a source in the comparison with the original model."""
_SUBLAYERS: Final = {
    "encoder": (
        ("self_attention.in_proj_weight", "self_attention.out_proj", "around_attention"),
        ("feedforward.inner.weight", "feedforward.outer", "around_feedforward"),
    ),
    "decoder": (
        ("self_attention.in_proj_weight", "self_attention.out_proj", "around_self"),
        ("cross_attention.in_proj_weight", "cross_attention.out_proj", "around_cross"),
        ("feedforward.inner.weight", "feedforward.outer", "around_feedforward"),
    ),
}
"""For each sub-layer: its first projection, its last projection, and the layer norm after it."""

PieceTokenizers = tuple[PieceTokenizer | MarianTokenizer, PieceTokenizer | MarianTokenizer]


@final
@dataclass(frozen=True)
class Described:
    """Description of a model without its weights."""

    tokenizers: tuple[Tokenizer, Tokenizer]
    """Tokenizers of source and target."""
    max_tokens: int
    """Maximum number of tokens of a source or an output, without EOS."""
    search: SearchConfig
    languages: tuple[str, str] = ("", "")


def export_huggingface(model: Seq2Seq, described: Described, out: Path) -> Parity:
    """Write a folder in Hugging Face's layout, read it back, and compare its log probabilities with the model's.

    Args:
        described: tokenizers, limits and search settings of the model.
        out: the folder, which is empty or does not exist.

    Returns:
        Agreement of the written model with the original one.

    Raises:
        UsageError: `out` exists and is not an empty folder, or a Marian model cannot express this model.
        FileRefused: the written model gives other log probabilities; its files are deleted.
        ResourceError: the disk is full or refuses.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out}: already exists; name another folder")
    transformer, tokenizers = expressible(model, described.tokenizers)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with temporary_path(out, is_folder=True) as temporary:
            _write(transformer, tokenizers, described, temporary)
            parity = _compared(transformer, temporary, described.max_tokens)
            if not parity.is_exact:
                raise FileRefused(f"{out}: log probabilities differ by {parity.max_difference:.2g} nats; not kept")
            for path in temporary.iterdir():
                sync(path)
            temporary.replace(out)
        sync(out.parent)
    except (OSError, SafetensorError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        raise ResourceError(f"{out}: not written: {reason.lower()}; choose another folder or disk") from None
    return parity


def expressible(
    model: Seq2Seq, tokenizers: tuple[Tokenizer, Tokenizer], layout: str = "huggingface"
) -> tuple[Transformer, PieceTokenizers]:
    """Check that a Marian model can express a model.

    Args:
        tokenizers: of source and target.
        layout: name of the target of the export, for messages.

    Returns:
        The model and the tokenizers.

    Raises:
        UsageError: a Marian model cannot express them.
    """
    source, target = tokenizers
    if not isinstance(model, Transformer):
        raise UsageError(f"{layout}: Marian's models are Transformers, and this model is none; try --to onnx or js")
    if not model.has_papers_form:
        raise UsageError(
            f"{layout}: Marian's models have scaled dot products and softmax only, and copy no tokens; "
            "try --to onnx or js"
        )
    if model.config.norm != "post":
        raise UsageError(
            f"{layout}: Marian's models normalise after each sub-layer, and this one before; "
            'train with --set model.norm="post"'
        )
    if model.config.positions in {"learned", "none"}:
        raise UsageError(
            f"{layout}: Marian's models have sinusoidal positions; this one has positions {model.config.positions!r}"
        )
    if not isinstance(source, PieceTokenizer | MarianTokenizer) or not isinstance(
        target, PieceTokenizer | MarianTokenizer
    ):
        raise UsageError(f"{layout}: Marian's models cut text by SentencePiece, and this one into words or characters")
    return model, (source, target)


def _compared(model: Transformer, folder: Path, max_tokens: int) -> Parity:
    marian = read_marian(folder)
    sizes = len(marian.source_tokenizer), len(marian.target_tokenizer)
    again = marian.config.build(*sizes, marian.config.tie == "all")
    with torch.no_grad():
        for name, parameter in again.named_parameters():
            parameter.copy_(marian.weights[name])
    sources = draw_sources(token_draw(sizes[0]), min(max_tokens, MOST_COMPARED))
    most = max_tokens + 1
    return measure(torch_backend(model, most), torch_backend(again.eval(), most), sources, most)


def _write(model: Transformer, tokenizers: PieceTokenizers, described: Described, folder: Path) -> None:
    source, target = tokenizers
    is_shared = model.target_embedding is model.source_embedding
    vocabularies = {VOCABULARY: source} if is_shared else {VOCABULARY: source, TARGET_VOCABULARY: target}
    for name, tokenizer in vocabularies.items():
        pieces = tokenizer.pieces(range(len(tokenizer)))
        _write_json(folder / name, {piece: index for index, piece in enumerate(pieces)})
    (folder / SOURCE_PIECES).write_bytes(source.model)
    (folder / TARGET_PIECES).write_bytes(target.model)
    _write_json(folder / CONFIG, _config(model, tokenizers, described))
    _write_json(folder / GENERATION_CONFIG, _generation(described))
    languages = (
        {}
        if not all(described.languages)
        else dict(zip(("source_lang", "target_lang"), described.languages, strict=True))
    )
    _write_json(
        folder / TOKENIZER_CONFIG,
        {
            "tokenizer_class": "MarianTokenizer",
            "pad_token": SPECIAL_TOKENS[PAD],
            "unk_token": SPECIAL_TOKENS[UNK],
            "eos_token": SPECIAL_TOKENS[EOS],
            "model_max_length": described.max_tokens + 1,
            "separate_vocabs": not is_shared,
            "clean_up_tokenization_spaces": False,
            **languages,
        },
    )
    tensors = {name: tensor.contiguous() for name, tensor in _weights(model).items()}
    about = {"heedful": __version__, "task": "translation", "languages": " ".join(described.languages).strip()}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt", **about})  # without the format it is not loaded


def _config(model: Transformer, tokenizers: PieceTokenizers, described: Described) -> dict[str, Any]:
    config = model.config
    is_shared = model.target_embedding is model.source_embedding
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": len(tokenizers[0]),
        "decoder_vocab_size": len(tokenizers[1]),
        "d_model": config.model_size,
        "encoder_layers": config.num_encoder_layers,
        "decoder_layers": config.num_decoder_layers,
        "encoder_attention_heads": config.num_heads,
        "decoder_attention_heads": config.num_heads,
        "encoder_ffn_dim": config.feedforward_size,
        "decoder_ffn_dim": config.feedforward_size,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.feedforward_dropout,
        "max_position_embeddings": described.max_tokens + 1,
        "scale_embedding": True,
        "static_position_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        "share_encoder_decoder_embeddings": is_shared,
        "tie_word_embeddings": model.output.weight is model.target_embedding.weight,
        **_special_ids(),
    }


def _special_ids() -> dict[str, int]:
    return {
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": EOS,
    }


def _generation(described: Described) -> dict[str, Any]:
    search = described.search
    never = [PAD, BOS, UNK] if search.forbid_unknown else [PAD, BOS]
    return {
        **_special_ids(),
        "bad_words_ids": [[token] for token in never],
        "max_length": described.max_tokens + 1,
        "num_beams": search.beam,
        "length_penalty": search.alpha if search.length_penalty == "power" else 1.0,
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8", newline="\n")


def _weights(model: Transformer) -> dict[str, Tensor]:
    """All tensors of the Marian model by name."""
    config = model.config
    size = config.model_size
    turns = torch.cat((torch.arange(0, size, 2), torch.arange(1, size, 2)))
    order = torch.arange(size) if config.positions == "sinusoidal_halves" else turns
    ours = _with_their_epsilon(model)
    num_tokens = len(model.output.weight)
    bias = ours.get("output.bias", torch.zeros(num_tokens))
    tensors = {BIAS: bias[None]}
    source = ours["source_embedding.weight"][:, order]
    if model.target_embedding is model.source_embedding:
        tensors[SHARED_TABLE] = source
    else:
        tensors |= {SOURCE_TABLE: source, TARGET_TABLE: ours["target_embedding.weight"][:, order]}
    if "output.weight" in ours:
        tensors[OUTPUT_TABLE] = ours["output.weight"][:, order]
    for named in layer_tensors(config.num_encoder_layers, config.num_decoder_layers):
        tensor = ours[named.ours]
        tensor = tensor if named.third < 0 else tensor.chunk(3)[named.third]
        for axis, kind in enumerate(named.axes):
            tensor = tensor.index_select(axis, order) if kind == "model" else tensor
        tensors[named.theirs] = tensor
    return tensors


def _with_their_epsilon(model: Transformer) -> dict[str, Tensor]:
    """Weights rescaled so that layer norms with Marian's epsilon give the same results as with ours.

    LN(x; e) = LN(c x; c^2 e), so the vectors between two layer norms are multiplied by c: the weights of the first
    layer norm and the outputs of the sub-layer are multiplied by c, and the projections that read the vectors are
    divided by c.
    """
    weights = {name: tensor.detach().cpu().to(torch.float32, copy=True) for name, tensor in model.named_parameters()}
    config: TransformerConfig = model.config
    scale = math.sqrt(NORM_EPSILON / config.norm_epsilon)
    for side, number in (("encoder", config.num_encoder_layers), ("decoder", config.num_decoder_layers)):
        for index in range(number):
            for position, (reads, adds, around) in enumerate(_SUBLAYERS[side]):
                layer = f"{side}_layers.{index}"
                is_first = index == position == 0
                is_last = index == number - 1 and position == len(_SUBLAYERS[side]) - 1
                if not is_first:
                    # In cross-attention, only the query projection reads this stack's vectors.
                    rows = config.model_size if reads.startswith("cross_") else None
                    weights[f"{layer}.{reads}"][:rows] /= scale
                    for name in ("weight", "bias"):
                        weights[f"{layer}.{adds}.{name}"] *= scale
                if not is_last:
                    for name in ("weight", "bias"):
                        weights[f"{layer}.{around}.norm.{name}"] *= scale
    return weights
