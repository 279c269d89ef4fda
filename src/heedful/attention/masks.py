"""Who may look at whom, as values combined with ``& | ~``. True = may attend.

Nearly every mask lets a query attend an interval of keys, so that is the normal form: for each row of queries the
keys j with start <= j < stop; what is no interval (``|``, ``~``) becomes a dense table beside it. Leading axes align
from the left: lengths [batch] mask every head alike.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from heedful.errors import ShapeError


@dataclass(frozen=True)
class Rows:
    """The normal form of a mask for a given number of queries and keys."""

    start: Tensor
    """[*leading, 1 or query] first key a query may attend."""
    stop: Tensor
    """[*leading, 1 or query] one past the last."""
    dense: Tensor | None = None
    """[*leading, 1 or query, key] True = may attend, on top of the interval; None = all."""
    is_causal: bool = False
    """Whether this is exactly the causal triangle, nothing else."""

    def allowed(self, num_leading: int, num_keys: int) -> Tensor:
        """Write the mask out.

        Args:
            num_leading: leading axes of the scores it is for.
            num_keys: keys.

        Returns:
            [*leading, 1 or query, key] bool with as many leading axes, broadcastable against the scores.

        Raises:
            ShapeError: the mask has more leading axes than the scores.
        """
        places = torch.arange(num_keys, device=self.start.device)
        full = (places >= self.start[..., None]) & (places < self.stop[..., None])
        if self.dense is not None:
            full = full & self.dense
        missing = num_leading - (full.dim() - 2)
        if missing < 0:
            raise ShapeError(f"mask: it has {full.dim() - 2} leading axes, but the scores have only {num_leading}")
        return full.reshape(*full.shape[:-2], *(1,) * missing, *full.shape[-2:])


class Mask(ABC):
    """A mask that does not know yet for how many queries and keys it will be used."""

    @abstractmethod
    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> Rows:
        """Bring the mask to its normal form.

        Args:
            num_queries: queries it is used for; they are the last ones where there are fewer than keys.
            num_keys: keys.
            device: where the bounds should live.

        Returns:
            The intervals, and a dense table where they do not say all.
        """

    def __and__(self, other: "Mask") -> "Mask":
        return _Both(self, other)

    def __or__(self, other: "Mask") -> "Mask":
        return _Either(self, other)

    def __invert__(self) -> "Mask":
        return _Not(self)


@final
@dataclass(frozen=True, eq=False)
class _Interval(Mask):
    """Keys from `left` before to `right` after the query's own place; None = without bound."""

    left: int | None
    right: int | None

    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> Rows:
        # The last query stands at the last key, so that one new query sees all cached keys.
        place = torch.arange(num_keys - num_queries, num_keys, device=device)
        start = torch.zeros_like(place) if self.left is None else place - self.left
        stop = torch.full_like(place, num_keys) if self.right is None else place + self.right + 1
        return Rows(start, stop, is_causal=self.left is None and self.right == 0 and num_queries == num_keys)


@final
@dataclass(frozen=True, eq=False)
class _Padding(Mask):
    lengths: Tensor

    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> Rows:
        stop = self.lengths.to(device)[..., None]
        return Rows(torch.zeros_like(stop), stop)


@final
@dataclass(frozen=True, eq=False)
class _Both(Mask):
    left: Mask
    right: Mask

    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> Rows:
        one, two = (mask.rows(num_queries, num_keys, device) for mask in (self.left, self.right))
        leading = max(one.start.dim(), two.start.dim()) - 1
        start = torch.maximum(_lead(one.start, leading, 1), _lead(two.start, leading, 1))
        stop = torch.minimum(_lead(one.stop, leading, 1), _lead(two.stop, leading, 1))
        tables = [_lead(rows.dense, leading, 2) for rows in (one, two) if rows.dense is not None]
        return Rows(start, stop, torch.stack(torch.broadcast_tensors(*tables)).all(0) if tables else None)


@final
@dataclass(frozen=True, eq=False)
class _Either(Mask):
    left: Mask
    right: Mask

    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> Rows:
        pair = [mask.rows(num_queries, num_keys, device) for mask in (self.left, self.right)]
        leading = max(rows.start.dim() if rows.dense is None else rows.dense.dim() - 1 for rows in pair) - 1
        one, two = (rows.allowed(leading, num_keys) for rows in pair)
        return _dense(one | two, num_keys)


@final
@dataclass(frozen=True, eq=False)
class _Not(Mask):
    inner: Mask

    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> Rows:
        rows = self.inner.rows(num_queries, num_keys, device)
        leading = rows.start.dim() - 1 if rows.dense is None else max(rows.start.dim() - 1, rows.dense.dim() - 2)
        return _dense(~rows.allowed(leading, num_keys), num_keys)


def _lead(bounds: Tensor, leading: int, trailing: int) -> Tensor:
    """Insert axes after the leading ones, so that leading axes align from the left."""
    missing = leading - (bounds.dim() - trailing)
    return bounds.reshape(*bounds.shape[: bounds.dim() - trailing], *(1,) * missing, *bounds.shape[-trailing:])


def _dense(table: Tensor, num_keys: int) -> Rows:
    stop = torch.full(table.shape[:-1], num_keys, device=table.device)
    return Rows(torch.zeros_like(stop), stop, table)


def padding(lengths: Tensor) -> Mask:
    """Let every query attend the first `lengths` keys.

    Args:
        lengths: [*leading] real keys of each item.

    Returns:
        The mask.
    """
    return _Padding(lengths)


def causal() -> Mask:
    """Let a query attend keys up to its own place; the last query stands at the last key.

    Returns:
        The mask.

    Example:
        >>> causal().rows(2, 3, torch.device("cpu")).allowed(0, 3).int().tolist()
        [[1, 1, 0], [1, 1, 1]]
    """
    return _Interval(None, 0)


def window(left: int, right: int) -> Mask:
    """Let a query attend keys from `left` places before its own to `right` places after.

    Args:
        left: places, at least 0.
        right: places, at least 0.

    Returns:
        The mask.
    """
    return _Interval(left, right)
