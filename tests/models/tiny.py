"""Small models of every kind and option, in float64, with no parameter at a special value."""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from heedful.config.base import merge
from heedful.models.hard_attention import HardAttentionConfig
from heedful.models.inputs import TokenInputs
from heedful.models.interface import Seq2Seq
from heedful.models.luong import LuongAttention, LuongConfig
from heedful.models.rnn_encoder_decoder import RNNEncoderDecoderConfig
from heedful.models.rnnsearch import RNNsearchAttention, RNNsearchConfig
from heedful.models.transformer import TransformerConfig
from heedful.text.vocabulary import BOS, EOS

NUM_SOURCE_TOKENS, NUM_TARGET_TOKENS = 11, 9
Module = TypeVar("Module", bound=nn.Module)
Config = TransformerConfig | RNNsearchConfig | LuongConfig | RNNEncoderDecoderConfig | HardAttentionConfig


def changed(config: Config, **changes: object) -> Config:
    """The same configuration with other values, checked again; those of a table are laid on what stands there."""
    return type(config)(**merge(config.model_dump(), changes))  # type: ignore[arg-type]


_TRANSFORMER = TransformerConfig(
    num_encoder_layers=2, num_decoder_layers=2, model_size=8, num_heads=2, feedforward_size=12, dropout=0.3
)
_RNNSEARCH = RNNsearchConfig(
    embedding_size=5, hidden_size=6, maxout_size=4, dropout=0.3, attention=RNNsearchAttention(hidden_size=7)
)
_LUONG = LuongConfig(embedding_size=5, hidden_size=6, dropout=0.3, attention=LuongAttention(half_width=2))
_SUTSKEVER = RNNEncoderDecoderConfig(embedding_size=5, hidden_size=6, dropout=0.3)
_CHO = RNNEncoderDecoderConfig(
    cell="gru",
    num_layers=1,
    embedding_size=5,
    hidden_size=6,
    maxout_size=4,
    is_source_reversed=False,
    initial_state="mapped",
    context="mapped",
    decoder_reset="with_context",
    readout="maxout",
    dropout=0.3,
)
_HARD = HardAttentionConfig(
    embedding_size=5, hidden_size=6, num_encoder_layers=1, readout_size=4, max_shift=2, dropout=0.3
)

