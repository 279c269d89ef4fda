"""Score biases: numbers added to scores by the positions of query and key, computed tile by tile.

A bias is a module that maps positions to numbers, so no [query, key] matrix is stored. A biased score is a score like
any other. The last query is at the position of the last key, as in masks, so that a decoder that caches its keys passes
the newest queries alone.
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import replace
from typing import Any, ClassVar, Final, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call

from heedful.attention.interface import PreparedKey, Score
from heedful.attention.lowered import LoweredBias, LoweredScore
from heedful.attention.tensor_tree import Pure
from heedful.errors import ShapeError, UsageError


class ScoreBias(nn.Module, ABC):
    """Bias b(i, j) of the score of query i and key j, by their positions.

    Every bias has the same constructor, so that they are interchangeable.

    Example:
        >>> position = torch.arange(4)
        >>> list(Alibi(2, 8)(torch.ones(2, 4, 8), position, position).shape)  # a bias of two heads
        [2, 4, 4]
    """

    reads_query: ClassVar[bool] = False
    """Whether the bias depends on the query's content, not only on its position."""

    def __init__(self, num_heads: int = 0, query_size: int = 0, *, is_causal: bool = False) -> None:
        """Create a bias without parameters.

        Args:
            num_heads: heads with a bias of their own, the last leading axis of the scores; 0 = no such axis.
            query_size: features of a query.
            is_causal: whether keys after the query are never attended, so that nothing is learned for them.

        Raises:
            ShapeError: a number is negative.
        """
        super().__init__()
        if min(num_heads, query_size) < 0:
            raise ShapeError(f"score bias: sizes must not be negative, got heads {num_heads}, query size {query_size}")
        self.num_heads = num_heads
        self.query_size = query_size
        self.is_causal = is_causal

    @abstractmethod
    def forward(
        self,
        query: Float[Tensor, "*batch query size"],
        query_positions: Int[Tensor, " query"],
        key_positions: Int[Tensor, " key"],
    ) -> Float[Tensor, "*#batch query key"]:
        """Compute the biases of a tile.

        Args:
            query: [*batch, query, size] queries; of size 0 unless `reads_query`. Its dtype is that of the result.
            query_positions: [query] position of each query among the keys.
            key_positions: [key] position of each key.

        Returns:
            [*#batch, query, key] biases, aligned with the scores from the right.
        """


@final
class Biased(Score):
    """a(q_i, k_j) + b(i, j): a score with a bias that depends on positions.

    Example:
        >>> from heedful.attention import ScaledDot, attend
        >>> query, key = torch.zeros(2, 3, 8), torch.zeros(2, 5, 8)
        >>> attended = attend(query, key, key, score=Biased(ScaledDot(8, 8), Alibi(2)), need="weights")
        >>> [round(float(weight), 3) for weight in attended.weights[0, 0]]
        [0.19, 0.202, 0.215, 0.202, 0.19]
    """

    is_positional = True

    def __init__(self, score: Score, bias: ScoreBias) -> None:
        """Add a bias to a score."""
        super().__init__(score.query_size, score.key_size, score.hidden_size)
        self.score = score
        self.bias = bias
        self.max_keys = score.max_keys

    def prepare(self, key: Tensor) -> PreparedKey:
        return self.score.prepare(key)

    def lower(self, query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0) -> LoweredScore:
        pairs = self.score.lower(query, prepared, inverse_temperature)
        num_queries, num_keys = query.shape[-2], prepared.key.shape[-2]
        bias = LoweredBias(
            query if self.bias.reads_query else query[..., :0].detach(),
            torch.arange(num_queries, device=query.device) + (num_keys - num_queries),
            tuple(self.bias.parameters()),
            _PureModule(self.bias),
            inverse_temperature,
        )
        return replace(pairs, bias=bias)


