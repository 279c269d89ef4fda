"""Lowered scores: forms of query-key scores that kernels compute, without the parameters that produced them."""

from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Self, final

import torch
from torch import Tensor

from heedful.errors import ShapeError


def broadcast(first: torch.Size, *others: torch.Size) -> torch.Size:
    """Return the shape that all shapes broadcast to; fast in the usual case that they are equal.

    Args:
        first: a shape.

    Returns:
        The shape to which all can be expanded.

    Raises:
        RuntimeError: the shapes do not broadcast.
    """
    for other in others:
        if other != first:
            return torch.broadcast_shapes(first, *others)
    return first


def product(first: Tensor, second: Tensor) -> Tensor:
    """Multiply matrices, `first @ second`, in half of the time where a product of small batches needs no broadcasting.

    Args:
        first: [*batch, row, middle].
        second: [*batch, middle, column].

    Returns:
        [*batch, row, column].
    """
    # Comparing symbolic sizes would specialize a graph.
    if first.dim() == second.dim() == 3 and not torch.compiler.is_compiling() and len(first) == len(second):
        return torch.bmm(first, second)
    return first @ second


def scaled(tensor: Tensor, factor: Tensor | float) -> Tensor:
    """Multiply by a factor, unless it is the number 1.

    Args:
        tensor: any shape.
        factor: a number, or a tensor that broadcasts.

    Returns:
        The product; the tensor itself for the number 1.
    """
    return tensor if isinstance(factor, float) and factor == 1.0 else tensor * factor


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
        """
        exponential, rounding = (part.index_select(0, rows) for part in (self.exponential, self.rounding))
        return ExpKey(exponential, rounding, self.centre, self.lowest, self.highest, self.order)

    @cached_property
    def derived(self) -> dict[str, object]:
        """Cache of derived forms, filled by kernels; a copy with other tensors starts empty."""
        return {}


@final
@dataclass(frozen=True, eq=False)
class LoweredBias:
    """Bias of the scores of some queries: a function of positions, which is computed for one tile at a time."""

    query: Tensor
    """[*batch, query, size] queries before lowering; of size 0 if the bias does not depend on them."""
    positions: Tensor
    """[query] int64 position of each query among the keys."""
    parameters: tuple[Tensor, ...]
    function: Callable[..., Tensor]
    """Function from parameters, queries, and positions of queries and keys to biases [*#batch, query, key]."""
    inverse_temperature: Tensor | float = 1.0

    def tensors(self) -> tuple[Tensor, ...]:
        """Return the tensors that may receive gradient from biases.

        Returns:
            The tensors, in no particular order.
        """
        more = (self.inverse_temperature,) if isinstance(self.inverse_temperature, Tensor) else ()
        return self.query, *self.parameters, *more

    def of_queries(self, rows: slice) -> "LoweredBias":
        """Select queries.

        Args:
            rows: along the query axis.
        """
        return replace(self, query=self.query[..., rows, :], positions=self.positions[rows])

    def add_to(self, scores: Tensor) -> Tensor:
        """Add the biases to scores.

        Args:
            scores: [*batch, query, key] scores of all keys.

        Returns:
            [*batch, query, key] in the type of the scores.

        Raises:
            ShapeError: the biases have other axes than the scores.
        """
        key_positions = torch.arange(scores.shape[-1], device=scores.device)
        biases = self.function(self.parameters, self.query, self.positions, key_positions) * self.inverse_temperature
        sizes = zip(reversed(biases.shape), reversed(scores.shape), strict=False)
        # Sizes of an exported graph are symbolic: equal ones are compared first, which specializes nothing.
        if biases.dim() > scores.dim() or any(size != wanted and size != 1 for size, wanted in sizes):
            raise ShapeError(f"attend: scores {list(scores.shape)} cannot have biases {list(biases.shape)}")
        return scores + biases.to(scores.dtype)


@dataclass(frozen=True)
class LoweredScore(ABC):
    """Lowered queries and keys; a score is a function of one query and one key, plus a bias if there is one."""

    query: Tensor
    """[*batch, query, depth]"""
    key: Tensor
    """[*batch, key, depth]"""
    bias: LoweredBias | None = field(default=None, kw_only=True)
    """Bias by positions, which the tiled driver adds; None = no bias."""

    @property
    def leading(self) -> torch.Size:
        """Leading axes of the scores."""
        return broadcast(self.query.shape[:-2], self.key.shape[:-2])

    def tensors(self) -> tuple[Tensor, ...]:
        """Return the tensors that may receive gradient from scores.

        Returns:
            The tensors, in no particular order.
        """
        return (self.query, self.key) if self.bias is None else (self.query, self.key, *self.bias.tensors())

    def shared(self) -> dict[str, Tensor]:
        """Return the tensors that all queries share.

        Returns:
            Keys and parameters, by the names of their fields, and parameters of the bias by their indices.
        """
        others = (each.name for each in fields(self) if each.name != "query")
        own = {name: tensor for name in others if isinstance(tensor := getattr(self, name), Tensor)}
        if self.bias is None:
            return own
        return own | {f"bias {index}": parameter for index, parameter in enumerate(self.bias.parameters)}

    def with_shared(self, tensors: Mapping[str, Tensor]) -> Self:
        """Replace the tensors that all queries share.

        Args:
            tensors: by their names in `shared`.

        Returns:
            The same lowered score with these tensors.
        """
        own = {name: tensor for name, tensor in tensors.items() if not name.startswith("bias ")}
        if self.bias is None:
            return replace(self, **own)
        parameters = tuple(tensors[f"bias {index}"] for index in range(len(self.bias.parameters)))
        return replace(self, **own, bias=replace(self.bias, parameters=parameters))

    def folded(self) -> Self:
        """Fold a constant factor of the scores into the queries, for kernels without such a factor.

        Returns:
            Lowered score with the same scores.
        """
        return self

    def of_queries(self, rows: slice) -> Self:
        """Select queries.

        Args:
            rows: along the query axis.

        Returns:
            The lowered score of those queries with all keys.
        """
        bias = None if self.bias is None else self.bias.of_queries(rows)
        return replace(self, query=self.query[..., rows, :], bias=bias)

    def with_own_keys(self, key: Tensor) -> Self:
        """Give each query its own keys.

        Args:
            key: [*batch, query, near, depth] some of the keys for each query.

        Returns:
            Lowered score with the query axis as one more leading axis: [*batch, query, 1, depth] and `key`; without a
            bias, whose positions are those of all keys.
        """
        return replace(self, query=self.query[..., None, :], key=key)


@final
@dataclass(frozen=True)
class LoweredDot(LoweredScore):
    """scores[i, j] = scale query[i] . key[j]; a temperature that is a tensor is folded into `query`.

    Cost: depth multiply-adds per pair.
    """

    scale: float = 1.0
    """Constant factor of the scores."""

    @classmethod
    def with_factor(cls, query: Tensor, key: Tensor, factor: Tensor | float) -> "LoweredDot":
        """Lower dot products with a factor.

        Args:
            query: [*batch, query, depth].
            key: [*batch, key, depth].
            factor: factor of the scores; a tensor is multiplied with the queries.
        """
        return cls(query * factor, key) if isinstance(factor, Tensor) else cls(query, key, factor)

    def folded(self) -> "LoweredDot":
        return self if self.scale == 1.0 else replace(self, query=self.query * self.scale, scale=1.0)


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
        return *super().tensors(), self.vector

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
        return *super().tensors(), self.bandwidth, *more


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
