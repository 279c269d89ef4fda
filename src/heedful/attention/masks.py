"""Masks: who may attend to whom, as values combined with ``& | ~``. True = may attend.

Nearly every mask lets a query attend an interval of keys, so the normal form has, for each query, the keys j with start
<= j < stop; other masks (``|``, ``~``, a graph) add a dense table. A Gaussian may multiply the weights after
normalising. Leading axes align from the left: lengths [batch] mask every head alike.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Final, Literal, final

import torch
from jaxtyping import Bool, Int, Real
from torch import Tensor

from heedful.attention.mask_bounds import Gaussian, MaskBounds, lead
from heedful.cpu.concrete import concrete
from heedful.errors import ShapeError, UsageError


class Mask(ABC):
    """Mask for any numbers of queries and keys.

    Example:
        >>> mask = causal() & ~window(0, 0)  # all keys before the query's own
        >>> mask.rows(2, 2, torch.device("cpu")).allowed(0, 2).int().tolist()
        [[0, 0], [1, 0]]
    """

    @abstractmethod
    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> MaskBounds:
        """Return the normal form for certain numbers of queries and keys.

        Args:
            num_queries: number of queries; if fewer than keys, they are the last positions.
            num_keys: number of keys.
            device: device of the bounds.

        Returns:
            The intervals, with a dense table if intervals are not enough.
        """

    def __and__(self, other: "Mask") -> "Mask":
        return _Both(self, other)

    def __or__(self, other: "Mask") -> "Mask":
        return _Either(self, other)

    def __invert__(self) -> "Mask":
        return _Not(self)

    def each_query(self, num_queries: int, num_leading: int) -> "Mask":
        """Move the queries to a leading axis, for queries that have keys of their own.

        Args:
            num_queries: number of queries.
            num_leading: number of their leading axes.

        Returns:
            The mask for leading axes [*leading, query] and one query each.
        """
        return _EachQuery(self, num_queries, num_leading)


@final
@dataclass(frozen=True, eq=False)
class _Interval(Mask):
    """Keys from `left` before to `right` after the query's own position; None = no bound."""

    left: int | None
    right: int | None

    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> MaskBounds:
        # The last query has the position of the last key, so that one new query sees all cached keys.
        position = torch.arange(num_keys - num_queries, num_keys, device=device)
        start = None if self.left is None else position - self.left
        stop = torch.full_like(position, num_keys) if self.right is None else position + self.right + 1
        return MaskBounds(
            start,
            stop,
            is_causal=self.left is None and self.right == 0 and num_queries == num_keys,
            width=None if self.left is None or self.right is None else self.left + self.right + 1,
        )


@final
@dataclass(frozen=True, eq=False)
class _Padding(Mask):
    lengths: Tensor
    """[*leading]"""

    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> MaskBounds:
        lengths = self.lengths
        if not concrete(lengths) or lengths.device != device or lengths.is_inference():
            return MaskBounds(None, lengths.to(device).unsqueeze(-1))
        bounds = self._by_version.get(lengths._version)
        if bounds is None:
            bounds = MaskBounds(None, lengths.unsqueeze(-1))
            self._by_version.clear()
            self._by_version[lengths._version] = bounds
        return bounds

    @cached_property
    def _by_version(self) -> dict[int, MaskBounds]:
        """Bounds by the version of the lengths: steps of a decoder pass the same mask."""
        return {}


@final
@dataclass(frozen=True, eq=False)
class _EachQuery(Mask):
    inner: Mask
    num_queries: int
    num_leading: int

    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> MaskBounds:
        return self.inner.rows(self.num_queries, num_keys, device).each_query(self.num_leading)


@final
@dataclass(frozen=True, eq=False)
class _Around(Mask):
    """Keys within `half_width` of a centre."""

    centre: Tensor
    half_width: int
    sigma: Tensor | float
    over: Literal["window", "source", "cut"]

    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> MaskBounds:
        # Half precision cannot distinguish positions beyond 256.
        centre = self.centre.to(device, torch.promote_types(self.centre.dtype, torch.float32))
        if centre.shape[-1] not in (num_queries, 1):
            raise ShapeError(f"local-p: centres {list(centre.shape)}, but {num_queries} queries")
        gaussian = Gaussian(centre, self.sigma, self.half_width if self.over == "cut" else None)
        position = centre.detach()
        if self.over != "window":
            stop = torch.full_like(position, num_keys, dtype=torch.int64)
            return MaskBounds(None, stop, gaussian=gaussian)
        start = (position - self.half_width).ceil().long()
        stop = (position + self.half_width).floor().long() + 1
        return MaskBounds(start, stop, gaussian=gaussian, width=2 * self.half_width + 1)


@final
@dataclass(frozen=True, eq=False)
class _Monotonic(Mask):
    half_width: int
    first: int
    lengths: Tensor | None

    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> MaskBounds:
        position = torch.arange(self.first, self.first + num_queries, device=device)
        if self.lengths is not None:
            position = torch.minimum(position, self.lengths.to(device)[..., None] - 1)
        return MaskBounds(position - self.half_width, position + self.half_width + 1, width=2 * self.half_width + 1)


