"""Small models in float64 for the tests of measures."""

from typing import Literal

import numpy as np
import torch

from heedful.inspection.measures.sublayers import AttentionSublayer, attention_sublayers
from heedful.models.transformer import Transformer, TransformerConfig
from heedful.search.inputs import TokenArrays

NORMS = ("post", "pre")
SOURCE = [5, 6, 7, 8, 3]
OUTPUT = [6, 9, 4, 3]
INPUTS = TokenArrays([np.array(SOURCE)])


def make_transformer(norm: Literal["post", "pre"] = "post", num_layers: int = 2) -> Transformer:
    torch.manual_seed(0)
    config = TransformerConfig(
        num_encoder_layers=num_layers,
        num_decoder_layers=num_layers,
        model_size=8,
        num_heads=2,
        feedforward_size=16,
        norm=norm,
    )
    model = config.build(10, 10, True).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def recorded(norm: str) -> list[AttentionSublayer]:
    return attention_sublayers(make_transformer("pre" if norm == "pre" else "post"), INPUTS, OUTPUT)
