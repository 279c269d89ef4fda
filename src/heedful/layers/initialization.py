"""Initial parameters as in the papers."""

import torch
from torch import nn

from heedful.layers.embedding import Embedding, draw_normal
from heedful.layers.recurrent import GatedRecurrentUnit, LongShortTermMemory
from heedful.text.vocabulary import PAD


def draw_uniform(model: nn.Module, bound: float) -> None:
    """Draw every parameter evenly from -bound to bound; pad rows of embeddings are zero.

    Sutskever et al. 2014, arXiv:1409.3215, section 3.4 (0.08); Luong et al. 2015, arXiv:1508.04025, section 4.1 (0.1).

    Args:
        model: all of its parameters are drawn.
        bound: above 0.
    """
    for parameter in model.parameters():
        # On the meta device torch would first import a compiler for this: a second, whenever a model is loaded.
        if not parameter.is_meta:
            nn.init.uniform_(parameter, -bound, bound)
    _clear_pads(model)


def draw_small(model: nn.Module, std: float = 0.01) -> None:
    """Draw matrices from a narrow normal distribution, recurrent ones orthogonal, and set vectors to zero.

    Bahdanau et al. 2015, arXiv:1409.0473, B.1; Cho et al. 2014, arXiv:1406.1078, section 4.1.1. Orthogonal matrices
    made from normal ones are what the papers call random orthogonal and left singular vectors.

    Args:
        model: all of its parameters are drawn.
        std: of the normal distribution.
    """
    for parameter in model.parameters():
        if parameter.dim() > 1:
            draw_normal(parameter, std)
        else:
            nn.init.zeros_(parameter)
    for part in model.modules():
        if isinstance(part, GatedRecurrentUnit):
            blocks = (*part.gates_map.chunk(2), part.candidate_map)
        elif isinstance(part, LongShortTermMemory):
            blocks = part.gates_map.chunk(4)
        else:
            continue
        for block in blocks:
            nn.init.orthogonal_(block)
    _clear_pads(model)


def _clear_pads(model: nn.Module) -> None:
    for part in model.modules():
        if isinstance(part, Embedding):
            with torch.no_grad():
                part.weight[PAD].zero_()
