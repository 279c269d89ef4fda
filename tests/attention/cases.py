"""Random inputs for attention, and masks with what they mean said a second time, without tensors."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from math import prod
from typing import Any

import torch
from torch import Tensor

from heedful.attention.interface import Need, Normalizer, Score
from heedful.attention.masks import Mask, causal, graph, local_monotonic, local_predictive, padding, window
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES
from heedful.attention.softmax import SOFTMAX
from heedful.errors import ShapeError


@dataclass(frozen=True)
class Where:
    """One query and one key, as numbers."""

    item: int
    """Along the first leading axis."""
    length: int
    """Real keys of the item."""
    row: int
    """Query, the first one 0."""
    place: int
    """Of the query among the keys: the last query stands at the last key."""
    key: int

    @property
    def centre(self) -> float:
        """A place among the keys that differs from query to query."""
        return centre_of(self.item, self.row)


def centre_of(item: int, row: int) -> float:
    # Exact in float32, so that a kernel that computes in it is not held to account for rounding what it is given.
    return 0.375 + 0.828125 * item + 1.2109375 * row


def bell(distance: float, sigma: float) -> float:
    return math.exp(-(distance**2) / (2 * sigma**2))


@dataclass(frozen=True)
class MaskCase:
    """A mask, and what it should mean."""

    make: Callable[[Tensor, int, int], Mask | None]
    """Given the number of real keys of each item, the number of queries, and that of keys."""
    allows: Callable[[Where], bool]
    factor: Callable[[Where], float] | None = None
    """What a weight is multiplied by after normalising; None = 1."""


def plain_mask(make: Callable[[Tensor], Mask | None], allows: Callable[[Where], bool]) -> MaskCase:
    return MaskCase(lambda lengths, num_queries, num_keys: make(lengths), allows)


def centres(lengths: Tensor, num_queries: int) -> Tensor:
    rows = [[centre_of(item, row) for row in range(num_queries)] for item in range(max(1, lengths.numel()))]
    shape = (*lengths.shape, num_queries)
    return torch.tensor(rows, dtype=torch.float64)[: lengths.numel()].reshape(shape)


def is_neighbour(where: Where) -> bool:
    return (where.item + 2 * where.row + where.key) % 3 > 0


def neighbours(lengths: Tensor, num_queries: int, num_keys: int) -> Mask:
    table = [
        [[is_neighbour(Where(item, 0, row, 0, key)) for key in range(num_keys)] for row in range(num_queries)]
        for item in range(lengths.numel())
    ]
    return graph(torch.tensor(table, dtype=torch.bool).reshape(*lengths.shape, num_queries, num_keys))


def every_other(lengths: Tensor, num_queries: int, num_keys: int) -> Mask:
    return graph(torch.arange(num_keys)[None] % 2 == 0)


MASKS: Mapping[str, MaskCase] = {
    "none": plain_mask(lambda n: None, lambda w: True),
    "padding": plain_mask(padding, lambda w: w.key < w.length),
    "causal": plain_mask(lambda n: causal(), lambda w: w.key <= w.place),
    "window": plain_mask(lambda n: window(2, 1), lambda w: w.place - 2 <= w.key <= w.place + 1),
    "diagonal": plain_mask(lambda n: window(0, 0), lambda w: w.place == w.key),
    "padding & causal": plain_mask(lambda n: padding(n) & causal(), lambda w: w.key < w.length and w.key <= w.place),
    "window & padding": plain_mask(
        lambda n: window(1, 0) & padding(n), lambda w: w.key < w.length and w.place - 1 <= w.key <= w.place
    ),
    "padding | causal": plain_mask(lambda n: padding(n) | causal(), lambda w: w.key < w.length or w.key <= w.place),
    "~causal": plain_mask(lambda n: ~causal(), lambda w: w.key > w.place),
    "~padding": plain_mask(lambda n: ~padding(n), lambda w: w.key >= w.length),
    "causal & ~diagonal": plain_mask(lambda n: causal() & ~window(0, 0), lambda w: w.key < w.place),
    "~diagonal & ~padding": plain_mask(
        lambda n: ~window(0, 0) & ~padding(n), lambda w: w.key != w.place and w.key >= w.length
    ),
    "~(padding & causal) | diagonal": plain_mask(
        lambda n: ~(padding(n) & causal()) | window(0, 0),
        lambda w: not (w.key < w.length and w.key <= w.place) or w.key == w.place,
    ),
    "nothing": plain_mask(lambda n: causal() & ~causal(), lambda w: False),
    "local-m": plain_mask(lambda n: local_monotonic(1), lambda w: abs(w.key - w.row) <= 1),
    "local-m of a later step": plain_mask(
        lambda n: local_monotonic(0, first=1) & padding(n), lambda w: w.key == w.row + 1 and w.key < w.length
    ),
    "local-m to the last word": plain_mask(
        lambda n: local_monotonic(1, lengths=n) & padding(n),
        lambda w: w.key < w.length and abs(w.key - min(w.row, w.length - 1)) <= 1,
    ),
    "local-p": MaskCase(
        lambda n, queries, keys: local_predictive(centres(n, queries), 1),
        lambda w: abs(w.key - w.centre) <= 1,
        lambda w: bell(w.key - w.centre, 0.5),
    ),
    "local-p of another sigma": MaskCase(
        lambda n, queries, keys: (
            padding(n) & local_predictive(centres(n, queries), 1, torch.tensor(0.8125, dtype=torch.float64))
        ),
        lambda w: w.key < w.length and abs(w.key - w.centre) <= 1,
        lambda w: bell(w.key - w.centre, 0.8125),
    ),
    "local-p of one key": MaskCase(
        lambda n, queries, keys: local_predictive(torch.tensor([1]), 0, 2.0),
        lambda w: w.key == 1,
        lambda w: bell(w.key - 1, 2.0),
    ),
    "local-p over the source": MaskCase(
        lambda n, queries, keys: local_predictive(centres(n, queries), 2, over="source"),
        lambda w: True,
        lambda w: bell(w.key - w.centre, 1.0),
    ),
    "local-p over the source & padding": MaskCase(
        lambda n, queries, keys: local_predictive(centres(n, queries), 2, over="source") & padding(n),
        lambda w: w.key < w.length,
        lambda w: bell(w.key - w.centre, 1.0),
    ),
    "local-p cut from the source & padding": MaskCase(
        lambda n, queries, keys: local_predictive(centres(n, queries), 1, over="cut") & padding(n),
        lambda w: w.key < w.length,
        lambda w: bell(w.key - w.centre, 0.5) if abs(w.key - w.centre) <= 1 else 0.0,
    ),
    "graph": MaskCase(neighbours, is_neighbour),
    "graph & padding": MaskCase(
        lambda n, queries, keys: neighbours(n, queries, keys) & padding(n),
        lambda w: is_neighbour(w) and w.key < w.length,
    ),
    "~graph | diagonal": MaskCase(
        lambda n, queries, keys: ~neighbours(n, queries, keys) | window(0, 0),
        lambda w: not is_neighbour(w) or w.key == w.place,
    ),
    "graph of one row": MaskCase(every_other, lambda w: w.key % 2 == 0),
    "graph & local-p": MaskCase(
        lambda n, queries, keys: every_other(n, queries, keys) & local_predictive(centres(n, queries), 2, 1.5),
        lambda w: w.key % 2 == 0 and abs(w.key - w.centre) <= 2,
        lambda w: bell(w.key - w.centre, 1.5),
    ),
}

# What a normalizer is made with, by the name of its field: all that may learn does, and noise is fixed.
SETTINGS: Mapping[str, Any] = {
    "temperature": 0.8,
    "alpha": 1.6,
    "transition": [[0.1, -0.3], [-0.4, 0.5]],
    "start": [0.2, -0.1],
    "stop": [-0.3, 0.4],
}


def make_normalizer(name: str, dtype: torch.dtype = torch.float64) -> Normalizer:
    names = {field.name for field in fields(NORMALIZERS[name])}  # pyright: ignore[reportArgumentType]
    learned = {field: torch.tensor(SETTINGS[field], dtype=dtype) for field in names & set(SETTINGS)}
    return NORMALIZERS[name](**learned, **({"seed": 7} if "seed" in names else {}))


def make_score(name: str, size: int, dtype: torch.dtype = torch.float64) -> Score:
    """A score with keys of another size than queries, where it takes them."""
    try:
        return SCORES[name](size, size + 1, size + 2).to(dtype)
    except ShapeError:
        return SCORES[name](size, size, size + 2).to(dtype)


@dataclass(frozen=True)
class Case:
    """Inputs of one call of `attend`, and what its mask means."""

    score: Score
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Mask | None
    allowed: Tensor
    """[*leading, query, key] bool, from the mask's meaning alone."""
    factors: Tensor | None = None
    """[*leading, query, key] float64 of the weights after normalising, from the mask's meaning alone."""
    normalizer: Normalizer = SOFTMAX
    need: frozenset[Need] = frozenset()

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.query, self.key, self.value

    @property
    def learned(self) -> list[Tensor]:
        """All that may learn beside the inputs: of the score, the normalizer, and the Gaussian."""
        own = [value for value in vars(self.normalizer).values() if isinstance(value, Tensor)]
        if self.mask is not None:
            gaussian = self.mask.rows(self.query.shape[-2], self.key.shape[-2], self.query.device).gaussian
            places = [] if gaussian is None else [gaussian.centre, gaussian.sigma]
            own += [place for place in places if isinstance(place, Tensor) and place.dtype == torch.float64]
        return [*self.score.parameters(), *own]


