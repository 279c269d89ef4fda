"""Fast forms of all layers and models on CPUs, for `heedful.layers.cpu.accelerate.accelerate`."""

from collections.abc import Mapping
from typing import Final

from torch import nn

from heedful.layers.cpu.accelerate import LAYER_FORMS, Form
from heedful.models import transformer_cpu
from heedful.models.transformer import Transformer

CPU_FORMS: Final[Mapping[type[nn.Module], Form]] = {**LAYER_FORMS, Transformer: transformer_cpu.forward}
"""All fast forms, by class of the module."""
