"""Encoders from outside the package, in place of those of recurrent models: ``model.encoder = "module:Class"``."""

from collections.abc import Collection

import torch
from torch import nn

from heedful.config.plugins import import_class, is_custom
from heedful.errors import did_you_mean


def check_encoder(name: str, known: Collection[str]) -> str:
    """Refuse an encoder that a model does not have.

    Args:
        name: one of the model's own, or ``module:Class``.
        known: names of the model's own.

    Returns:
        The name.

    Raises:
        ValueError: it is neither, for the validation of a configuration.
    """
    if name not in known and not is_custom(name):
        raise ValueError(f"no encoder {name!r}{did_you_mean(name, known)}, or module:Class of one of your own")
    return name


def build_custom_encoder(name: str, input_size: int, hidden_size: int) -> nn.Module:
    """Build an encoder from outside the package.

    Args:
        name: ``module:Class`` of a module that is built from these two sizes.

    Returns:
        Module with the attribute ``output_size``, whose ``forward(embedded [source, position, input_size], lengths
        [source])`` gives annotations [source, position, output_size].

    Raises:
        ValueError: it does not say its output size, or another one than a positive whole number.
    """
    encoder = import_class(name, nn.Module)(input_size, hidden_size)
    size = getattr(encoder, "output_size", None)
    if not isinstance(size, int) or size < 1:
        raise ValueError(f"{name}: output_size is {size!r}, expected the number of features of an annotation")
    return encoder


def custom_output_size(name: str, input_size: int, hidden_size: int) -> int:
    """Return the features of an annotation of an encoder, without computing or drawing anything.

    Args:
        name: as for `build_custom_encoder`.

    Raises:
        ValueError: as `build_custom_encoder`.
    """
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        return int(getattr(build_custom_encoder(name, input_size, hidden_size), "output_size"))  # noqa: B009
