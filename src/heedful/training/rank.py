"""Where among the processes of one training this one stands, as `torchrun` tells each of them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from heedful.errors import UsageError


@dataclass(frozen=True)
class RankInfo:
    """One process of `size`."""

    rank: int = 0
    """From 0; the first alone writes and speaks."""
    size: int = 1
    local_rank: int = 0
    """Among those on this machine."""


def place(environment: Mapping[str, str] = os.environ) -> RankInfo:
    """Read what the launcher set.

    Args:
        environment: RANK, WORLD_SIZE and LOCAL_RANK in it.

    Returns:
        The place; one of one where nobody launched several.

    Raises:
        UsageError: the variables make no sense.

    Example:
        >>> place({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"})
        Place(rank=1, size=4, local_rank=1)
    """
    names = ("RANK", "WORLD_SIZE")
    if not all(environment.get(name) for name in names):
        return RankInfo()
    values = [environment[name] for name in names]
    values.append(environment.get("LOCAL_RANK", values[0]))
    if not all(value.isdecimal() for value in values) or not int(values[0]) < int(values[1]):
        told = ", ".join(f"{name}={value}" for name, value in zip((*names, "LOCAL_RANK"), values, strict=True))
        raise UsageError(f"{told}: not a place among several processes; start them with torchrun, or unset these")
    return RankInfo(*map(int, values))
