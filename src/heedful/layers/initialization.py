"""Initial parameters as in the papers."""

import torch
from torch import nn

from heedful.layers.embedding import Embedding, draw_normal
from heedful.layers.recurrent import GatedRecurrentUnit, LongShortTermMemory
from heedful.text.vocabulary import PAD


def draw_uniform(model: nn.Module, bound: float) -> None:
    """Draw every parameter uniformly from [-bound, bound]; pad rows of embeddings are zero.

    Sutskever et al. 2014, arXiv:1409.3215, section 3.4 (0.08); Luong et al. 2015, arXiv:1508.04025, section 4.1 (0.1).

    Args:
        bound: largest absolute value, above 0.
    """
    for parameter in model.parameters():
        # On the meta device torch would import a compiler first, which takes a second at every loading of a model.
        if not parameter.is_meta:
            nn.init.uniform_(parameter, -bound, bound)
    _clear_pads(model)


def draw_small(model: nn.Module, std: float = 0.01) -> None:
    """Draw matrices from a narrow normal distribution, recurrent ones orthogonal, and set vectors to zero.

    Bahdanau et al. 2015, arXiv:1409.0473, B.1; Cho et al. 2014, arXiv:1406.1078, section 4.1.1. Orthogonalised normal
    matrices are what the papers call random orthogonal matrices, or left singular vectors.

    Args:
        model: model whose parameters are all drawn.
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
