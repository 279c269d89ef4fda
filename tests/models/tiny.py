"""Small models of every kind and option, in float64, with no parameter at a special value."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from heedful.models.interface import Seq2Seq
from heedful.models.rnnsearch import RNNsearchConfig
from heedful.models.transformer import TransformerConfig
from heedful.text.vocabulary import BOS, EOS

NUM_SOURCE_TOKENS, NUM_TARGET_TOKENS = 11, 9
Config = TransformerConfig | RNNsearchConfig


def changed(config: Config, **changes: object) -> Config:
    """The same configuration with other values, checked again."""
    return type(config)(**(config.model_dump() | changes))  # type: ignore[arg-type]


_TRANSFORMER = TransformerConfig(
    num_encoder_layers=2, num_decoder_layers=2, model_size=8, num_heads=2, feedforward_size=12, dropout=0.3
)
_RNNSEARCH = RNNsearchConfig(embedding_size=5, hidden_size=6, alignment_size=7, maxout_size=4, dropout=0.3)

CONFIGS: Mapping[str, Config] = {
    "transformer-pre": _TRANSFORMER,
    "transformer-post": changed(_TRANSFORMER, norm="post", attention_dropout=0.2),
    "transformer-learned": changed(_TRANSFORMER, positions="learned", max_positions=40, tie="none"),
    "transformer-bias": changed(
        _TRANSFORMER, output_bias=True, tie="target", num_decoder_layers=1, feedforward_dropout=0.2
    ),
    "rnnsearch": _RNNSEARCH,
    "rnnsearch-state": changed(_RNNSEARCH, readout="state"),
    "rnnsearch-last": changed(_RNNSEARCH, initial_state="last"),
    "rnnsearch-after": changed(_RNNSEARCH, reset="after"),
}


def make_model(config: str | Config, seed: int = 0, is_shared: bool = False) -> Seq2Seq:
    """Build a model in evaluation mode; biases and normalisations are random too, so that none can be forgotten."""
    built = (CONFIGS[config] if isinstance(config, str) else config).build(
        NUM_SOURCE_TOKENS, NUM_SOURCE_TOKENS if is_shared else NUM_TARGET_TOKENS, is_shared
    )
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
    for module in built.modules():
        if isinstance(module, nn.LayerNorm):
            module.weight.data += 1.0
    return built.double().eval()


def make_sources(lengths: tuple[int, ...] = (5, 2, 7, 1), seed: int = 0) -> tuple[Tensor, Tensor]:
    """Draw padded sources that end in eos."""
    generator = np.random.default_rng(seed)
    source = np.zeros((len(lengths), max(lengths)), dtype=np.int64)
    for row, length in zip(source, lengths, strict=True):
        row[: length - 1] = generator.integers(4, NUM_SOURCE_TOKENS, size=length - 1)
        row[length - 1] = EOS
    return torch.from_numpy(source), torch.tensor(lengths)


def make_targets(num: int, length: int = 6, seed: int = 1) -> Tensor:
    """Draw what a decoder reads: bos, then tokens."""
    generator = np.random.default_rng(seed)
    targets = generator.integers(4, NUM_TARGET_TOKENS, size=(num, length))
    targets[:, 0] = BOS
    return torch.from_numpy(targets)


def run_steps(model: Seq2Seq, source: Tensor, lengths: Tensor, target_in: Tensor) -> Tensor:
    """Features of the whole target, token by token; [source, target, size]."""
    memory = model.encode(source, lengths)
    state = model.start(memory)
    features: list[Tensor] = []
    for tokens in target_in.T:
        decoded, state = model.step(tokens[:, None], state, memory)
        features.append(decoded.features)
    return torch.cat(features, dim=1)