CONFIGS: Mapping[str, Config] = {
    "transformer-pre": _TRANSFORMER,
    "transformer-post": changed(_TRANSFORMER, norm="post", attention_dropout=0.2),
    "transformer-learned": changed(_TRANSFORMER, positions="learned", max_positions=40, tie="none"),
    "transformer-bias": changed(
        _TRANSFORMER, output_bias=True, tie="target", num_decoder_layers=1, feedforward_dropout=0.2
    ),
    "transformer-marian": changed(
        _TRANSFORMER,
        norm="post",
        positions="sinusoidal_halves",
        activation="swish",
        norm_epsilon=1e-5,
        output_bias=True,
    ),
    "rnnsearch": _RNNSEARCH,
    "rnnsearch-state": changed(_RNNSEARCH, readout="state"),
    "rnnsearch-last": changed(_RNNSEARCH, initial_state="last"),
    "rnnsearch-after": changed(_RNNSEARCH, reset="after"),
    "rnnsearch-conditional": changed(_RNNSEARCH, decoder="conditional", readout_state="after", initial_state="mean"),
    "rnnsearch-convolutional": changed(
        _RNNSEARCH, encoder="convolutional", num_convolutions=2, initial_state="mean", max_positions=20
    ),
    "luong": _LUONG,
    "luong-global": changed(_LUONG, window="global", score="dot", has_feeding=False),
    "luong-concat": changed(_LUONG, score="concat", alignment_size=4, has_feeding=False, softmax_over="source"),
    "luong-location": changed(_LUONG, window="global", score="location", alignment_size=5, is_end_attended=False),
    "luong-monotonic": changed(_LUONG, window="local-m", output_bias=True),
    "luong-monotonic-last": changed(_LUONG, window="local-m", past_source="last", has_feeding=False),
    "luong-gru": changed(
        _LUONG, cell="gru", num_layers=1, is_bidirectional=True, is_source_reversed=False, score="additive"
    ),
    "luong-sentences": changed(_LUONG, attention={"has_sentences": True, "window": "local-p", "half_width": 2}),
    "rnnsearch-sentences": changed(_RNNSEARCH, attention={"has_sentences": True, "hidden_size": 5}),
    "luong-bidirectional": changed(_LUONG, is_bidirectional=True, window="global", score="scaled_dot"),
    "transformer-additive": changed(
        _TRANSFORMER, attention={"score": "additive", "has_query_bias": True, "normalizer": "sparsemax"}
    ),
    "transformer-relative": changed(
        _TRANSFORMER,
        positions="none",
        encoder_attention={"bias": "relative_keys", "max_distance": 3},
        decoder_attention={"bias": "relative_buckets", "num_buckets": 6, "max_distance": 4},
    ),
    "transformer-local": changed(
        _TRANSFORMER,
        attention={"score": "general", "window": "local-m", "half_width": 2, "past_source": "last"},
        encoder_attention={"normalizer": "projective_tree", "score": "cosine"},
        decoder_attention={"normalizer": "linear_chain", "window": "local-m", "half_width": 3},
    ),
    "rnnsearch-monotonic": changed(
        _RNNSEARCH,
        attention={"normalizer": "gumbel_softmax", "window": "local-m", "half_width": 2, "score": "location"},
    ),
    "rnnsearch-predictive": changed(
        _RNNSEARCH,
        decoder="conditional",
        attention={"normalizer": "entmax", "window": "local-p", "half_width": 2, "score": "general"},
    ),
    "rnnsearch-coverage": changed(_RNNSEARCH, attention={"has_coverage": True, "coverage_weight": 1.0}),
    "rnnsearch-filters": changed(_RNNSEARCH, attention={"location_filters": 3, "location_width": 5}),
    "rnnsearch-stops": changed(_RNNSEARCH, attention={"normalizer": "monotonic", "location_filters": 2}),
    "luong-stops": changed(_LUONG, attention={"normalizer": "monotonic", "window": "global"}, has_feeding=False),
    "luong-chunks": changed(
        _LUONG, attention={"normalizer": "monotonic", "chunk_width": 2, "score": "additive", "window": "local-m"}
    ),
    "luong-filters": changed(
        _LUONG,
        attention={"location_filters": 2, "location_width": 3, "has_coverage": True, "window": "global"},
        has_feeding=False,
    ),
    "luong-coverage": changed(
        _LUONG, attention={"has_coverage": True, "score": "concat", "window": "global"}, has_feeding=False
    ),
    "luong-coverage-monotonic": changed(
        _LUONG, attention={"has_coverage": True, "window": "local-m", "normalizer": "sparsemax", "projection_size": 3}
    ),
    "luong-coverage-predictive": changed(
        _LUONG, attention={"has_coverage": True, "normalizer": "straight_through", "softmax_over": "source"}
    ),
    "luong-projected": changed(
        _LUONG, attention={"normalizer": "straight_through", "window": "global", "projection_size": 3}
    ),
    "luong-words": changed(_LUONG, encoder="words", window="global", num_layers=1),
    "luong-heads": changed(_LUONG, encoder="heads", reader_size=4, head_attention={"normalizer": "softmax"}),
    "luong-trees": changed(_LUONG, encoder="heads", reader_size=4, window="global"),
    "sutskever": _SUTSKEVER,
    "cho": _CHO,
    "rnnencdec": changed(_CHO, context="plain", decoder_reset="before", readout_state="before"),
    "hard-monotonic": _HARD,
    "hard-any": changed(_HARD, is_monotonic=False, num_encoder_layers=2, num_decoder_layers=2),
    "hard-monotonic-independent": changed(_HARD, order=0, attention={"score": "additive", "hidden_size": 3}),
    "hard-any-independent": changed(_HARD, order=0, is_monotonic=False),
    "lstm-context": changed(_SUTSKEVER, context="plain", initial_state="mapped", is_source_reversed=False),
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


def perturbed(model: Module, seed: int = 0) -> Module:
    """Move every parameter from its first value: biases and normalisations too, so that none can be forgotten."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    return model


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


def run_steps(model: Seq2Seq, source: Tensor, lengths: Tensor, target_in: Tensor, is_prepared: bool = False) -> Tensor:
    """Features of the whole target, token by token; [source, target, size]."""
    memory = model.encode(TokenInputs(source, lengths))
    state = model.start(memory)
    memory = model.prepare_steps(memory) if is_prepared else memory
    features: list[Tensor] = []
    for tokens in target_in.T:
        decoded, state = model.step(tokens[:, None], state, memory)
        features.append(decoded.features)
    return torch.cat(features, dim=1)
