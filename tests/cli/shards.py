"""A run that is killed between two shards of translations."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from heedful.engines.shards import Shard
from heedful.predictors import distillation


@contextmanager
def killed_at_shard(number: int) -> Iterator[None]:
    """Kill whatever translates shards once it has translated so many.

    Args:
        number: 1-based number of the shard that is not delivered any more.
    """
    usual, made = distillation._translated, 0

    def killed(teacher: Any, shards: list[Shard], say: Any) -> Iterator[Shard]:
        nonlocal made
        for shard in usual(teacher, shards, say):
            made += 1
            if made == number:
                raise KeyboardInterrupt
            yield shard

    with patch.object(distillation, "_translated", killed):
        yield
