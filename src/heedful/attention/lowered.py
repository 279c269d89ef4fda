"""Lowered scores: forms of query-key scores that kernels compute, without the parameters that produced them."""

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Self, final

import torch
from torch import Tensor


def broadcast(first: torch.Size, *others: torch.Size) -> torch.Size:
    """Return the shape that all shapes broadcast to; fast in the usual case that they are equal.

    Args:
        first: a shape.
        others: more of them.

    Returns:
        The shape to which all can be expanded.

    Raises:
        RuntimeError: the shapes do not broadcast.
    """
    return first if all(other == first for other in others) else torch.broadcast_shapes(first, *others)


@final
@dataclass(frozen=True, eq=False)
class ExpKey:
    """Exponentials e^(2 (key - centre)), computed once per source for step-by-step decoding, and the keys' range."""

    exponential: Tensor
    """[*batch, key, slot] float32, or float64 for float64 keys."""
    rounding: Tensor
    """[*batch, key, slot] int16 rounding error of `exponential`."""
    centre: Tensor
    """[hidden] offset subtracted from the keys: 0 where they lie around 0."""
    lowest: Tensor
    """[hidden] smallest key - centre; -inf for a feature computed by tanh itself."""
    highest: Tensor
    """[hidden] largest key - centre; inf for a feature computed by tanh itself."""
    order: Tensor
    """[slot] int64 feature in each slot, -1 = none."""

    def select(self, rows: Tensor) -> "ExpKey":
        """Select sources.

        Args:
            rows: [selected] int64 indices into axis 0.

        Returns:
            The exponentials of those sources.
        """
        exponential, rounding = (part.index_select(0, rows) for part in (self.exponential, self.rounding))
        return ExpKey(exponential, rounding, self.centre, self.lowest, self.highest, self.order)

    @cached_property
    def derived(self) -> dict[str, object]:
        """Cache of derived forms, filled by kernels; a copy with other tensors starts empty."""
        return {}


@dataclass(frozen=True)
class LoweredScore(ABC):
    """Lowered queries and keys; a score is a function of one query and one key."""

    query: Tensor
    """[*batch, query, depth]"""
    key: Tensor
    """[*batch, key, depth]"""

    @property
    def leading(self) -> torch.Size:
        """Leading axes of the scores."""
        return broadcast(self.query.shape[:-2], self.key.shape[:-2])

    def tensors(self) -> tuple[Tensor, ...]:
        """Return the tensors that may receive gradient from scores.

        Returns:
            The tensors, in no particular order.
        """
        return self.query, self.key

    def shared(self) -> dict[str, Tensor]:
        """Return the tensors that all queries share.

        Returns:
            Keys and parameters, by the names of their fields.
        """
        others = (each.name for each in fields(self) if each.name != "query")
        return {name: tensor for name in others if isinstance(tensor := getattr(self, name), Tensor)}

    def of_queries(self, rows: slice) -> Self:
        """Select queries.

        Args:
            rows: along the query axis.

        Returns:
            The lowered score of those queries with all keys.
        """
        return replace(self, query=self.query[..., rows, :])

    def with_own_keys(self, key: Tensor) -> Self:
        """Give each query its own keys.

        Args:
            key: [*batch, query, near, depth] some of the keys for each query.

        Returns:
            Lowered score with the query axis as one more leading axis: [*batch, query, 1, depth] and `key`.
        """
        return replace(self, query=self.query[..., None, :], key=key)


@final
@dataclass(frozen=True)
class LoweredDot(LoweredScore):
    """scores[i, j] = query[i] . key[j]; scale and temperature are folded into `query`.

    Cost: depth multiply-adds per pair.
    """


@final
@dataclass(frozen=True)
class LoweredAdditive(LoweredScore):
    """scores[i, j] = vector . tanh(query[i] + key[j]); temperature is folded into `vector`.

    Cost: hidden_size tanh per pair.
    """

    vector: Tensor
    """[hidden]"""
    exp_key: ExpKey | None = None
    """Exponentials of the keys, computed beforehand by a kernel."""

    def tensors(self) -> tuple[Tensor, ...]:
        return self.query, self.key, self.vector

    def with_own_keys(self, key: Tensor) -> "LoweredAdditive":
        return LoweredAdditive(self.query[..., None, :], key, self.vector)


@final
@dataclass(frozen=True)
class LoweredDistance(LoweredScore):
    """scores[i, j] = inverse_temperature log K(|query[i] - key[j]| / bandwidth), K the profile; none where K = 0.

    Cost: depth squared differences per pair, and one K.
    """

    bandwidth: Tensor
    """[] above 0"""
    profile: str
    """Name in `profiles.PROFILES`."""
    inverse_temperature: Tensor | float = 1.0

    def tensors(self) -> tuple[Tensor, ...]:
        more = (self.inverse_temperature,) if isinstance(self.inverse_temperature, Tensor) else ()
        return self.query, self.key, self.bandwidth, *more


@final
@dataclass(frozen=True)
class GivenScores(LoweredScore):
    """scores = inverse_temperature function(query, key), any function that treats queries one by one.

    Cost: that of the function.
    """

    function: Callable[[Tensor, Tensor], Tensor]
    """Function from [*batch, query, query_size] and [*batch, key, key_size] to [*batch, query, key]; infinite scores
    are clamped to the largest finite numbers."""
    inverse_temperature: Tensor | float = 1.0
