"""Monotonic attention: each query goes on from the key of the query before, and never back.

Raffel et al. 2017, arXiv:1704.00784: from key t_(i-1) on, key j is chosen with probability p_ij = sigmoid(e_ij), the
first time ends the search. Weights in training are the probabilities of all choices, eq. 8 and 9,

    q_ij = (1 - p_i,j-1) q_i,j-1 + a_i-1,j        a_ij = p_ij q_ij

where q_ij is the probability that key j is looked at; at inference the first key with p_ij > 1/2 has weight 1. With
chunks (MoChA: Chiu and Raffel 2018, arXiv:1712.05382, eq. 16 to 22) a query attends softly to the keys that end there.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, Self, final

import torch
from torch import Tensor
from torch.nn import functional

from heedful.attention.interface import Allowed, Normalized, Normalizer, RowIds, Scope, Scores
from heedful.attention.simplex import shift, wide_dtype
from heedful.attention.stochastic import fresh_seed, normal_noise, number_rows
from heedful.errors import ShapeError, UsageError


@final
@dataclass(frozen=True, eq=False)
class Monotonic(Normalizer):
    """weights[i, j] = probability that query i stops at key j, beginning where the query before it stopped.

    Raffel et al. 2017, arXiv:1704.00784, eq. 9. Where a query may pass all keys, the weights of a row sum to less
    than 1, and so do those of all later rows. A query that may attend nothing changes nothing for the next one. At
    inference `HardMonotonic` is in its place.

    Cost: four exponentials per score; queries follow each other, each with log2(keys) operations; all scores in memory.

    Example:
        >>> scores = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        >>> Monotonic(noise=0.0).normalize(scores, None).weights.tolist()
        [[0.5, 0.25, 0.125], [0.25, 0.25, 0.1875]]
    """

    previous: Tensor | None = None
    """[*batch, key] weights of the query before the first; None = all weight on the first key."""
    offset: Tensor | float = 0.0
    """r, added to all scores; a tensor has shape [] or [*leading], aligned from the left, and receives gradient."""
    noise: float = 1.0
    """Standard deviation of normal noise added to the scores, which drives probabilities to 0 and 1."""
    seed: Tensor | int | None = None
    """Seed of the noise, as for `random_bits`; None draws a new one from torch's generator in every call."""

    provides = frozenset({"weights", "argmax", "entropy"})
    weights_lie_in = "sub-simplex"
    scope: ClassVar[Scope] = "matrix"
    is_random = True
    is_positional = True
    is_shift_invariant = False
    has_memory = True
    learned = MappingProxyType({"offset": ()})

    def __post_init__(self) -> None:
        if not (math.isfinite(self.noise) and self.noise >= 0.0):
            raise UsageError(f"monotonic: noise {self.noise} is not a finite number of at least 0")

    @property
    def inverse_temperature(self) -> float:
        return 1.0

    def seeded(self) -> "Monotonic":
        return self if self.seed is not None else replace(self, seed=fresh_seed())

    def without_noise(self) -> "HardMonotonic":
        return HardMonotonic(self.previous, self.offset)

    def after(self, previous: Scores) -> Self:
        return replace(self, previous=previous)

    def normalize(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Normalized:
        energies = scores.to(wide_dtype(scores.dtype)) + _aligned(self.offset, scores)
        if self.noise:
            rows = number_rows(scores.shape[:-1], scores.device) if row_ids is None else row_ids
            seed = fresh_seed() if self.seed is None else self.seed
            energies = energies + self.noise * normal_noise(seed, rows, scores.shape[-1], energies.dtype)
        stops, passes = torch.sigmoid(energies), torch.sigmoid(-energies)
        if allowed is not None:
            stops, passes = stops.masked_fill(~allowed, 0.0), passes.masked_fill(~allowed, 1.0)

        def walk(query: int, carried: Tensor) -> Tensor:
            return stops[..., query, :] * _looked_at(passes[..., query, :], carried)

        return Normalized(_in_turn(walk, energies, allowed, self.previous).to(scores.dtype))


@final
@dataclass(frozen=True, eq=False)
class HardMonotonic(Normalizer):
    """weights = one-hot of the first key with a score above 0, from the key of the query before on.

    Raffel et al. 2017, arXiv:1704.00784, algorithm 1. Where there is none the row is zero, and so are all later ones.

    Cost: four operations per score; queries follow each other; all scores in memory.

    Example:
        >>> scores = torch.tensor([[-1.0, 2.0, 3.0], [5.0, -1.0, 0.5]])
        >>> HardMonotonic().normalize(scores, None).weights.tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    previous: Tensor | None = None
    """[*batch, key] as in `Monotonic`; the first key that has weight counts."""
    offset: Tensor | float = 0.0
    """r, as in `Monotonic`."""

    provides = frozenset({"weights", "argmax", "entropy"})
    weights_lie_in = "sub-simplex"
    scope: ClassVar[Scope] = "matrix"
    is_positional = True
    is_shift_invariant = False
    has_gradient = False
    has_memory = True
    learned = MappingProxyType({"offset": ()})

    @property
    def inverse_temperature(self) -> float:
        return 1.0

    def after(self, previous: Scores) -> Self:
        return replace(self, previous=previous)

    def normalize(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Normalized:
        is_chosen = scores.to(wide_dtype(scores.dtype)) + _aligned(self.offset, scores) > 0.0
        if allowed is not None:
            is_chosen = is_chosen & allowed

        def first(query: int, carried: Tensor) -> Tensor:
            # Sums alone, because a graph for another runtime has no loop over keys.
            ahead = is_chosen[..., query, :] & (carried.cumsum(dim=-1) > 0.0)
            return (ahead & (ahead.cumsum(dim=-1) == 1)).to(scores.dtype)

        return Normalized(_in_turn(first, scores, allowed, self.previous))


@final
@dataclass(frozen=True, eq=False)
class Chunkwise(Normalizer):
    """weights[j] = sum over the ends k = j to j + width - 1 of ends[k] times the softmax of scores[k-width+1 to k].

    MoChA: Chiu and Raffel 2018, arXiv:1712.05382, eq. 20 to 22, where `ends` are monotonic weights. Keys before the
    first one and masked ones are in no chunk.

    Cost: an exponential per score and key of a chunk.

    Example:
        >>> scores, ends = torch.zeros(1, 4), torch.tensor([[0.0, 0.0, 1.0, 0.0]])
        >>> Chunkwise(ends, width=2).normalize(scores, None).weights.tolist()
        [[0.0, 0.5, 0.5, 0.0]]
    """

    ends: Tensor
    """[*batch, query, key] probability that a chunk ends at a key; receives gradient."""
    width: int = 2
    """w, keys of a chunk, at least 1."""

    provides = frozenset({"weights", "argmax", "entropy"})
    weights_lie_in = "sub-simplex"
    scope: ClassVar[Scope] = "matrix"
    is_positional = True

    def __post_init__(self) -> None:
        if self.width < 1:
            raise UsageError(f"chunkwise: width {self.width} is not at least 1")

    @property
    def inverse_temperature(self) -> float:
        return 1.0

    def normalize(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Normalized:
        if self.ends.shape[-1] != scores.shape[-1]:
            raise ShapeError(f"chunkwise: ends of {self.ends.shape[-1]} keys for scores of {scores.shape[-1]}")
        # Far below all other scores, so that what is masked has no weight where a chunk has another key.
        shifted = shift(scores, allowed)
        chunks = torch.stack([_delayed(shifted, -torch.inf, delay) for delay in range(self.width)])
        ends = self.ends.to(shifted.dtype)
        shares = torch.softmax(chunks, dim=0) * ends
        weights = shares[0]
        for delay in range(1, self.width):
            weights = weights + _advanced(shares[delay], delay)
        if allowed is not None:
            weights = weights.masked_fill(~allowed, 0.0)
        return Normalized(weights.to(scores.dtype))


def _first_weights(scores: Tensor, previous: Tensor | None) -> Tensor:
    """Weights [*batch, key] that the first query goes on from.

    Raises:
        ShapeError: they are those of another number of keys.
    """
    if previous is None:
        return functional.pad(torch.ones_like(scores.sum(dim=-2)[..., :1]), (0, scores.shape[-1] - 1))
    if previous.shape[-1] != scores.shape[-1]:
        raise ShapeError(f"monotonic: weights of {previous.shape[-1]} keys before scores of {scores.shape[-1]}")
    return previous.to(scores.dtype)


def _in_turn(
    row_of: Callable[[int, Tensor], Tensor], scores: Tensor, allowed: Tensor | None, previous: Tensor | None
) -> Tensor:
    """Weights [*batch, query, key], each row from its number and the row before that had a key to attend to."""
    if not scores.shape[-1]:
        return scores
    carried = _first_weights(scores, previous)
    has_key = None if allowed is None else allowed.expand(scores.shape).any(dim=-1, keepdim=True)
    rows: list[Tensor] = []
    for query in range(scores.shape[-2]):
        row = row_of(query, carried)
        carried = row if has_key is None else torch.where(has_key[..., query, :], row, carried)
        rows.append(row)
    return torch.stack(rows, dim=-2) if rows else scores


def _looked_at(passes: Tensor, carried: Tensor) -> Tensor:
    """Probabilities q of eq. 9, by doubling: nothing is subtracted or divided, so that no probability is too small."""
    size = passes.shape[-1]
    factors, total, reach = _delayed(passes, 0.0, 1), carried, 1
    while reach < size:
        total = total + factors * _delayed(total, 0.0, reach)
        factors = factors * _delayed(factors, 0.0, reach)
        reach *= 2
    return total


def _delayed(rows: Tensor, fill: float, by: int) -> Tensor:
    """Rows [*, key] whose key j has what key j - by had."""
    return functional.pad(rows, (by, 0), value=fill)[..., : rows.shape[-1]]


def _advanced(rows: Tensor, by: int) -> Tensor:
    """Rows [*, key] whose key j has what key j + by had."""
    return functional.pad(rows, (0, by))[..., by:]


def _aligned(offset: Tensor | float, scores: Tensor) -> Tensor | float:
    """An offset [] or [*leading] with axes for those of the scores [*batch, query, key] that it lacks.

    Raises:
        ShapeError: it has more axes than the scores have leading ones.
    """
    if not isinstance(offset, Tensor) or not offset.dim():
        return offset
    if offset.dim() > scores.dim() - 2:
        raise ShapeError(f"monotonic: offset {list(offset.shape)} has more axes than the scores have leading ones")
    return offset.reshape(*offset.shape, *(1,) * (scores.dim() - offset.dim()))
