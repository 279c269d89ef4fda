"""Normalizer layer: a normalizer with its learned parameters, and with noise in training only."""

import random
from abc import ABC
from dataclasses import is_dataclass, replace
from typing import Final, final

import torch
from torch import nn

from heedful.attention.interface import Normalizer
from heedful.attention.softmax import SOFTMAX, Softmax
from heedful.attention.stochastic import GumbelSoftmax


class SoftStart(nn.Module, ABC):
    """Module that behaves differently in soft training steps, in which all attention is softmax.

    Example:
        >>> NormalizerLayer.is_soft
        False
    """

    is_soft: bool = False
    """Whether the training step is soft."""


def set_soft(module: nn.Module, is_soft: bool) -> None:
    """Begin or end soft steps of a model.

    Args:
        module: the model, or a part of it; changed in place.
        is_soft: whether its attention is softmax in training.

    Example:
        >>> from heedful.attention import Hard
        >>> layer = NormalizerLayer(Hard())
        >>> set_soft(layer, True)
        >>> layer.is_soft
        True
    """
    for part in module.modules():
        if isinstance(part, SoftStart):
            part.is_soft = is_soft


def is_soft(module: nn.Module) -> bool:
    """Tell whether a model is in a soft step.

    Returns:
        Whether its attention is softmax in training.
    """
    return any(part.is_soft for part in module.modules() if isinstance(part, SoftStart))


def is_soft_step(step: int, soft_start: int, soft_share: float, seed: int) -> bool:
    """Tell whether attention is softmax in a training step.

    Args:
        step: number of the step, from 1.
        soft_start: number of first steps in which it is.
        soft_share: share of the later steps in which it is; Xu et al. 2015, arXiv:1502.03044, section 4.1.

    Returns:
        The same for the same arguments, so that a resumed training goes on with the same steps.

    Example:
        >>> sum(is_soft_step(step, 100, 0.5, seed=1) for step in range(1, 1101))
        590
    """
    return step <= soft_start or random.Random(f"{seed} {step}").random() < soft_share


@final
class NormalizerLayer(SoftStart):
    """Module with the learned parameters of a normalizer, initialised with zeros.

    Kim et al. 2017, arXiv:1702.00887, learn the transitions of a linear chain; most normalizers learn nothing. In a
    soft training step (`set_soft`) softmax of its temperature is in its place, at inference never.

    Example:
        >>> from heedful.attention.stochastic import Sampled
        >>> layer = NormalizerLayer(Sampled())
        >>> type(layer()).__name__, type(layer.eval()()).__name__
        ('Sampled', 'Hard')
    """

    def __init__(self, normalizer: Normalizer, num_heads: int = 0) -> None:
        """Make the parameters.

        Args:
            normalizer: map from scores to weights, whose fields in `learned` become parameters.
            num_heads: number of heads, each with its own parameters; 0 = the scores have no head axis.
        """
        super().__init__()
        self.normalizer: Final = normalizer
        for name, shape in normalizer.learned.items():
            leading = (1, num_heads) if num_heads else ()
            self.register_parameter(name, nn.Parameter(torch.zeros((*leading, *shape))))

    def forward(self) -> Normalizer:
        """Return the normalizer with the current parameters.

        Returns:
            The normalizer in training, its deterministic form at inference.
        """
        if self.is_soft and self.training:
            return _softened(self.normalizer)
        chosen = self.normalizer if self.training else self.normalizer.without_noise()
        learned = dict(self.named_parameters())
        if not learned or not is_dataclass(chosen):
            return chosen
        return replace(chosen, **learned)


def _softened(normalizer: Normalizer) -> Normalizer:
    """Softmax of the same temperature, but for that of Gumbel noise, on which what is drawn does not depend."""
    temperature = 1.0 if isinstance(normalizer, GumbelSoftmax) else getattr(normalizer, "temperature", 1.0)
    return SOFTMAX if isinstance(temperature, float) and temperature == 1.0 else Softmax(temperature)
