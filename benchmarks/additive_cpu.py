"""Additive scores on a CPU: our loops against the formula in PyTorch, forward, backward and one step of decoding.

    python benchmarks/additive_cpu.py [--threads N] [--repeats N] [--compile]

Floor: 0.14 cycles of a core for each query * key * hidden forward, what the multiply-adds of the cheapest formula known
take on two 256-bit units. Cycles are those of a chain of multiplications timed in the same run; they count the
processor time of all threads, all else the time on the wall. Every figure is a median and has exponentials, allocation
and all else in it. `dot` is softmax(query @ key^T) @ key of the same shape: what additive attention costs beside it.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from numba import njit, uint64
from torch import Tensor

from heedful.attention.kernels.additive.cpu_ops import additive_scores, prepare_exp_key

FLOOR = 0.14
SHAPES = [(8, 128, 128, 512), (8, 32, 32, 512), (16, 30, 30, 256), (64, 1, 50, 512), (128, 1, 16, 512)]
STEPS = [(1, 15, 256), (1, 50, 512), (8, 30, 256), (20, 50, 512), (100, 50, 512)]

Score = Callable[[Tensor, Tensor, Tensor], Tensor]


class Seconds(NamedTuple):
    """Medians of one piece of work."""

    wall: float
    processor: float


@njit(uint64(uint64, uint64))
def chain(number: int, length: int) -> int:
    """Multiply and add, each after the other: four cycles on any recent x86 processor."""
    for _ in range(length):
        number = number * number + uint64(1)
    return number


def formula(query: Tensor, key: Tensor, vector: Tensor) -> Tensor:
    return torch.tanh(query[:, :, None] + key[:, None]) @ vector


def dot(query: Tensor, key: Tensor, vector: Tensor) -> Tensor:
    return torch.softmax(query @ key.mT, dim=-1) @ key


def forward(score: Score, inputs: list[Tensor]) -> None:
    with torch.no_grad():
        score(*inputs)


def forward_and_backward(score: Score, inputs: list[Tensor]) -> None:
    query, key, vector = (part.detach().requires_grad_() for part in inputs)
    result = score(query, key, vector)
    leaves = [query, key] if score is dot else [query, key, vector]
    torch.autograd.grad(result, leaves, torch.ones_like(result))


def measure(work: Callable[[], object], repeats: int) -> Seconds:
    """Medians over repeats, after two warm-up calls; quick work is done many times in one repeat."""
    work()
    started = time.perf_counter()
    work()
    count = max(1, int(0.002 / (time.perf_counter() - started)))
    walls, processors = [], []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(count):
            work()
        walls.append((time.perf_counter() - wall) / count)
        processors.append((time.process_time() - processor) / count)
    return Seconds(statistics.median(walls), statistics.median(processors))


def print_scores(rate: float, repeats: int, compiled: Score | None) -> None:
    head = "batch  query  key  hidden  pass      ours ms  formula ms  formula/ours  cycles/el  cycles/floor  ours/dot"
    print(head + ("  compiled/ours" if compiled else ""))
    for batch, num_queries, num_keys, hidden in SHAPES:
        inputs = [torch.randn(batch, size, hidden) for size in (num_queries, num_keys)]
        inputs.append(torch.randn(hidden) / hidden**0.5)
        for name, run in (("forward", forward), ("both", forward_and_backward)):
            ours, plain, beside = (
                measure(partial(run, score, inputs), repeats) for score in (additive_scores, formula, dot)
            )
            cycles = ours.processor * rate / (batch * num_queries * num_keys * hidden)
            line = f"{batch:5}  {num_queries:5}  {num_keys:3}  {hidden:6}  {name:8}  {ours.wall * 1e3:7.2f}  "
            line += f"{plain.wall * 1e3:10.2f}  {plain.wall / ours.wall:12.1f}  {cycles:9.3f}  "
            line += f"{cycles / FLOOR if run is forward else float('nan'):12.2f}  {ours.wall / beside.wall:8.2f}"
            if compiled is not None:
                line += f"  {measure(partial(run, compiled, inputs), repeats).wall / ours.wall:13.1f}"
            print(line, flush=True)


def print_steps(repeats: int) -> None:
    print("one query:  batch  key  hidden  ours us  without exp_key us  formula us  formula/ours")
    for batch, num_keys, hidden in STEPS:
        query, key, vector = torch.randn(batch, 1, hidden), torch.randn(batch, num_keys, hidden), torch.randn(hidden)
        exp_key = prepare_exp_key(key)
        ours, without, plain = (
            measure(work, repeats).wall * 1e6
            for work in (
                partial(additive_scores, query, key, vector, exp_key),
                partial(additive_scores, query, key, vector),
                partial(formula, query, key, vector),
            )
        )
        print(
            f"{batch:17}  {num_keys:3}  {hidden:6}  {ours:7.1f}  {without:18.1f}  {plain:10.1f}  {plain / ours:12.1f}",
            flush=True,
        )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument(
        "--compile", action="store_true", help="also torch.compile of the formula; needs a C++ compiler"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    # The C library keeps memory for the next call once a block as large as this was freed, as in training there was.
    torch.zeros(7 << 20).sum()
    rate = 4e6 / min(measure(lambda: chain(3, 1_000_000), options.repeats).processor for _ in range(3))
    print(f"{options.threads} threads, {rate / 1e9:.2f} GHz, medians of {options.repeats}")
    print_scores(rate, options.repeats, torch.compile(formula) if options.compile else None)
    print_steps(options.repeats)


if __name__ == "__main__":
    main()
