"""Normal form of masks: an interval of keys for each query, optionally a table and a Gaussian."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Real, Shaped
from torch import Tensor
from torch.nn import functional

from heedful.cpu.concrete import concrete
from heedful.errors import ShapeError


class MaskTable(NamedTuple):
    """Mask as tables that broadcast against the scores."""

    allowed: Bool[Tensor, "*leading #query key"]
    """[*leading, 1 or query, key] True = may attend."""
    hidden: Bool[Tensor, "*leading #query key"] | None
    """The opposite, where it is known that every query may attend to a key; None elsewhere."""


@dataclass(frozen=True)
class Gaussian:
    """Factors exp(-(j - centre)^2 / (2 sigma^2)) of the normalised weights; Luong et al. 2015, eq. 10."""

    centre: Real[Tensor, "*leading #query"]
    """[*leading, 1 or query] real position among the keys, float32 or finer; receives gradient."""
    sigma: Tensor | float
    """Standard deviation in keys, above 0; a tensor has shape []."""
    reach: int | None = None
    """Distance from the centre beyond which the factors are zero; None = they never are."""

    def factors(self, positions: Tensor, num_leading: int) -> Float[Tensor, "*leading #query key"]:
        """Compute the factors.

        Args:
            positions: [key] or [*leading, query, key] positions of the keys.
            num_leading: number of leading axes of the weights.

        Returns:
            [*leading, 1 or query, key], with that many leading axes.
        """
        centre = lead(self.centre, num_leading, 1)[..., None]
        distance = positions - centre
        factors = torch.exp(-0.5 * (distance / self.sigma).square())
        return factors if self.reach is None else factors.masked_fill(distance.abs() > self.reach, 0.0)


@dataclass(frozen=True)
class MaskBounds:
    """Normal form of a mask for a number of queries and keys."""

    start: Real[Tensor, "*#leading #query"] | None
    """[*leading, 1 or query] first key that a query may attend to; None = 0."""
    stop: Real[Tensor, "*#leading #query"]
    """[*leading, 1 or query] index after the last key."""
    dense: Bool[Tensor, "*#leading #query key"] | None = None
    """[*leading, 1 or query, key] True = may attend, within the interval; None = all."""
    gaussian: Gaussian | None = None
    """Factors of the normalised weights."""
    is_causal: bool = False
    """Whether this is exactly the causal triangle."""
    width: int | None = None
    """Largest width of an interval, whatever the numbers of queries and keys; None = unknown."""

    def of_queries(self, rows: slice) -> "MaskBounds":
        """Select queries.

        Args:
            rows: along the query axis.
        """

        def cut(tensor: Tensor, axis: int) -> Tensor:
            return tensor if tensor.shape[axis] == 1 else tensor[(..., rows, *(slice(None),) * (-1 - axis))]

        return MaskBounds(
            None if self.start is None else cut(self.start, -1),
            cut(self.stop, -1),
            None if self.dense is None else cut(self.dense, -2),
            self.gaussian and replace(self.gaussian, centre=cut(self.gaussian.centre, -1)),
            width=self.width,
        )

    def each_query(self, num_leading: int) -> "MaskBounds":
        """Turn the query axis into the last leading axis.

        Args:
            num_leading: number of leading axes of the scores, the new one not among them.

        Returns:
            The bounds for one query per item of the new axis.
        """
        gaussian = self.gaussian
        return MaskBounds(
            None if self.start is None else _aligned(self.start, num_leading, 1)[..., None],
            _aligned(self.stop, num_leading, 1)[..., None],
            None if self.dense is None else _aligned(self.dense, num_leading, 2)[..., None, :],
            gaussian and replace(gaussian, centre=_aligned(gaussian.centre, num_leading, 1)[..., None]),
            width=self.width,
        )

    def require_leading(self, leading: tuple[int, ...]) -> None:
        """Refuse a mask whose leading axes are not those of the scores.

        Raises:
            ShapeError: those of the mask, aligned from the left, are neither 1 nor equal.
        """
        for tensor, trailing in ((self.start, 1), (self.stop, 1), (self.dense, 2)):
            if tensor is None:
                continue
            shape = tensor.shape[:-trailing]
            if shape == leading:
                continue
            _check_leading(len(shape), len(leading))
            # No set here: symbolic sizes of an exported graph are not hashable.
            if any(size not in (wanted, 1) for size, wanted in zip(shape, leading, strict=False)):
                raise ShapeError(
                    f"mask: its leading axes {list(shape)} do not fit those of the scores {list(leading)}; "
                    "they align from the left"
                )

    def bounds(self, num_leading: int) -> tuple[Tensor, Tensor]:
        """Return the intervals, broadcastable against scores.

        Args:
            num_leading: number of leading axes of the scores.

        Returns:
            [*leading, 1 or query] start and stop.

        Raises:
            ShapeError: the mask has more leading axes than the scores.
        """
        stop = self.stop
        start = torch.zeros_like(stop) if self.start is None else self.start
        if start.shape != stop.shape:
            start, stop = torch.broadcast_tensors(start, stop)
        return _aligned(start, num_leading, 1), _aligned(stop, num_leading, 1)

    def allowed(self, num_leading: int, num_keys: int) -> Bool[Tensor, "*leading #query key"]:
        """Return the mask as a table.

        Args:
            num_leading: number of leading axes of the scores.
            num_keys: number of keys.

        Returns:
            [*leading, 1 or query, key] bool with as many leading axes, broadcastable against the scores.

        Raises:
            ShapeError: the mask has more leading axes than the scores.
        """
        positions = torch.arange(num_keys, device=self.stop.device)
        full = positions < _aligned(self.stop, num_leading, 1).unsqueeze(-1)
        if self.start is not None:
            full = full & (positions >= _aligned(self.start, num_leading, 1).unsqueeze(-1))
        if self.dense is not None:
            full = full & _aligned(self.dense, num_leading, 2)
        return full

    def table(self, num_leading: int, num_keys: int) -> MaskTable:
        """Return the mask as tables; those of the last call are kept for one with as many axes and keys.

        Args:
            num_leading: number of leading axes of the scores.
            num_keys: number of keys.

        Raises:
            ShapeError: the mask has more leading axes than the scores.
        """
        if not self.stop.is_cpu or not concrete(self.stop):
            return MaskTable(self.allowed(num_leading, num_keys), None)
        # What is made in inference mode cannot be saved for gradients.
        key = num_leading, num_keys, torch.is_inference_mode_enabled()
        table = self._tables.get(key)
        if table is None:
            allowed = self.allowed(num_leading, num_keys)
            table = MaskTable(allowed, ~allowed if bool(allowed.any(dim=-1).all()) else None)
            self._tables.clear()  # a decoder whose keys grow would keep a table for each step
            self._tables[key] = table
        return table

    def intervals(self, shape: tuple[int, ...], num_leading: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the intervals as arrays for numba kernels; those of the last call are kept.

        Args:
            shape: [*leading, query] of the contexts, whose leading axes may be more than those of the scores.
            num_leading: number of leading axes of the scores.

        Returns:
            [batch, query] int64 first key, and index after the last, with the leading axes as one.

        Raises:
            ShapeError: the mask has more leading axes than the scores.
        """
        known = self._intervals.get((*shape, num_leading))
        if known is None:
            start = self.stop.new_zeros(1) if self.start is None else self.start
            known = _array(start, shape, num_leading), _array(self.stop, shape, num_leading)
            self._intervals.clear()
            self._intervals[(*shape, num_leading)] = known
        return known

    @cached_property
    def _intervals(self) -> dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]]:
        return {}

    @cached_property
    def _tables(self) -> dict[tuple[int, int, bool], MaskTable]:
        return {}

    def reaches(self, marked: Bool[Tensor, "*#leading key"], num_leading: int) -> Bool[Tensor, "*#leading #query"]:
        """Tell which queries may attend to at least one of the marked keys.

        Args:
            marked: [*leading, key] True = marked; aligned with the scores from the right.
            num_leading: number of leading axes of the scores.

        Returns:
            [*leading, 1 or query] bool.
        """
        num_keys = marked.shape[-1]
        if self.dense is not None:
            return (self.allowed(num_leading, num_keys) & marked[..., None, :]).any(dim=-1)
        start, stop = self.bounds(num_leading)
        # Numbers of marked keys before each position, so that an interval is the difference of two of them.
        before = functional.pad(marked.cumsum(dim=-1), (1, 0))
        leading = torch.broadcast_shapes(before.shape[:-1], start.shape[:-1])
        before = before.expand(*leading, num_keys + 1)
        first, last = (
            before.gather(-1, bound.clamp(0, num_keys).expand(*leading, bound.shape[-1])) for bound in (start, stop)
        )
        return last > first

    def attended_keys(self, num_leading: int, num_keys: int) -> Bool[Tensor, "*leading key"] | None:
        """Return the keys that every query may attend to, where the mask is the same for all queries.

        Args:
            num_leading: number of leading axes of the scores.
            num_keys: number of keys.

        Returns:
            [*leading, key] True = may be attended to; None if the mask differs between queries.
        """
        parts = (self.start, -1), (self.stop, -1), (self.dense, -2)
        if any(tensor is not None and tensor.shape[axis] != 1 for tensor, axis in parts):
            return None
        return self.allowed(num_leading, num_keys)[..., 0, :]


