"""Rank of this process among those of one training, as set by `torchrun`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from heedful.errors import UsageError


@dataclass(frozen=True)
class RankInfo:
    """Rank of one process among `size`."""

    rank: int = 0
    """Rank from 0; only the first process writes files and messages."""
    size: int = 1
    local_rank: int = 0
    """Rank among the processes of this machine."""


def rank_info(environment: Mapping[str, str] = os.environ) -> RankInfo:
    """Read the environment variables of the launcher.

    Args:
        environment: variables RANK, WORLD_SIZE and LOCAL_RANK, if set.

    Returns:
        The rank of this process; 0 of 1 without a launcher.

    Raises:
        UsageError: the variables are invalid.

    Example:
        >>> rank_info({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"})
        RankInfo(rank=1, size=4, local_rank=1)
    """
    names = ("RANK", "WORLD_SIZE")
    if not all(environment.get(name) for name in names):
        return RankInfo()
    values = [environment[name] for name in names]
    values.append(environment.get("LOCAL_RANK", values[0]))
    if not all(value.isdecimal() for value in values) or not int(values[0]) < int(values[1]):
        settings = ", ".join(f"{name}={value}" for name, value in zip((*names, "LOCAL_RANK"), values, strict=True))
        raise UsageError(f"{settings}: not a rank among several processes; start them with torchrun, or unset these")
    return RankInfo(*map(int, values))
