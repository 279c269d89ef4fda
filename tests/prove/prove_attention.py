"""The errors of every kernel over thousands of random shapes, layouts, masks and types: `make prove-attention`.

Each error is held to that of the same formula in plain PyTorch in the same type, both against float64: at most twice
it for contexts and three times for gradients, or 2^-24 of the sum of absolute terms. A table shows the largest ratios.
"""

import argparse
import math
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from heedful.attention import dispatch
from heedful.attention.kernels.additive.cpu_ops import prepare_exp_key
from heedful.attention.kernels.interface import Request
from heedful.attention.lowered import LoweredAdditive, LoweredDistance, LoweredDot, LoweredScore
from heedful.attention.masks import Mask
from heedful.attention.profiles import PROFILES
from tests.attention.cases import MASKS, Case
from tests.contracts.errors import Error, Ready, exceeded, limit_of, measure, ratio
from tests.contracts.ways import Way, ways

DTYPES = (torch.float32, torch.float32, torch.bfloat16, torch.float16)
COLUMNS = ("context", "query", "key", "parameter", "value")
ROWS, ELEMENTS = 600, 200_000
"""A case is made larger towards so many queries, up to so many of query * key * size: of a few numbers the plain
formula may have all right by chance."""
DRAWS, MORE_DRAWS = 2, 20
"""Cases of a kind; and how many more where an error was too large: what is wrong is wrong again."""


Layout = Callable[[Tensor], Tensor]


def contiguous(tensor: Tensor) -> Tensor:
    return tensor


def transposed(tensor: Tensor) -> Tensor:
    return tensor.mT.contiguous().mT


def batch_last(tensor: Tensor) -> Tensor:
    return tensor.transpose(0, -1).contiguous().transpose(0, -1)


def sliced(tensor: Tensor) -> Tensor:
    return torch.stack((tensor, tensor + 1.0), dim=-1).flatten(-2)[..., ::2]


def offset(tensor: Tensor) -> Tensor:
    """As a part of a larger array, one number after its start."""
    return torch.cat((tensor[..., :1], tensor), dim=-1)[..., 1:]


def expanded(tensor: Tensor) -> Tensor:
    """The first item everywhere, without a copy."""
    return tensor[:1].expand_as(tensor)


LAYOUTS: tuple[Layout, ...] = (
    contiguous,
    contiguous,
    transposed,
    batch_last,
    sliced,
    offset,
    expanded,
)


@dataclass
class Record:
    """What was met with one kernel."""

    num_cases: int = 0
    num_repeated: int = 0
    num_exceeded: int = 0
    worst: dict[str, float] = field(default_factory=dict)
    where: str = ""
    """The case with the largest share of what is allowed."""
    share: float = 0.0

    def add(self, errors: dict[str, Error], kernel: str, what: str) -> None:
        self.num_cases += 1
        self.num_exceeded += is_any_exceeded(errors, kernel)
        for name, error in errors.items():
            column = name if name in COLUMNS else "parameter"
            found = ratio(error, name, kernel)
            self.worst[column] = max(self.worst.get(column, 0.0), found)
            share = found / limit_of(name)
            if share > self.share:
                self.share, self.where = share, f"{name}, {what}"


def is_any_exceeded(errors: dict[str, Error], kernel: str) -> bool:
    return any(exceeded(error, name, kernel) for name, error in errors.items())


