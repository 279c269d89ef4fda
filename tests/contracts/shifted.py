"""A score plus a number, on whatever pairs it lowers to."""

from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from heedful.attention.interface import PreparedKey, Score
from heedful.attention.lowered import LoweredAdditive, LoweredDistance, LoweredDot, LoweredScore
from tests.attention.cases import make_score


class Shifted(Score):
    """Another score plus a number."""

    def __init__(self, inner: Score, level: float) -> None:
        super().__init__(inner.query_size, inner.key_size)
        self.inner, self.level, self.max_keys = inner, level, inner.max_keys

    def prepare(self, key: Tensor) -> PreparedKey:
        return self.inner.prepare(key)

    def lower(self, query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0) -> LoweredScore:
        pairs = shifted(self.inner.lower(query, prepared, inverse_temperature), self.level)
        assert pairs is not None
        return pairs


def shifted(pairs: LoweredScore, level: float) -> LoweredScore | None:
    """The same pairs with every score higher by `level`; None where no pairs are."""

    def wider(tensor: Tensor, number: float | Tensor) -> Tensor:
        return torch.cat((tensor, torch.ones_like(tensor[..., :1]) * number), dim=-1)

    if isinstance(pairs, LoweredDot):
        return LoweredDot(wider(pairs.query, level), wider(pairs.key, 1.0))
    if isinstance(pairs, LoweredAdditive):
        # One more hidden unit, always 1.
        return LoweredAdditive(wider(pairs.query, 20.0), wider(pairs.key, 0.0), wider(pairs.vector, level))
    if isinstance(pairs, LoweredDistance) and pairs.profile == "gaussian" and level < 0:
        away = pairs.bandwidth * (-2.0 * level / pairs.inverse_temperature) ** 0.5
        return replace(pairs, query=wider(pairs.query, away), key=wider(pairs.key, 0.0))
    return None


@cache
def can_shift(score: str) -> bool:
    made = make_score(score, 2)
    pairs = made.lower(torch.zeros(1, 2).double(), made.prepare(torch.zeros(1, made.key_size).double()))
    return shifted(pairs, -1.0) is not None
