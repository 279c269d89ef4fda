"""Inputs of an attention call: one tensor tree (`heedful.attention.tensor_tree`) that is cut into tiles of queries."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from heedful.attention.interface import Normalizer
from heedful.attention.lowered import LoweredScore
from heedful.attention.mask_bounds import MaskBounds


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
        return replace(self, pairs=self.pairs.with_shared(shared), value=self.value.to(types["value"]))
