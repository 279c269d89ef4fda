"""A tiny Marian model in Hugging Face's layout, whose every number is a sine."""

import io
import json
from pathlib import Path

import sentencepiece
import torch
from safetensors.torch import save_file
from torch import Tensor

TOKENS = ["</s>", "<unk>", "▁a", "b", "c", "▁", "d", "▁b", "ab", ">>x<<", "▁c", "<pad>"]
SIZE, HIDDEN, PAD = 8, 12, len(TOKENS) - 1
CONFIG = {
    "model_type": "marian",
    "vocab_size": len(TOKENS),
    "d_model": SIZE,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": HIDDEN,
    "decoder_ffn_dim": HIDDEN,
    "activation_function": "swish",
    "scale_embedding": True,
    "pad_token_id": PAD,
    "eos_token_id": 0,
    "decoder_start_token_id": PAD,
    "max_position_embeddings": 40,
    "num_beams": 4,
    "bad_words_ids": [[PAD]],
}


def shapes() -> dict[str, tuple[int, ...]]:
    """Every tensor of the model, and its sizes."""
    found: dict[str, tuple[int, ...]] = {
        "final_logits_bias": (1, len(TOKENS)),
        "model.shared.weight": (len(TOKENS), SIZE),
    }
    for layer in ("encoder.layers.0", "encoder.layers.1", "decoder.layers.0"):
        for attention in ("self_attn", "encoder_attn") if layer.startswith("decoder") else ("self_attn",):
            for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                found[f"model.{layer}.{attention}.{name}.weight"] = (SIZE, SIZE)
                found[f"model.{layer}.{attention}.{name}.bias"] = (SIZE,)
            found[f"model.{layer}.{attention}_layer_norm.weight"] = (SIZE,)
            found[f"model.{layer}.{attention}_layer_norm.bias"] = (SIZE,)
        found[f"model.{layer}.fc1.weight"], found[f"model.{layer}.fc1.bias"] = (HIDDEN, SIZE), (HIDDEN,)
        found[f"model.{layer}.fc2.weight"], found[f"model.{layer}.fc2.bias"] = (SIZE, HIDDEN), (SIZE,)
        found[f"model.{layer}.final_layer_norm.weight"] = found[f"model.{layer}.final_layer_norm.bias"] = (SIZE,)
    return found


def tensors() -> dict[str, Tensor]:
    """Its numbers: sines, so that no library's random numbers matter."""
    found: dict[str, Tensor] = {}
    for index, (name, shape) in enumerate(sorted(shapes().items())):
        count = torch.Size(shape).numel()
        waves = torch.sin(torch.arange(count, dtype=torch.float64) ** 2 * (1.3 + 0.11 * index) + index)
        is_scale = name.endswith("norm.weight")
        found[name] = (1 + 0.2 * waves if is_scale else 0.6 * waves).reshape(shape).float()
    found["model.shared.weight"][PAD] = 0
    return found


def write_folder(folder: Path) -> Path:
    """Write the model's five files."""
    folder.mkdir(parents=True, exist_ok=True)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(["a b c ab abc cab", "bb ca d b a", "ab ab d d cc"] * 5),
        model_writer=model,
        vocab_size=12,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(model.getvalue())
    (folder / "vocab.json").write_text(
        json.dumps({token: index for index, token in enumerate(TOKENS)}), encoding="utf-8"
    )
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"source_lang": "de", "target_lang": "en"}', encoding="utf-8")
    save_file(tensors(), folder / "model.safetensors", metadata={"format": "pt"})
    return folder
