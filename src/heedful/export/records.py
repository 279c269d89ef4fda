"""Memories and states as flat lists of named tensors, the only inputs and outputs of a graph."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import TypeVar

from torch import Tensor

from heedful.attention.interface import PreparedKey
from heedful.models.record import Record

AnyRecord = TypeVar("AnyRecord", bound=Record)


def flatten(record: Record, name: str) -> dict[str, Tensor]:
    """List the tensors of a record.

    Args:
        record: a memory or a state.
        name: what their names begin with.

    Returns:
        Tensors by dotted name, in a fixed order. Prepared keys are their keys alone: what else they hold belongs to
        loops that no graph has.
    """
    return {f"{name}.{key}": tensor for key, tensor in _named(record)}


def rebuild(like: AnyRecord, tensors: Iterator[Tensor]) -> AnyRecord:
    """Make a record with other tensors.

    Args:
        like: a record of the same structure.
        tensors: in the order of `flatten`; those that the record needs are taken.

    Returns:
        The record.
    """
    return replace(like, **{field.name: _rebuilt(getattr(like, field.name), tensors) for field in fields(like)})


def _named(value: object) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield "", value
    elif isinstance(value, PreparedKey):
        yield "", value.key
    else:
        parts: list[tuple[str, object]] = []
        if isinstance(value, Record):
            parts = [(field.name, getattr(value, field.name)) for field in fields(value)]
        elif isinstance(value, tuple):
            parts = [(str(index), part) for index, part in enumerate(value)]  # pyright: ignore[reportUnknownArgumentType]
        for name, part in parts:
            for key, tensor in _named(part):
                yield f"{name}.{key}" if key else name, tensor


def _rebuilt(value: object, tensors: Iterator[Tensor]) -> object:
    if isinstance(value, Tensor):
        return next(tensors)
    if isinstance(value, PreparedKey):
        return PreparedKey(next(tensors))
    if isinstance(value, Record):
        return rebuild(value, tensors)
    if isinstance(value, tuple):
        return tuple(_rebuilt(part, tensors) for part in value)  # pyright: ignore[reportUnknownVariableType]
    return value
