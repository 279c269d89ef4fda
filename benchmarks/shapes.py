"""Calls of `attend` at many shapes beside the plain formula in PyTorch: is there a shape at which `auto` loses?

    python benchmarks/shapes.py [--scores additive,scaled_dot] [--threads 1] [--rounds 20] [--neighbours 0] [--all]
        [--kernel auto] [--columns prepared,trained,steps]

The formula has the same projections, mask of padding, softmax and values. `prepared` is a call whose keys are prepared,
as a decoder has them; `trained` is a call from queries and keys with its gradients; `steps` are eight calls on the same
prepared keys, then the gradients of all. Both take turns, and the ratio, formula over `attend`, is that of the first
quartiles: above 1 `attend` is faster. --all takes 60 shapes, else eight of decoders and texts;
--kernel names the kernel of `attend`, by which the limits of `auto` are found.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import torch
from _neighbours import neighbours
from torch import Tensor

from heedful.attention import attend
from heedful.attention.interface import PreparedKey, Score
from heedful.attention.masks import padding
from heedful.attention.scores import Additive, ScaledDot

SHAPES: Final = (
    (5, 1, 15, 256),
    (80, 1, 20, 256),
    (64, 1, 50, 512),
    (32, 20, 20, 256),
    (16, 30, 30, 256),
    (8, 60, 60, 512),
    (4, 128, 128, 512),
    (1, 1, 400, 64),
)
"""Batch, queries, keys, size."""
MOST_NUMBERS: Final = 1 << 24
"""Numbers [batch, query, key, size] of the largest shape that the formula is asked for."""
NUM_STEPS: Final = 8
SECONDS: Final = 0.25
"""Least time on the wall for a ratio: many calls, for other programs slow down half of them."""
Work = Callable[[], object]


def grid() -> list[tuple[int, int, int, int]]:
    """Shapes from a decoder's step to long texts, evenly spaced over those that the formula can hold."""
    axes = (1, 5, 32, 256), (1, 8, 60, 512), (4, 15, 60, 400, 4096), (32, 256, 1024)
    held = [shape for shape in itertools.product(*axes) if shape[0] * shape[1] * shape[2] * shape[3] <= MOST_NUMBERS]
    return [held[index * len(held) // 60] for index in range(60)]


def formula(score: Score, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor) -> Tensor:
    """Attention from mapped queries and keys, as one writes it."""
    if isinstance(score, Additive):
        scores = torch.tanh(query[:, :, None] + key[:, None]) @ score.vector
    else:
        scores = query @ key.transpose(1, 2) * query.shape[-1] ** -0.5
    return scores.masked_fill(~allowed[:, None], -torch.inf).softmax(-1) @ value


class Case:
    """Inputs of one shape."""

    def __init__(self, score: str, shape: tuple[int, int, int, int], kernel: str = "auto") -> None:
        self.kernel = kernel
        batch, queries, keys, size = shape
        self.score: Score = Additive(size, size) if score == "additive" else ScaledDot(size, size)
        self.query, self.key = torch.randn(batch, queries, size), torch.randn(batch, keys, size)
        lengths = torch.randint(max(1, keys // 2), keys + 1, (batch,))
        self.mask = padding(lengths)
        self.allowed = torch.arange(keys) < lengths[:, None]

    def attended(self, query: Tensor, key: Tensor | PreparedKey, value: Tensor) -> Tensor:
        return attend(query, key, value, score=self.score, mask=self.mask, kernel=self.kernel).context

    def mapped(self, query: Tensor) -> Tensor:
        return self.score.query_projection(query) if isinstance(self.score, Additive) else query

    def prepared(self) -> tuple[Work, Work]:
        key = self.score.prepare(self.key)
        plain = self.score.key_projection(self.key) if isinstance(self.score, Additive) else self.key

        def ours() -> object:
            with torch.no_grad():
                return self.attended(self.query, key, self.key)

        def theirs() -> object:
            with torch.no_grad():
                return formula(self.score, self.mapped(self.query), plain, self.key, self.allowed)

        return ours, theirs

    def trained(self, num_steps: int = 1) -> tuple[Work, Work]:
        def ours() -> object:
            query, key = (tensor.detach().requires_grad_() for tensor in (self.query, self.key))
            ready = self.score.prepare(key) if num_steps > 1 else key
            sums = [self.attended(query, ready, key).sum() for _ in range(num_steps)]
            return torch.stack(sums).sum().backward()

        def theirs() -> object:
            query, key = (tensor.detach().requires_grad_() for tensor in (self.query, self.key))
            plain = self.score.key_projection(key) if isinstance(self.score, Additive) else key
            sums = [formula(self.score, self.mapped(query), plain, key, self.allowed).sum() for _ in range(num_steps)]
            return torch.stack(sums).sum().backward()

        return ours, theirs


def ratio(works: tuple[Work, Work], rounds: int) -> tuple[float, float]:
    """Formula over `attend`, and the milliseconds of `attend`."""
    # Processor time does not count what other programs take; that of several threads counts their waiting.
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    for work in (*works, *works):
        work()
    times: tuple[list[float], list[float]] = [], []
    ended = time.perf_counter() + SECONDS
    while len(times[0]) < rounds or time.perf_counter() < ended:
        for work, spent in zip(works, times, strict=True):
            started = clock()
            work()
            spent.append(clock() - started)
    ours, theirs = (statistics.quantiles(spent, n=4)[0] for spent in times)
    return theirs / ours, 1e3 * ours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scores", default="additive,scaled_dot")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--neighbours", type=int, default=0)
    parser.add_argument("--kernel", default="auto")
    parser.add_argument("--columns", default="prepared,trained,steps")
    parser.add_argument("--all", action="store_true", help="60 shapes")
    wanted = parser.parse_args()
    torch.set_num_threads(wanted.threads)
    torch.manual_seed(0)
    least: list[tuple[float, str]] = []
    columns = wanted.columns.split(",")
    print(
        "score       batch query keys size   " + "  ".join(f"{name:14}" for name in columns), "formula over attend (ms)"
    )
    with neighbours(wanted.neighbours):
        for score in wanted.scores.split(","):
            for shape in grid() if wanted.all else SHAPES:
                case = Case(score, shape, wanted.kernel)
                works = {"prepared": case.prepared, "trained": case.trained, "steps": partial(case.trained, NUM_STEPS)}
                results = [ratio(works[name](), wanted.rounds) for name in columns]
                cells = "  ".join(f"{value:5.2f} ({spent:6.2f})" for value, spent in results)
                batch, queries, keys, size = shape
                print(f"{score:11} {batch:5} {queries:5} {keys:4} {size:4}  {cells}", flush=True)
                least += [(value, f"{score} {shape} {name}") for name, (value, _) in zip(columns, results, strict=True)]
    print(f"smallest: {', '.join(f'{value:.2f} at {name}' for value, name in sorted(least)[:8])}")


if __name__ == "__main__":
    main()