@dataclass(frozen=True)
class Kind:
    """All but the numbers of some cases."""

    pairs: type[LoweredScore]
    profile: str
    dtype: torch.dtype
    leading: tuple[int, ...]
    num_queries: int
    num_keys: int
    size: int
    value_size: int
    mask: str
    lengths: Tensor
    scale: float
    """Of the queries."""
    layouts: tuple[Layout, Layout, Layout]
    has_exp_key: bool

    @property
    def made(self) -> Mask | None:
        return MASKS[self.mask].make(self.lengths, self.num_queries, self.num_keys)

    @property
    def request(self) -> Request:
        made = self.made
        rows = None if made is None else made.rows(self.num_queries, self.num_keys, torch.device("cpu"))
        return Request(
            pairs=self.pairs,
            profile=self.profile,
            dtype=self.dtype,
            device="cpu",
            num_queries=self.num_queries,
            num_keys=self.num_keys,
            mask="none" if rows is None else "interval" if rows.dense is None else "dense",
            width=None if rows is None else rows.width,
            has_gaussian=rows is not None and rows.gaussian is not None,
            wants_gradient=True,
        )

    def draw(self, num_cases: int) -> list[Case]:
        """Give the kind numbers."""
        shape, made = (*self.leading, self.num_queries, self.num_keys), self.made
        allowed, factors = torch.ones(shape, dtype=torch.bool), None
        if made is not None:
            rows = made.rows(self.num_queries, self.num_keys, torch.device("cpu"))
            allowed = rows.allowed(len(self.leading), self.num_keys).expand(shape)
            if rows.gaussian is not None:
                places = torch.arange(self.num_keys)
                factors = rows.gaussian.factors(places, len(self.leading)).double().expand(shape)
        cases: list[Case] = []
        for _ in range(num_cases):
            query, key, value = (
                layout((torch.randn(*self.leading, *width) * scale).to(self.dtype))
                for layout, width, scale in zip(
                    self.layouts,
                    ((self.num_queries, self.size), (self.num_keys, self.size), (self.num_keys, self.value_size)),
                    (self.scale, 1.0, 1.0),
                    strict=True,
                )
            )
            pairs = self._pairs(query, key)
            cases.append(Case(Ready(pairs, None), query, key, value, made, allowed, factors))
        return cases

    def _pairs(self, query: Tensor, key: Tensor) -> LoweredScore:
        if self.pairs is LoweredAdditive:
            vector = (torch.randn(self.size) * math.sqrt(3.0 / self.size)).to(self.dtype)
            return LoweredAdditive(query, key, vector, prepare_exp_key(key) if self.has_exp_key else None)
        if self.pairs is LoweredDistance:
            # As wide as points are apart, with some keys out of reach.
            bandwidth = ((torch.rand(()) + 0.7) * math.sqrt(2.0 * self.size)).to(self.dtype)
            while _is_at_the_edge(query, key, bandwidth):
                bandwidth = bandwidth * 0.99
            return LoweredDistance(query, key, bandwidth, self.profile)
        return LoweredDot(query, key)

    def __str__(self) -> str:
        names = ", ".join(layout.__name__ for layout in self.layouts)
        return (
            f"{self.pairs.__name__} {self.profile} {str(self.dtype).removeprefix('torch.')} {self.leading} "
            f"{self.num_queries} x {self.num_keys}, size {self.size} and {self.value_size}, scale {self.scale:.2f}, "
            f"{self.mask}; {names}"
        )


def _is_at_the_edge(query: Tensor, key: Tensor, bandwidth: Tensor) -> bool:
    """Whether rounding decides if a key is within reach: then no two formulas agree, and none is wrong."""
    distances = torch.cdist(query.double(), key.double()) / bandwidth.double()
    return query.dtype == torch.float32 and bool(((distances - 1.0).abs() < 1e-5).any())


def draw_kind(chance: random.Random, kernel: str) -> Kind:
    """A random kind that a kernel takes."""
    supports = next(each for each in dispatch.KERNELS if each.name == kernel).supports
    while True:
        (pairs, profile), mask = chance.choice(_kinds()), chance.choice(list(MASKS))
        num_queries, num_keys = _log_uniform(chance, 70), _log_uniform(chance, 160)
        size, dtype = _log_uniform(chance, 64), chance.choice(DTYPES)
        leading = _leading(chance, num_queries, num_queries * num_keys * size)
        scale = math.exp(chance.uniform(-2.5, 1.0)) / (math.sqrt(size) if pairs is LoweredDot else 1.0)
        layouts = (chance.choice(LAYOUTS), chance.choice(LAYOUTS), chance.choice(LAYOUTS))
        kind = Kind(
            pairs,
            profile,
            dtype,
            leading,
            num_queries,
            num_keys,
            size,
            chance.choice((size, _log_uniform(chance, 64))),
            mask,
            _lengths(chance, leading, num_keys),
            scale,
            layouts,
            chance.random() < 0.5,
        )
        if supports(kind.request) is None:
            return kind


