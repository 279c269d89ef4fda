"""Tensor trees: tensors in nested dataclasses and tuples, listed, named, replaced and tested for completeness.

Inputs of attention calls, memories and states of models are such trees, so their tensors can be found and others put in
their places by code that knows no score, mask or model.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Final, TypeVar

from torch import Tensor

Tree = TypeVar("Tree")


class Pure(ABC):
    """Function whose result depends on its arguments alone, so that a tree with it has no hidden tensors."""

    @abstractmethod
    def __call__(self, *inputs: Any) -> Tensor:
        """Compute the result.

        Args:
            inputs: all tensors that may receive a gradient from the result.
        """


_PLAIN: Final = (bool, int, float, str, type(None), Pure)


def map_leaves(tree: Tree, function: Callable[[Any], object], leaves: tuple[type, ...] = (Tensor,)) -> Tree:
    """Replace the leaves of a tree.

    Args:
        tree: a dataclass or tuple, which may hold others.
        function: gives what takes the place of a leaf.
        leaves: types of the leaves, which are not looked into; other values than these, dataclasses and tuples stay.

    Returns:
        A copy. Nothing is checked again: gradients may stand where only positive numbers may.
    """
    if isinstance(tree, leaves):
        return function(tree)  # pyright: ignore[reportReturnType]
    if isinstance(tree, tuple):
        return tuple(map_leaves(part, function, leaves) for part in tree)  # pyright: ignore
    names = _field_names(type(tree))
    if names is None:
        return tree
    # Without a call of the constructor, which checks values, and without caches, which belong to the old tensors.
    copied = object.__new__(type(tree))
    for name in names:
        object.__setattr__(copied, name, map_leaves(getattr(tree, name), function, leaves))
    return copied  # pyright: ignore[reportReturnType]


def named_leaves(tree: object, leaves: tuple[type, ...] = (Tensor,)) -> Iterator[tuple[tuple[str, ...], Any]]:
    """List the leaves of a tree with their paths.

    Args:
        tree: a dataclass or tuple, which may hold others.
        leaves: types of the leaves, which are not looked into.

    Yields:
        Names of fields and indices in tuples that lead to a leaf, and the leaf, in the order of `map_leaves`.
    """
    if isinstance(tree, leaves):
        yield (), tree
        return
    for name, part in _parts(tree) or ():
        for path, leaf in named_leaves(part, leaves):
            yield (name, *path), leaf


def tensors_of(tree: object) -> list[Tensor]:
    """List the tensors of a tree.

    Args:
        tree: a dataclass or tuple, which may hold others.

    Returns:
        Each tensor, in the order of the fields; one that stands in two places, twice.
    """
    tensors: list[Tensor] = []
    _collect(tree, tensors)
    return tensors


def with_tensors(tree: Tree, tensors: Sequence[Tensor]) -> Tree:
    """Replace the tensors of a tree.

    Args:
        tree: a dataclass or tuple, which may hold others.
        tensors: as many as `tensors_of` lists, in its order.

    Returns:
        A copy. Nothing is checked again: gradients may stand where only positive numbers may.
    """
    remaining = iter(tensors)
    return map_leaves(tree, lambda _: next(remaining))


def is_open(tree: object) -> bool:
    """Tell whether all tensors of a tree can be found.

    Args:
        tree: a dataclass or tuple, which may hold others.

    Returns:
        Whether it holds tensors and plain values only: no function, which may hold tensors of its own.
    """
    parts = None if isinstance(tree, Pure) else _parts(tree)
    if parts is None:
        return isinstance(tree, (Tensor, *_PLAIN))
    return all(is_open(part) for _, part in parts)


def _parts(tree: object) -> list[tuple[str, object]] | None:
    """Names and parts of a dataclass or tuple; None for any other value."""
    if isinstance(tree, tuple):
        return [(str(index), part) for index, part in enumerate(tree)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    names = _field_names(type(tree))
    return None if names is None else [(name, getattr(tree, name)) for name in names]


def _collect(tree: object, tensors: list[Tensor]) -> None:
    """Append the tensors of a tree to a list; as `named_leaves`, without the cost of paths."""
    if isinstance(tree, Tensor):
        tensors.append(tree)
    elif isinstance(tree, tuple):
        for part in tree:  # pyright: ignore[reportUnknownVariableType]
            _collect(part, tensors)  # pyright: ignore[reportUnknownArgumentType]
    else:
        for name in _field_names(type(tree)) or ():
            _collect(getattr(tree, name), tensors)


@cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    """Names of the fields of a dataclass; None for any other type."""
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else None
