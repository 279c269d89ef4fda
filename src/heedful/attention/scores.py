"""How a query is compared with a key. Each score lowers to one of the kinds of pairs that kernels know.

Paper's names: Bahdanau et al. 2015 (arXiv:1409.0473) e_ij = a(s_{i-1}, h_j); Luong et al. 2015 (arXiv:1508.04025)
score(h_t, h_s); Vaswani et al. 2017 (arXiv:1706.03762) Q K^T / sqrt(d_k).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, Self, final

import torch
from torch import Tensor, nn

from heedful.attention.pairs import AdditivePairs, DotPairs, Pairs
from heedful.errors import ShapeError


@dataclass(frozen=True)
class PreparedKey:
    """Keys after the part of a score that does not depend on the query, computed once per source."""

    key: Tensor
    """[*batch, key, size]"""

    def select(self, rows: Tensor) -> Self:
        """Keep some sources.

        Args:
            rows: [kept] indices into axis 0.

        Returns:
            The keys of those sources.
        """
        return type(self)(self.key.index_select(0, rows))


class Score(nn.Module, ABC):
    """A scoring function a(query, key), built from the sizes of both.

    Every score has the same constructor, so that one can be put in another's place.
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int = 0) -> None:
        super().__init__()
        self.query_size = query_size
        self.key_size = key_size
        self.hidden_size = hidden_size

    @abstractmethod
    def prepare(self, key: Tensor) -> PreparedKey:
        """Do the work that needs only the keys.

        Args:
            key: [*batch, key, key_size].

        Returns:
            What `lower` takes.
        """

    @abstractmethod
    def lower(self, query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0) -> Pairs:
        """Turn queries and prepared keys into pairs.

        Args:
            query: [*batch, query, query_size].
            prepared: from `prepare`.
            inverse_temperature: scores are multiplied by it.

        Returns:
            The pairs whose scores are a(query, key) * inverse_temperature.
        """


class _Dot(Score):
    """Common part of dot and scaled dot: both sizes are equal and there are no parameters."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int = 0) -> None:
        if query_size != key_size:
            raise ShapeError(
                f"dot score: query size {query_size} and key size {key_size} differ; use General, "
                "which maps between them"
            )
        super().__init__(query_size, key_size, hidden_size)

    @property
    @abstractmethod
    def scale(self) -> float:
        """What dot products are multiplied by."""

    def prepare(self, key: Tensor) -> PreparedKey:
        return PreparedKey(key)

    def lower(self, query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0) -> DotPairs:
        return DotPairs(query * (self.scale * inverse_temperature), prepared.key)


@final
class Dot(_Dot):
    """a(q, k) = q . k. Luong et al. 2015, eq. 8, dot."""

    @property
    def scale(self) -> float:
        return 1.0


@final
class ScaledDot(_Dot):
    """a(q, k) = q . k / sqrt(depth). Vaswani et al. 2017, eq. 1."""

    @property
    def scale(self) -> float:
        return 1.0 / math.sqrt(self.query_size)


@final
class General(Score):
    """a(q, k) = q W k, W [query_size, key_size], also called bilinear. Luong et al. 2015, eq. 8, general."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int = 0) -> None:
        super().__init__(query_size, key_size, hidden_size)
        self.weight = nn.Parameter(torch.empty(query_size, key_size))
        nn.init.xavier_uniform_(self.weight)

    def prepare(self, key: Tensor) -> PreparedKey:
        # W k, so that a step costs no projection of the keys.
        return PreparedKey(key @ self.weight.mT)

    def lower(self, query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0) -> DotPairs:
        return DotPairs(query * inverse_temperature, prepared.key)


@final
class Additive(Score):
    """a(q, k) = v . tanh(W q + U k), W [hidden, query], U [hidden, key], v [hidden].

    Bahdanau et al. 2015, A.1.2, where query = s_{i-1} and key = h_j; Luong's concat is the same function with
    W and U side by side in one matrix.
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int = 0) -> None:
        super().__init__(query_size, key_size, hidden_size or query_size)
        self.query_projection = nn.Linear(query_size, self.hidden_size, bias=False)
        self.key_projection = nn.Linear(key_size, self.hidden_size, bias=False)
        self.vector = nn.Parameter(torch.empty(self.hidden_size))
        bound = math.sqrt(3.0 / self.hidden_size)
        nn.init.uniform_(self.vector, -bound, bound)

    def prepare(self, key: Tensor) -> PreparedKey:
        return PreparedKey(self.key_projection(key))

    def lower(self, query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0) -> AdditivePairs:
        return AdditivePairs(self.query_projection(query), prepared.key, self.vector * inverse_temperature)


SCORES: Final[dict[str, type[Score]]] = {
    "dot": Dot,
    "scaled_dot": ScaledDot,
    "general": General,
    "additive": Additive,
}
"""Every score by name."""