def make_case(
    score: str = "scaled_dot",
    mask: str = "none",
    leading: tuple[int, ...] = (2,),
    num_queries: int = 3,
    num_keys: int = 4,
    size: int = 4,
    value_size: int = 3,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    normalizer: str | None = None,
    lengths: list[int] | None = None,
) -> Case:
    """Draw inputs; the real keys of each item are drawn too unless given."""
    generator = torch.Generator().manual_seed(seed)
    made = make_score(score, size, dtype)
    with torch.no_grad():
        for parameter in made.parameters():
            drawn = torch.randn(parameter.shape, generator=generator)
            # A single number is the logarithm of a bandwidth: about as wide as points are apart.
            parameter.copy_(drawn if parameter.dim() else 1.0 + 0.2 * drawn)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*leading, *shape, generator=generator, dtype=torch.float64).to(dtype)

    drawn_lengths = torch.randint(0, num_keys + 1, leading[:1], generator=generator)
    real = drawn_lengths if lengths is None else torch.tensor(lengths)
    allowed, factors = write_out(mask, real, leading, num_queries, num_keys)
    if made.max_keys is not None:
        allowed = allowed & (torch.arange(num_keys) < made.max_keys)
    return Case(
        made,
        draw(num_queries, size),
        draw(num_keys, made.key_size),
        draw(num_keys, value_size),
        MASKS[mask].make(real, num_queries, num_keys),
        allowed,
        factors,
        SOFTMAX if normalizer is None else make_normalizer(normalizer, dtype),
    )


def write_out(
    mask: str, lengths: Tensor, leading: tuple[int, ...], num_queries: int, num_keys: int
) -> tuple[Tensor, Tensor | None]:
    """Ask about every query and key: whether it is allowed, and its factor; both [*leading, query, key]."""
    case, offset = MASKS[mask], num_keys - num_queries
    items = lengths.reshape(-1).tolist()
    where = [
        Where(item, length, row, row + offset, key)
        for item, length in enumerate(items)
        for row in range(num_queries)
        for key in range(num_keys)
    ]
    shape = (*lengths.shape, *(1,) * (len(leading) - lengths.dim()), num_queries, num_keys)

    def table(values: list[bool] | list[float], dtype: torch.dtype) -> Tensor:
        return torch.tensor(values, dtype=dtype).reshape(shape).expand(*leading, num_queries, num_keys)

    allowed = table([case.allows(each) for each in where], torch.bool)
    if case.factor is None:
        return allowed, None
    return allowed, table([case.factor(each) for each in where], torch.float64)


def per_item(tensor: Tensor) -> list[Tensor]:
    """Split [*leading, a, b] into its [a, b] items."""
    return list(tensor.reshape(prod(tensor.shape[:-2]), *tensor.shape[-2:]))
