"""Memories and states as flat lists of named tensors, because graphs have only tensors as inputs and outputs."""

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
        name: prefix of the tensors' names.

    Returns:
        Tensors by dotted name, in a fixed order. Of a prepared key only the key is listed: its other tensors are for
        numba kernels, which graphs do not have.
    """
    return {".".join((name, *path)): _key(leaf) for path, leaf in named_leaves(record, _LEAVES)}


def rebuild(like: AnyRecord, tensors: Iterator[Tensor]) -> AnyRecord:
    """Build a record from its tensors; the inverse of `flatten`.

    Args:
        like: a record of the same structure.
        tensors: tensors in the order of `flatten`; only as many as the record has are consumed.
    """
    return map_leaves(
        like, lambda leaf: PreparedKey(next(tensors)) if isinstance(leaf, PreparedKey) else next(tensors), _LEAVES
    )


def _key(leaf: Tensor | PreparedKey) -> Tensor:
    return leaf.key if isinstance(leaf, PreparedKey) else leaf
