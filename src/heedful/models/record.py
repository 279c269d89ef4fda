"""Records: dataclasses of tensors, selected as one; inputs, memories and states of models."""

from dataclasses import dataclass, fields, replace
from typing import Self

from torch import Tensor

from heedful.attention.interface import PreparedKey


@dataclass(frozen=True)
class Record:
    """Dataclass of tensors, tuples of tensors and plain numbers. Axis 0 of every tensor = source, everywhere."""

    def select(self, sources: Tensor) -> Self:
        """Select sources.

        Args:
            sources: [kept] indices into axis 0.

        Returns:
            The same record with only these.
        """
        return replace(self, **{f.name: _select(getattr(self, f.name), sources) for f in fields(self)})


def _select(value: object, sources: Tensor) -> object:
    if isinstance(value, Tensor):
        return value.index_select(0, sources)
    if isinstance(value, Record | PreparedKey):
        return value.select(sources)
    if isinstance(value, tuple):
        return tuple(_select(item, sources) for item in value)  # pyright: ignore[reportUnknownVariableType]
    return value
