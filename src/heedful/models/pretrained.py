"""Initialisation of embeddings with pretrained word vectors."""

from collections.abc import Sequence
from typing import Final

import torch
from torch import nn

from heedful.data.pretrained_vectors import Pretrained
from heedful.errors import ConfigError
from heedful.layers.embedding import Embedding
from heedful.text.vocabulary import PAD

_SIZES: Final = ("model.embedding_size", "model.model_size")


def place_vectors(model: nn.Module, pretrained: Sequence[Pretrained]) -> None:
    """Initialise embeddings with pretrained vectors.

    All vectors of a table are scaled by one factor, so that their variance is that of the random initialisation;
    directions are preserved. Layers that share the table, such as an output layer, are initialised too.

    Args:
        model: model with fresh parameters and an embedding for each side, changed in place.
        pretrained: at most one for each side.

    Raises:
        ConfigError: the vector size differs from the embedding size, or two files are given for one table.
    """
    placed: dict[int, Pretrained] = {}
    for one in pretrained:
        # A model that reads sources alone has no other embedding to tell it from.
        names = (f"{one.side}_embedding", *(["embedding"] if one.side == "source" else []))
        embedding = next((part for name in names if (part := getattr(model, name, None)) is not None), None)
        if not isinstance(embedding, Embedding):
            raise ConfigError(f"text.{one.side}_vectors: this model has no single embedding of the {one.side}")
        weight = embedding.weight
        size = weight.shape[1]
        if one.rows.shape[1] != size:
            raise ConfigError(
                f"text.{one.side}_vectors: {one.path} has vectors of {one.rows.shape[1]} numbers, the model's "
                f"embedding has {size}; set {' or '.join(_SIZES)} to {one.rows.shape[1]}"
            )
        before = placed.setdefault(id(weight), one)
        if before.path != one.path:
            raise ConfigError(
                f"text.target_vectors: both sides share one table, which uses {before.path.name} already; "
                'set text.shared = false and model.tie = "target", or give one file'
            )
        with torch.no_grad():
            rows = torch.from_numpy(one.rows).to(weight)
            weight.copy_(rows * (weight.std() / rows.std().clamp_min(1e-12)))
            weight[PAD].zero_()
        weight.requires_grad_(not one.is_frozen)
