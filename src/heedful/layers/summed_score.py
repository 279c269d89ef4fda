"""Summed score: two scores of one kind, each of a part of the key."""

from typing import Final, final

import torch
from torch import Tensor

from heedful.attention.interface import PreparedKey, Score
from heedful.attention.lowered import LoweredAdditive, LoweredDot
from heedful.errors import UsageError


@final
class SummedScore(Score):
    """a(q, [k; z]) = b(q, k) + c(q, z), b and c scores that are dot products, or additive, after their maps.

    With k the state of a word and z that of its sentence, the softmax of the sums is the hierarchical attention of
    Nallapati et al. 2016, arXiv:1602.06023, section 2.4: P(j) = P_w(j) P_s(s(j)) / sum_k P_w(k) P_s(s(k)), where P_w is
    the softmax of b over words and P_s that of c over sentences.

    Example:
        >>> from heedful.attention import Dot, Uniform, attend
        >>> score, key = SummedScore(Dot(4, 4), Uniform(4, 4)), torch.ones(3, 8)  # four features for each part
        >>> list(attend(torch.ones(2, 4), key, key, score=score).context.shape)
        [2, 8]
    """

    def __init__(self, first: Score, second: Score) -> None:
        """Join two scores.

        Args:
            first: score of the first part of the keys.
            second: score of the rest; its queries are those of the first.
        """
        super().__init__(first.query_size, first.key_size + second.key_size, first.hidden_size)
        self.first = first
        self.second = second
        dtype = next((weight.dtype for weight in first.parameters()), None)
        self._prepared_size: Final = first.prepare(torch.zeros(1, first.key_size, dtype=dtype)).key.shape[-1]

    def prepare(self, key: Tensor) -> PreparedKey:
        parts = key.split((self.first.key_size, self.second.key_size), dim=-1)
        prepared = [score.prepare(part).key for score, part in zip((self.first, self.second), parts, strict=True)]
        return PreparedKey(torch.cat(prepared, dim=-1))

    def lower(
        self, query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0
    ) -> LoweredDot | LoweredAdditive:
        size = self._prepared_size
        one, other = (
            score.lower(query, PreparedKey(part), inverse_temperature).folded()
            for score, part in (
                (self.first, prepared.key[..., :size]),
                (self.second, prepared.key[..., size:]),
            )
        )
        queries, keys = (torch.cat(both, dim=-1) for both in ((one.query, other.query), (one.key, other.key)))
        if isinstance(one, LoweredAdditive) and isinstance(other, LoweredAdditive):
            return LoweredAdditive(queries, keys, torch.cat((one.vector, other.vector)))
        if isinstance(one, LoweredDot) and isinstance(other, LoweredDot):
            return LoweredDot(queries, keys)
        raise UsageError("scores of words and sentences add up only where they are dot products, or additive")
