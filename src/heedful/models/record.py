"""Records: dataclasses of tensors that are indexed together; base of inputs, memories and states of models."""

from dataclasses import dataclass
from typing import Self

from jaxtyping import Int
from torch import Tensor

from heedful.attention.interface import PreparedKey
from heedful.attention.tensor_tree import map_leaves


@dataclass(frozen=True)
class Record:
    """Dataclass of tensors, plain numbers, other records and tuples of these. Axis 0 of every tensor = source."""

    def select(self, sources: Int[Tensor, " kept"]) -> Self:
        """Select sources.

        Args:
            sources: [kept] indices into axis 0.

        Returns:
            The record of these sources only.
        """
        return map_leaves(self, lambda leaf: _select(leaf, sources), (Tensor, PreparedKey))


def _select(leaf: Tensor | PreparedKey, sources: Tensor) -> Tensor | PreparedKey:
    return leaf.index_select(0, sources) if isinstance(leaf, Tensor) else leaf.select(sources)
