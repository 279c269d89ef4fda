"""Inputs of an attention call as one value that can be cut into tiles of queries and searched for tensors.

Pairs, masks and normalizers are dataclasses of tensors and plain values, so code can collect and replace the tensors of
a call without knowing its score or mask.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Final, TypeVar, final

import torch
from torch import Tensor

from heedful.attention.interface import Normalizer
from heedful.attention.lowered import LoweredScore
from heedful.attention.mask_bounds import MaskBounds

Tree = TypeVar("Tree")

_PLAIN: Final = (bool, int, float, str, type(None))


@final
@dataclass(frozen=True)
class AttentionInputs:
    """Inputs of attention for some queries."""

    pairs: LoweredScore
    value: Tensor
    """[*batch, key, value_size]"""
    rows: MaskBounds | None
    """Mask bounds; None = every query may attend to every key."""
    normalizer: Normalizer
    row_ids: Tensor | None = None
    """[*batch, query] index of each row, from which its noise is computed; None without noise."""

    def of_queries(self, rows: slice) -> "AttentionInputs":
        """Select queries.

        Args:
            rows: along the query axis.

        Returns:
            Inputs of those queries; tensors with a query axis are views.
        """
        return replace(
            self,
            pairs=self.pairs.of_queries(rows),
            rows=None if self.rows is None else self.rows.of_queries(rows),
            row_ids=None if self.row_ids is None else self.row_ids[..., rows],
        )

    def types(self) -> dict[str, torch.dtype]:
        """Return the dtypes of the tensors that all queries share.

        Returns:
            The types of keys and parameters by the names of their fields in `pairs`, and that of "value".
        """
        return {"value": self.value.dtype, **{name: tensor.dtype for name, tensor in self.pairs.shared().items()}}

    def widened(self) -> "AttentionInputs":
        """Convert shared half-precision tensors to float32, so that gradients of many tiles are summed in float32.

        A half-precision sum of many gradients would round away the small ones.

        Returns:
            The same numbers in wider types; call `narrowed` before computing with them.
        """
        wide = {torch.bfloat16: torch.float32, torch.float16: torch.float32}
        return self.narrowed({name: wide.get(dtype, dtype) for name, dtype in self.types().items()})

    def narrowed(self, types: Mapping[str, torch.dtype]) -> "AttentionInputs":
        """Convert shared tensors to given dtypes.

        Args:
            types: as `types` gives them.

        Returns:
            The same inputs in these types; no number changes if they were widened from them.
        """
        if self.types() == types:
            return self
        shared = {name: tensor.to(types[name]) for name, tensor in self.pairs.shared().items()}
        return replace(self, pairs=replace(self.pairs, **shared), value=self.value.to(types["value"]))


def is_open(tree: object) -> bool:
    """Tell whether `tensors_of` finds every tensor of a value.

    Args:
        tree: a dataclass, which may hold others.

    Returns:
        Whether it holds tensors and plain values only: no function, which may hold tensors of its own.
    """
    if is_dataclass(tree) and not isinstance(tree, type):
        return all(is_open(getattr(tree, each.name)) for each in fields(tree))
    return isinstance(tree, (Tensor, *_PLAIN))


def tensors_of(tree: object) -> list[Tensor]:
    """Return the tensors of a value.

    Args:
        tree: a dataclass or tuple, which may hold others.

    Returns:
        Each tensor, in the order of the fields; one that is held twice, twice.
    """
    return list(_walk(tree))


def with_tensors(tree: Tree, tensors: Sequence[Tensor]) -> Tree:
    """Replace the tensors of a value.

    Args:
        tree: a dataclass or tuple, which may hold others.
        tensors: as many as `tensors_of` finds, in its order.

    Returns:
        A copy. Constructors do not run, so gradients may replace parameters that must be positive.
    """
    return _rebuilt(tree, iter(tensors))


def _walk(tree: object) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    elif is_dataclass(tree):
        for each in fields(tree):
            yield from _walk(getattr(tree, each.name))
    elif isinstance(tree, tuple):
        for part in tree:  # pyright: ignore[reportUnknownVariableType]
            yield from _walk(part)  # pyright: ignore[reportUnknownArgumentType]


def _rebuilt(tree: Tree, tensors: Iterator[Tensor]) -> Tree:
    if isinstance(tree, Tensor):
        return next(tensors)  # pyright: ignore[reportReturnType]
    if isinstance(tree, tuple):
        return tuple(_rebuilt(part, tensors) for part in tree)  # pyright: ignore
    if not is_dataclass(tree):
        return tree
    copied = copy(tree)
    for each in fields(tree):
        # The dataclass is frozen, and its constructor would check constraints that gradients need not meet.
        object.__setattr__(copied, each.name, _rebuilt(getattr(tree, each.name), tensors))
    return copied
