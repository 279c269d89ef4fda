"""Memories and states as flat lists of named tensors, the only inputs and outputs of a graph."""

from collections.abc import Iterator
from typing import Final, TypeVar

from torch import Tensor

from heedful.attention.interface import PreparedKey
from heedful.attention.tensor_tree import map_leaves, named_leaves
from heedful.models.record import Record

AnyRecord = TypeVar("AnyRecord", bound=Record)

_LEAVES: Final = (Tensor, PreparedKey)


def flatten(record: Record, name: str) -> dict[str, Tensor]:
    """List the tensors of a record.

    Args:
        record: a memory or a state.
        name: what their names begin with.

    Returns:
        Tensors by dotted name, in a fixed order. Prepared keys are their keys alone: what else they hold belongs to
        loops that no graph has.
    """
    return {".".join((name, *path)): _key(leaf) for path, leaf in named_leaves(record, _LEAVES)}


def rebuild(like: AnyRecord, tensors: Iterator[Tensor]) -> AnyRecord:
    """Make a record with other tensors.

    Args:
        like: a record of the same structure.
        tensors: in the order of `flatten`; those that the record needs are taken.

    Returns:
        The record.
    """
    return map_leaves(
        like, lambda leaf: PreparedKey(next(tensors)) if isinstance(leaf, PreparedKey) else next(tensors), _LEAVES
    )


def _key(leaf: Tensor | PreparedKey) -> Tensor:
    return leaf.key if isinstance(leaf, PreparedKey) else leaf
