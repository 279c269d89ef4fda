"""Fast form of the Transformer on CPUs: a training step without padding.

Sources and targets are packed, one sequence after another, from the embeddings to the features; only attention needs to
know where a sequence ends. See docs/decisions/0014-training-without-padding.md.
"""

from functools import partial
from typing import Final

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.attention.dispatch import observer
from heedful.attention.interface import Need
from heedful.layers.cpu.layernorm import is_fused, normalized
from heedful.layers.cpu.packed_attention import attend_multihead
from heedful.layers.embedding import Embedding
from heedful.layers.packing import Packing
from heedful.layers.positions import Positions
from heedful.models.inputs import Inputs, VectorInputs, token_inputs
from heedful.models.interface import Decoded
from heedful.models.transformer import Transformer
from heedful.text.vocabulary import PAD

MAX_PACKED_LENGTH: Final = 256
"""Length of the longest sentences, in tokens, that are trained without padding; the attention of longer ones would take
too much memory."""


def forward(
    model: Transformer, inputs: Inputs, target_in: Int[Tensor, "batch target"], need: tuple[Need, ...] = ()
) -> Decoded:
    """Fast form of `Transformer.forward`.

    Args:
        inputs: token ids of the sources.
        target_in: [batch, target] bos and gold tokens.
        need: requested attention results; with any, padding is not removed.

    Returns:
        The result of `Transformer.forward`, up to rounding; features of padding are zero.
    """
    if isinstance(inputs, VectorInputs) or not is_packable(model, token_inputs(inputs).ids, target_in, need):
        return Transformer.forward(model, inputs, target_in, need)
    tokens = token_inputs(inputs)
    sources = Packing.of(tokens.lengths, tokens.ids.shape[1])
    targets = Packing.of((target_in != PAD).sum(dim=1), target_in.shape[1])

    def embedded(embedding: Embedding, positions: Positions, packing: Packing, ids: Tensor) -> Tensor:
        positions.codes(0, ids.shape[1])
        return model.drop(embedding(packing.pack(ids)) + positions.at(packing.positions()))

    vectors = embedded(model.source_embedding, model.source_positions, sources, tokens.ids)
    for layer in model.encoder:
        # The residual connection adds the deferred bias of attention.
        vectors = layer(vectors, partial(attend_multihead, layer.self_attention, None, sources, sources))
    over_source = normalized(model.encoder_norm, vectors)
    vectors = embedded(model.target_embedding, model.target_positions, targets, target_in)
    for layer in model.decoder:
        vectors = layer(
            vectors,
            partial(attend_multihead, layer.self_attention, None, targets, targets, is_causal=True),
            partial(attend_multihead, layer.cross_attention, over_source, targets, sources),
        )
    return Decoded(targets.unpack(normalized(model.decoder_norm, vectors)), {})


def is_packable(
    model: Transformer,
    source: Int[Tensor, "source position"],
    target_in: Int[Tensor, "batch target"],
    need: tuple[Need, ...],
) -> bool:
    """Tell whether training can go without padding: packed attention can run, and no weights are requested.

    Args:
        source: [source, position] token ids.
        target_in: [batch, target] token ids.
    """
    is_watched = bool(need) or observer.get() is not None
    has_dropout = model.training and bool(model.config.attention_dropout)
    if is_watched or has_dropout or not model.has_papers_form or not is_fused(model.target_embedding.weight):
        return False
    # The backward pass stores query x key weights.
    is_short = max(source.shape[1], target_in.shape[1]) <= MAX_PACKED_LENGTH
    is_one_to_one = len(source) == len(target_in)
    return is_short and is_one_to_one and all(one.dtype == torch.float32 for one in model.parameters())