@final
@dataclass(frozen=True, eq=False)
class _Graph(Mask):
    adjacency: Tensor

    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> MaskBounds:
        table = self.adjacency
        if table.shape[-1] not in (num_keys, 1) or table.shape[-2] not in (num_queries, 1):
            rows, columns = table.shape[-2:]
            raise ShapeError(
                f"mask: table of {rows} queries and {columns} keys, "
                f"but there are {num_queries} queries and {num_keys} keys"
            )
        return _dense(table.to(device).expand(*table.shape[:-1], num_keys), num_keys)


@final
@dataclass(frozen=True, eq=False)
class _Both(Mask):
    left: Mask
    right: Mask

    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> MaskBounds:
        one, two = (mask.rows(num_queries, num_keys, device) for mask in (self.left, self.right))
        if one.gaussian is not None and two.gaussian is not None:
            raise UsageError("masks: only one of two masks joined by & may have a Gaussian")
        leading = max(_num_leading(one), _num_leading(two))
        starts = [lead(rows.start, leading, 1) for rows in (one, two) if rows.start is not None]
        stop = torch.minimum(lead(one.stop, leading, 1), lead(two.stop, leading, 1))
        tables = [lead(rows.dense, leading, 2) for rows in (one, two) if rows.dense is not None]
        widths = [rows.width for rows in (one, two) if rows.width is not None]
        return MaskBounds(
            reduce(torch.maximum, starts) if starts else None,
            stop,
            torch.stack(torch.broadcast_tensors(*tables)).all(0) if tables else None,
            one.gaussian or two.gaussian,
            width=min(widths) if widths else None,
        )


@final
@dataclass(frozen=True, eq=False)
class _Either(Mask):
    left: Mask
    right: Mask

    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> MaskBounds:
        pair = [_support(mask, num_queries, num_keys, device) for mask in (self.left, self.right)]
        leading = max(_num_leading(rows) for rows in pair)
        one, two = (rows.allowed(leading, num_keys) for rows in pair)
        return _dense(one | two, num_keys)


@final
@dataclass(frozen=True, eq=False)
class _Not(Mask):
    inner: Mask

    def rows(self, num_queries: int, num_keys: int, device: torch.device) -> MaskBounds:
        rows = _support(self.inner, num_queries, num_keys, device)
        return _dense(~rows.allowed(_num_leading(rows), num_keys), num_keys)


