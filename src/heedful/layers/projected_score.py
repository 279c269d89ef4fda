"""Projected score: queries and keys mapped into one space, then compared by any score."""

from typing import final

from torch import Tensor, nn

from heedful.attention.interface import PreparedKey, Score
from heedful.attention.lowered import LoweredScore


@final
class ProjectedScore(Score):
    """a(q, k) = b(W q, U k), b any score, W [size, query_size], U [size, key_size].

    One head of Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2, where b is the scaled dot product. Thus scores
    that require equal sizes, such as dot products and distances, accept queries and keys of any two sizes.

    Example:
        >>> import torch
        >>> from heedful.attention import Dot, attend
        >>> score = ProjectedScore(8, 6, Dot(4, 4))  # both are mapped to 4 features
        >>> list(attend(torch.ones(3, 8), torch.ones(5, 6), torch.ones(5, 6), score=score).context.shape)
        [3, 6]
    """

    def __init__(self, query_size: int, key_size: int, inner: Score) -> None:
        """Make the two maps, without biases.

        Args:
            query_size: features of a query before its projection.
            key_size: features of a key before its projection.
            inner: score of the projections; its query and key sizes are those of the projections.
        """
        super().__init__(query_size, key_size, inner.hidden_size)
        self.inner = inner
        self.max_keys = inner.max_keys
        self.query_projection = nn.Linear(query_size, inner.query_size, bias=False)
        self.key_projection = nn.Linear(key_size, inner.key_size, bias=False)

    def prepare(self, key: Tensor) -> PreparedKey:
        return self.inner.prepare(self.key_projection(key))

    def lower(self, query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0) -> LoweredScore:
        return self.inner.lower(self.query_projection(query), prepared, inverse_temperature)