def lead(bounds: Shaped[Tensor, "..."], leading: int, trailing: int) -> Tensor:
    """Insert axes after the leading ones, so that leading axes align from the left.

    Args:
        bounds: [*leading, *trailing].
        leading: number of leading axes of the result, at least that of `bounds`.
        trailing: number of axes that are not leading axes.

    Returns:
        [*leading, 1..., *trailing].
    """
    missing = leading - (bounds.dim() - trailing)
    if missing == 0:
        return bounds
    return bounds.reshape(*bounds.shape[: bounds.dim() - trailing], *(1,) * missing, *bounds.shape[-trailing:])


def _array(bounds: Tensor, shape: tuple[int, ...], num_leading: int) -> np.ndarray:
    """[batch, query] int64 of bounds [*leading, 1 or query], repeated to the shape [*leading, query]."""
    # A bound that is a real number lies between two keys.
    whole = (bounds.detach().ceil() if bounds.is_floating_point() else bounds).to(torch.int64)
    rows = _aligned(whole, num_leading, 1).expand(shape).reshape(prod(shape[:-1]), shape[-1])
    return np.array(rows.numpy(), order="C")


def _aligned(tensor: Tensor, num_leading: int, trailing: int) -> Tensor:
    """Insert axes after the leading ones of a bound or table of a mask.

    Raises:
        ShapeError: the mask has more leading axes than the scores.
    """
    _check_leading(tensor.dim() - trailing, num_leading)
    return lead(tensor, num_leading, trailing)


def _check_leading(num_axes: int, num_leading: int) -> None:
    if num_axes > num_leading:
        raise ShapeError(f"mask: {num_axes} leading axes, but the scores have only {num_leading}")