def _support(mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> MaskBounds:
    """Normal form of a mask without a Gaussian.

    Raises:
        UsageError: the mask has a Gaussian.
    """
    rows = mask.rows(num_queries, num_keys, device)
    if rows.gaussian is not None:
        raise UsageError("masks: a mask with a Gaussian can be combined by & only, not by | or ~")
    return rows


def _num_leading(rows: MaskBounds) -> int:
    axes = (rows.start, 1), (rows.stop, 1), (rows.dense, 2)
    return max(tensor.dim() - trailing for tensor, trailing in axes if tensor is not None)


def _dense(table: Tensor, num_keys: int) -> MaskBounds:
    stop = torch.full(table.shape[:-1], num_keys, device=table.device)
    return MaskBounds(None, stop, table)


def padding(lengths: Int[Tensor, "*leading"] | int | Sequence[int]) -> Mask:
    """Let every query attend the first `lengths` keys.

    Args:
        lengths: [*leading] integers, the number of real keys of each item; a tensor, a number for all, or a list. A
            tensor that changes in place changes the mask, unless it is changed as an array of NumPy or through `.data`.

    Raises:
        UsageError: the lengths are not integers.

    Cost: an interval, two comparisons per pair.

    Example:
        >>> padding([2, 3]).rows(1, 3, torch.device("cpu")).allowed(1, 3).int().tolist()
        [[[1, 1, 0]], [[1, 1, 1]]]
    """
    numbers = torch.as_tensor(lengths)
    _require_whole("padding: lengths", numbers)
    return _Padding(numbers)


def causal() -> Mask:
    """Let a query attend keys up to its own position; the last query has the position of the last key.

    Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3.

    Cost: an interval, two comparisons per pair; none in SDPA.

    Example:
        >>> causal().rows(2, 3, torch.device("cpu")).allowed(0, 3).int().tolist()
        [[1, 1, 0], [1, 1, 1]]
    """
    return _Interval(None, 0)


def window(left: int, right: int) -> Mask:
    """Let a query attend keys from `left` positions before its own to `right` positions after.

    Beltagy, Peters and Cohan 2020, arXiv:2004.05150.

    Args:
        left: number of positions before, at least 0.
        right: number of positions after, at least 0.

    Raises:
        UsageError: `left` or `right` is negative.

    Cost: left + right + 1 pairs per query if there are many keys; else as `padding`.

    Example:
        >>> window(1, 0).rows(3, 3, torch.device("cpu")).allowed(0, 3).int().tolist()
        [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    for name, size in (("left", left), ("right", right)):
        _require_count(f"window: {name}", size)
    return _Interval(left, right)


def local_monotonic(half_width: int, first: int = 0, lengths: Int[Tensor, "*leading"] | None = None) -> Mask:
    """Let target position t attend source positions from t - half_width to t + half_width: local-m.

    Source and target are assumed to be roughly monotonically aligned. Luong et al. 2015, arXiv:1508.04025, section 3.2.

    Args:
        half_width: the paper's D, at least 0; 10 there.
        first: target position of the first query, when decoding step by step.
        lengths: [*leading] numbers of real keys. With them, the window stops at the last word of the source, as in the
            authors' code; None = it moves on, eventually beyond all keys.

    Raises:
        UsageError: `half_width` is negative, or the lengths are not integers.

    Cost: 2 half_width + 1 pairs per query if there are many keys; else as `padding`.

    Example:
        >>> local_monotonic(1, first=2).rows(1, 5, torch.device("cpu")).allowed(0, 5).int().tolist()
        [[0, 1, 1, 1, 0]]
    """
    _require_count("local-m: half_width", half_width)
    if lengths is not None:
        _require_whole("local-m: lengths", lengths)
    return _Monotonic(half_width, first, lengths)


def local_predictive(
    centre: Real[Tensor, "*leading #query"],
    half_width: int,
    sigma: Tensor | float | None = None,
    over: Literal["window", "source", "cut"] = "window",
) -> Mask:
    """Let a query attend keys around a real centre, and favour near ones by a Gaussian: local-p.

    weights[s] = softmax(scores)[s] exp(-(s - centre)^2 / (2 sigma^2)), not renormalised, so that they sum to at most
    1. The centre receives gradient through the Gaussian, but not through the bounds of the window. Luong et al. 2015,
    arXiv:1508.04025, eq. 9-10.

    Args:
        centre: [*leading, 1 or query] the paper's p_t, a position among the keys, from 0.
        half_width: the paper's D, at least 0; 10 there.
        sigma: standard deviation of the Gaussian, in keys, above 0; a tensor has shape [] and receives gradient; None =
            half_width / 2, as in the paper.
        over: keys that the softmax runs over: "window", those within half_width of the centre, as in the paper;
            "source", all keys, the far ones of which keep a weight; "cut", all keys, and those beyond half_width then
            get none, as lecture notes have it.

    Raises:
        UsageError: `half_width` is negative, sigma is not above 0, or `over` is unknown.
        ShapeError: the centre has no query axis, or sigma has axes.

    Cost: as `local_monotonic`, with an exponential per pair; over the whole source, all pairs.

    Example:
        >>> mask = local_predictive(torch.tensor([2.3]), 1)
        >>> mask.rows(1, 5, torch.device("cpu")).allowed(0, 5).int().tolist()
        [[0, 0, 1, 1, 0]]
    """
    _require_count("local-p: half_width", half_width)
    if centre.dim() == 0:
        raise ShapeError(
            "local-p: expected centres [*leading, 1 or query], got []; give [1] for one centre for all queries"
        )
    if over not in {"window", "source", "cut"}:
        raise UsageError(f"local-p: over must be 'window', 'source' or 'cut', got {over!r}")
    chosen = half_width / 2.0 if sigma is None else sigma
    if isinstance(chosen, Tensor) and chosen.dim():
        raise ShapeError(f"local-p: sigma must be one number, a tensor of shape [], got {list(chosen.shape)}")
    # A tensor is looked into only where that costs no waiting.
    is_known = not isinstance(chosen, Tensor) or (chosen.device.type == "cpu" and concrete(chosen))
    if is_known and not chosen > 0.0:
        raise UsageError(f"local-p: sigma {float(chosen)} is not above 0; give one explicitly with half_width 0")
    return _Around(centre, half_width, chosen, over)


def graph(adjacency: Bool[Tensor, "*leading #query #key"]) -> Mask:
    """Let a query attend the keys that a table allows, such as the neighbours in a graph.

    Velickovic et al. 2018, arXiv:1710.10903, section 2.1.

    Args:
        adjacency: [*leading, 1 or query, 1 or key] bool, True = may attend.

    Raises:
        UsageError: the table is not boolean.

    Cost: one bool per pair in memory.

    Example:
        >>> mask = graph(torch.tensor([[True, False], [True, True]]))
        >>> mask.rows(2, 2, torch.device("cpu")).allowed(0, 2).int().tolist()
        [[1, 0], [1, 1]]
    """
    if adjacency.dtype != torch.bool or adjacency.dim() < 2:
        raise UsageError(f"graph mask: expected a boolean table [query, key], got {_described(adjacency)}")
    return _Graph(adjacency)


def _require_count(name: str, value: int) -> None:
    if value != int(value) or value < 0:
        raise UsageError(f"{name} must be an integer of at least 0, got {value}")


def _require_whole(name: str, numbers: Tensor) -> None:
    if numbers.is_floating_point() or numbers.dtype == torch.bool:
        raise UsageError(f"{name} must be integers, got {_described(numbers)}")


def _described(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


MASKS: Final[dict[str, Callable[..., Mask]]] = {
    "padding": padding,
    "causal": causal,
    "window": window,
    "local_monotonic": local_monotonic,
    "local_predictive": local_predictive,
    "graph": graph,
}
"""All mask functions, by name."""
