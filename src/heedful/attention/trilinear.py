"""Trilinear score, which adds linear functions of query and key to a weighted dot product."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.attention.interface import PreparedKey, Score
from heedful.attention.lowered import LoweredDot
from heedful.errors import ShapeError


@final
class Trilinear(Score):
    """a(q, k) = w . [q; k; q * k], w [3 size]. Seo et al. 2017, arXiv:1611.01603, eq. 1.

    Lowered to the dot product of [w_3 * q + w_2; w_1 . q] and [k; 1], where w_1, w_2 and w_3 are the thirds of w.

    Cost: depth + 1 multiply-adds per pair.

    Example:
        >>> from heedful.attention import attend
        >>> query, key = torch.ones(2, 3, 8), torch.ones(2, 5, 8)
        >>> list(attend(query, key, key, score=Trilinear(8, 8)).context.shape)
        [2, 3, 8]
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int = 0) -> None:
        """Draw the weights.

        Args:
            query_size: features of a query.
            key_size: features of a key, the same number.
            hidden_size: unused; part of every score's constructor.

        Raises:
            ShapeError: the sizes differ.
        """
        if query_size != key_size:
            raise ShapeError(
                f"trilinear score: query size {query_size} and key size {key_size} differ; use General, "
                "which maps between them"
            )
        super().__init__(query_size, key_size, hidden_size)
        self.weight = nn.Parameter(torch.empty(3, query_size))
        nn.init.xavier_uniform_(self.weight)

    def prepare(self, key: Float[Tensor, "*batch key key_size"]) -> PreparedKey:
        return PreparedKey(torch.cat((key, torch.ones_like(key[..., :1])), dim=-1))

    def lower(
        self,
        query: Float[Tensor, "*batch query query_size"],
        prepared: PreparedKey,
        inverse_temperature: Tensor | float = 1.0,
    ) -> LoweredDot:
        weights = query * self.weight[2] + self.weight[1]
        lowered = torch.cat((weights, query @ self.weight[0, :, None]), dim=-1)
        return LoweredDot.with_factor(lowered, prepared.key, inverse_temperature)