@final
class _PureModule(Pure):
    """Module as a function of its parameters."""

    def __init__(self, module: ScoreBias) -> None:
        self._module = module

    def __call__(self, *inputs: Any) -> Tensor:
        parameters, *others = inputs
        own = dict(self._module.named_parameters())
        if all(one is other for one, other in zip(own.values(), parameters, strict=True)):
            return self._module(*others)
        return functional_call(self._module, dict(zip(own, parameters, strict=True)), tuple(others))


@final
class Alibi(ScoreBias):
    """b(i, j) = -m |i - j|, slopes m = 2^(-8 h / H) for heads h = 1..H. Press et al. 2022, arXiv:2108.12409, section 3.

    For H that is no power of two, the slopes are those of the next smaller power, then every other one of the next
    larger, as in the authors' code. Without heads m = 1/2.

    Cost: 1 multiply-add per pair.

    Example:
        >>> bias = Alibi(2, 8)
        >>> position = torch.arange(4)
        >>> bias(torch.ones(2, 4, 8), position, position)[0, 3].tolist()
        [-0.1875, -0.125, -0.0625, -0.0]
    """

    def __init__(self, num_heads: int = 0, query_size: int = 0, *, is_causal: bool = False) -> None:
        super().__init__(num_heads, query_size, is_causal=is_causal)
        self.slopes = _slopes(num_heads) if num_heads else (0.5,)

    def forward(
        self,
        query: Float[Tensor, "*batch query size"],
        query_positions: Int[Tensor, " query"],
        key_positions: Int[Tensor, " key"],
    ) -> Float[Tensor, "*#batch query key"]:
        distances = (query_positions[:, None] - key_positions).abs().to(query.dtype)
        slopes = query.new_tensor(self.slopes)
        return -distances * (slopes[:, None, None] if self.num_heads else slopes)


def _slopes(num_heads: int) -> tuple[float, ...]:
    power = 1 << (num_heads.bit_length() - 1)
    first = tuple(2.0 ** (-8.0 * head / power) for head in range(1, power + 1))
    return first if power == num_heads else first + _slopes(2 * power)[::2][: num_heads - power]