def _kinds() -> list[tuple[type[LoweredScore], str]]:
    return [(LoweredDot, ""), (LoweredAdditive, ""), *((LoweredDistance, profile) for profile in PROFILES)]


def _leading(chance: random.Random, num_queries: int, num_elements: int) -> tuple[int, ...]:
    leading = [chance.choice((1, 2, 3)) for _ in range(chance.choice((0, 1, 2, 2, 3)))]
    if leading:
        items = math.prod(leading)
        leading[0] *= max(1, min(ROWS // (items * num_queries), ELEMENTS // (items * num_elements)))
    return tuple(leading)


def _log_uniform(chance: random.Random, largest: int) -> int:
    return round(math.exp(chance.uniform(0.0, math.log(largest))))


def _lengths(chance: random.Random, leading: tuple[int, ...], num_keys: int) -> Tensor:
    return torch.tensor([chance.randint(0, num_keys) for _ in range(math.prod(leading[:1]))]).reshape(leading[:1])


def prove(way: Way, num_cases: int, seed: int, record: Record) -> None:
    """Try a kernel with so many kinds of cases."""
    chance = random.Random(f"{seed} {way}")
    torch.manual_seed(chance.getrandbits(32))
    for _ in range(num_cases):
        kind = draw_kind(chance, way.kernel)
        cases = kind.draw(DRAWS)
        errors = measure(way, cases)
        if is_any_exceeded(errors, way.kernel):
            record.num_repeated += 1
            errors = measure(way, cases + kind.draw(MORE_DRAWS))
        record.add(errors, way.kernel, f"{way}: {kind}")


def table(records: dict[str, Record], seconds: float) -> str:
    """What was met, a line for each kernel."""
    lines = [f"{'kernel':<14}{'cases':>6}{'again':>6}{'over':>6}" + "".join(f"{name:>11}" for name in COLUMNS)]
    for name, record in records.items():
        worst = "".join(f"{record.worst[c]:>11.2f}" if c in record.worst else f"{'-':>11}" for c in COLUMNS)
        lines.append(f"{name:<14}{record.num_cases:>6}{record.num_repeated:>6}{record.num_exceeded:>6}{worst}")
    lines.append(f"error / error of the plain formula, the largest; at most 2 (context) and 3; {seconds:.0f} s")
    lines.append("again: too large at first, so measured with more numbers of the kind; over: too large then as well")
    lines += [f"{name}: nearest to its limit ({record.share:.0%}): {record.where}" for name, record in records.items()]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try all kernels and print the table.

    Returns:
        0 if no error was too large, else 1.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=2000, help="random cases for each kernel (default 2000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kernels", nargs="*", default=[], help="names; all that run on this machine unless given")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    records: dict[str, Record] = {}
    for name in given.kernels or [kernel.name for kernel in dispatch.KERNELS]:
        if not _takes_anything(name):
            print(f"{name}: takes nothing on this machine", file=sys.stderr)
            continue
        each = [way for way in ways() if way.kernel == name]
        records[name] = Record()
        for place, way in enumerate(each):
            prove(way, given.cases // len(each) + (place < given.cases % len(each)), given.seed, records[name])
        print(f"{name}: {records[name].num_cases} cases", file=sys.stderr, flush=True)
    print(table(records, time.monotonic() - began))
    return int(any(record.num_exceeded for record in records.values()))


def _takes_anything(kernel: str) -> bool:
    supports = next(each for each in dispatch.KERNELS if each.name == kernel).supports
    requests = (
        Request(kind, torch.float32, "cpu", 1, 100, mask="interval", width=width, profile=profile)
        for kind, profile in _kinds()
        for width in (None, 1)
    )
    return any(supports(request) is None for request in requests)


if __name__ == "__main__":
    sys.exit(main())
