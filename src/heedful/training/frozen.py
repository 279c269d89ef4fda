"""Frozen parameters, which a training leaves as they are."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from torch import nn

from heedful.errors import ConfigError


def freeze(model: nn.Module, patterns: Sequence[str]) -> None:
    """Freeze all parameters but those whose name matches a pattern.

    Args:
        patterns: shell patterns of parameter names, such as "decoder*"; none = nothing is frozen.

    Raises:
        ConfigError: no parameter has a name that matches a pattern.
    """
    names = [name for name, _ in model.named_parameters()]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            parts = ", ".join(sorted({name.partition(".")[0] for name in names}))
            raise ConfigError(f"training.train: no parameter is named {pattern}; names begin with {parts}")
    for name, parameter in model.named_parameters() if patterns else ():
        parameter.requires_grad_(any(fnmatchcase(name, pattern) for pattern in patterns))