class _Relative(ScoreBias, ABC):
    """Base of biases learned for relative positions j - i, which are clipped to a largest distance."""

    max_distance: int

    def index(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """[query, key] clipped relative positions, counted from the lowest, 0."""
        relative = key_positions - query_positions[:, None]
        return relative.clamp(-self.max_distance, 0 if self.is_causal else self.max_distance) + self.max_distance

    @property
    def num_relative(self) -> int:
        """Number of clipped relative positions."""
        return self.max_distance + 1 if self.is_causal else 2 * self.max_distance + 1


@final
class RelativeBuckets(_Relative):
    """b(i, j) = w[bucket(j - i)], a number for each head and bucket. Raffel et al. 2020, arXiv:1910.10683, section 2.1.

    Half of the buckets hold one distance each, the others spans that grow logarithmically up to `max_distance`, the
    last one all beyond. Keys after the query have half of all buckets, unless `is_causal`. T5 shares one table among
    all layers; there is no scale in T5's scores.

    Cost: a look-up per pair and head.

    Example:
        >>> bias = RelativeBuckets(2, 8)
        >>> position = torch.arange(5)
        >>> list(bias(torch.ones(2, 5, 8), position, position).shape)
        [2, 5, 5]
    """

    def __init__(
        self,
        num_heads: int = 0,
        query_size: int = 0,
        *,
        is_causal: bool = False,
        num_buckets: int = 32,
        max_distance: int = 128,
    ) -> None:
        """Create a table of zeros.

        Args:
            num_heads: heads with numbers of their own; 0 = no head axis.
            query_size: features of a query; not used.
            is_causal: whether keys after the query are never attended.
            num_buckets: number of buckets.
            max_distance: distance from which on all share a bucket.

        Raises:
            UsageError: there are too few buckets, or too many for the largest distance.
        """
        super().__init__(num_heads, query_size, is_causal=is_causal)
        num_each = num_buckets if is_causal else num_buckets // 2
        if num_each < 2 or max_distance <= num_each // 2:
            raise UsageError(
                f"relative buckets: {num_buckets} buckets of distances up to {max_distance}: at least 2 in each "
                "direction are needed, and half of them must be fewer than the largest distance"
            )
        self.max_distance = max_distance
        starts = _first_distances(num_each, max_distance)
        past = [bisect_right(starts, distance) - 1 for distance in range(max_distance, -1, -1)]
        future = [] if is_causal else [num_each + bucket for bucket in past[-2::-1]]
        self.buckets = (*past, *future)
        self.weight = nn.Parameter(torch.zeros(num_buckets, max(1, num_heads)))

    def forward(
        self,
        query: Float[Tensor, "*batch query size"],
        query_positions: Int[Tensor, " query"],
        key_positions: Int[Tensor, " key"],
    ) -> Float[Tensor, "*#batch query key"]:
        buckets = torch.tensor(self.buckets, device=query.device)
        # A number for each relative position first, because there are fewer of them than pairs.
        by_distance = self.weight[buckets].to(query.dtype)
        biases = by_distance[self.index(query_positions, key_positions)]
        return biases.movedim(-1, 0) if self.num_heads else biases[..., 0]


def _first_distances(num_buckets: int, max_distance: int) -> list[int]:
    """Least distance of each bucket of one direction."""
    num_exact = num_buckets // 2
    num_wide = num_buckets - num_exact
    starts = [*range(num_exact)]
    for wide in range(num_wide):
        start = math.ceil(num_exact * (max_distance / num_exact) ** (wide / num_wide))
        # Powers of floats round; whole numbers, both sides to the power of num_wide, do not.
        power = num_exact ** (num_wide - wide) * max_distance**wide
        while start**num_wide < power:
            start += 1
        while (start - 1) ** num_wide >= power:
            start -= 1
        starts.append(start)
    return starts


@final
class RelativeKeys(_Relative):
    """b(i, j) = q_i . w[clip(j - i, -k, k)] / sqrt(depth), k = max_distance. Shaw et al. 2018, arXiv:1803.02155, eq. 4.

    All heads share the vectors w, as in the paper. The paper's relative values, eq. 3, are not part of a score.

    Cost: (2 k + 1) query_size multiply-adds per query, and a look-up per pair.

    Example:
        >>> bias = RelativeKeys(2, 8)
        >>> position = torch.arange(5)
        >>> list(bias(torch.ones(2, 5, 8), position, position).shape)
        [2, 5, 5]
    """

    reads_query = True

    def __init__(
        self, num_heads: int = 0, query_size: int = 0, *, is_causal: bool = False, max_distance: int = 16
    ) -> None:
        """Draw the vectors, xavier-uniform.

        Args:
            num_heads: not used, because heads share the vectors.
            query_size: features of a query, at least 1.
            is_causal: whether keys after the query are never attended.
            max_distance: k, the distance from which on all positions share a vector.

        Raises:
            UsageError: a size is not positive.
        """
        super().__init__(num_heads, query_size, is_causal=is_causal)
        if min(query_size, max_distance) < 1:
            raise UsageError(
                f"relative keys: query size {query_size} and largest distance {max_distance} must be positive"
            )
        self.max_distance = max_distance
        self.weight = nn.Parameter(torch.empty(self.num_relative, query_size))
        nn.init.xavier_uniform_(self.weight)

    def forward(
        self,
        query: Float[Tensor, "*batch query size"],
        query_positions: Int[Tensor, " query"],
        key_positions: Int[Tensor, " key"],
    ) -> Float[Tensor, "*#batch query key"]:
        by_distance = (query * self.query_size**-0.5) @ self.weight.mT
        index = self.index(query_positions, key_positions)
        return by_distance.gather(-1, index.expand(*by_distance.shape[:-1], index.shape[-1]))


BIASES: Final[dict[str, type[ScoreBias]]] = {
    "alibi": Alibi,
    "relative_buckets": RelativeBuckets,
    "relative_keys": RelativeKeys,
}
"""All biases by name; constructors take (num_heads, query_size, is_causal=)."""
