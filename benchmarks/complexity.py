"""Vaswani et al. 2017, table 1, measured: what a layer costs, and how far apart it leaves the ends of a sequence.

    python benchmarks/complexity.py

Costs: seconds of processor time of one layer, forward, over lengths n and sizes d; the exponents of n and d are a
least-squares fit of log seconds, and stand beside those of the paper. The paper counts attention itself without its
four projections, each n d^2 more, and so do we. A product of matrices runs at a higher rate where it is larger, and
what is fixed weighs less there, which lowers exponents; matrices that no longer fit a cache raise them.

Steps and paths are counted, not timed. Steps: the longest chain of operations in the graph of one layer, at two
lengths. Rounds: how often all positions are computed anew, each from the round before, until the last one depends on
the first; for a recurrent layer a round is one step in time.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from heedful.attention.dispatch import attend
from heedful.attention.masks import Mask, window
from heedful.attention.scores import ScaledDot
from heedful.layers.convolution import GatedConvolution
from heedful.layers.recurrent import GatedRecurrentUnit

WIDTH = 5
"""k, positions that an output of a convolution sees."""
REACH = 8
"""r = 2 * REACH: a restricted query sees so many keys on either side, and itself."""
BATCH, REPEATS = 2, 3
GRAPH_LENGTHS = (16, 64)
PATH_LENGTHS = (5, 33, 129)

Layer = Callable[[Tensor], Tensor]
"""[batch, position, size] -> the same."""
Round = Callable[[Tensor, Tensor, int], Tensor]
"""Inputs [position, size], the same of the round before, the round's number -> the next [position, size]."""


def attention(mask: Mask | None, size: int, dtype: torch.dtype = torch.float32) -> Layer:
    """Self-attention over all keys or near ones, without projections."""
    score = ScaledDot(size, size).to(dtype)
    return lambda vectors: attend(vectors, vectors, vectors, score=score, mask=mask).context


def convolution(size: int, dtype: torch.dtype = torch.float32) -> Layer:
    """One gated convolution."""
    layer = GatedConvolution(size, WIDTH).to(dtype)
    # A layer upon itself many times over would shut its gates for good, and no gradient pass, were it any larger.
    torch.nn.init.uniform_(layer.weight, -0.1, 0.1)
    return lambda vectors: layer(vectors, torch.ones(vectors.shape[:2], dtype=torch.bool))


def recurrence(size: int, dtype: torch.dtype = torch.float32) -> Layer:
    """One layer of gated units."""
    unit = GatedRecurrentUnit(size, size).to(dtype)
    return lambda vectors: unit.run(vectors)[0]


def stacked(make: Callable[[int, torch.dtype], Layer], size: int) -> Round:
    """Layer upon layer: a round reads what the one before gave."""
    layer = make(size, torch.float64)
    return lambda inputs, states, number: layer(states[None])[0]


def recurrent(size: int) -> Round:
    """Every position at once takes a step in time: from its input, and from its left neighbour's state before."""
    unit = GatedRecurrentUnit(size, size).double()

    def take(inputs: Tensor, states: Tensor, number: int) -> Tensor:
        before = functional.pad(states[:-1], (0, 0, 1, 0)) if number else torch.zeros_like(states)
        return unit.step(unit.input_map(inputs), (before,))[0]

    return take


def dilated(size: int) -> Round:
    """Convolutions of what came before, k times as far apart in each layer. Kalchbrenner et al. 2016, section 3.3."""
    weight = torch.randn(size, size, WIDTH, dtype=torch.float64)

    def take(inputs: Tensor, states: Tensor, number: int) -> Tensor:
        apart = WIDTH**number
        before = functional.pad(states.T[None], (apart * (WIDTH - 1), 0))
        return functional.conv1d(before, weight, dilation=apart)[0].T

    return take


@dataclass(frozen=True)
class Kind:
    """A line of the table."""

    name: str
    cost: str
    exponents: tuple[int, int]
    """Exponents of n and d, in the paper."""
    steps: str
    path: str
    lengths: tuple[int, ...]
    """Over which seconds are taken."""
    sizes: tuple[int, ...]
    make: Callable[[int], Layer]
    rounds: Callable[[int], Round]


NEAR = partial(attention, window(REACH, REACH))
KINDS = (
    Kind(
        "self-attention",
        "n^2 d",
        (2, 1),
        "1",
        "1",
        (256, 512, 1024),
        (128, 256, 512),
        partial(attention, None),
        partial(stacked, partial(attention, None)),
    ),
    Kind("recurrent", "n d^2", (1, 2), "n", "n", (32, 64, 128), (256, 512, 1024), recurrence, recurrent),
    Kind(
        "convolutional",
        "k n d^2",
        (1, 2),
        "1",
        "n/k",
        (256, 512, 1024),
        (128, 256, 512),
        convolution,
        partial(stacked, convolution),
    ),
    Kind("restricted", "r n d", (1, 1), "1", "n/r", (1024, 2048, 4096), (128, 256, 512), NEAR, partial(stacked, NEAR)),
)


def path_length(take: Round, length: int, size: int = 4, most: int = 1000, seed: int = 0) -> int:
    """Count the rounds until the gradient of the last output by the first input is not zero; 0 where it stays zero."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(length, size, dtype=torch.float64, generator=generator).requires_grad_()
    states = inputs
    for number in range(most):
        states = take(inputs, states, number)
        (gradient,) = torch.autograd.grad(states[-1].sum(), inputs, retain_graph=True)
        if bool((gradient[0] != 0).any()):
            return number + 1
    return 0


def graph_depth(output: Tensor) -> int:
    """Count the operations of the longest chain that leads to a tensor: those that no processor can do at once."""
    depths: dict[object, int] = {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting[-1]
        before = [each for each, _ in node.next_functions if each is not None] if node is not None else []
        if open_ones := [each for each in before if each not in depths]:
            waiting += open_ones
        else:
            depths[waiting.pop()] = 1 + max((depths[each] for each in before), default=0)
    return depths[output.grad_fn]


def fitted_exponents(points: Sequence[tuple[int, int, float]]) -> tuple[float, float]:
    """Fit log seconds = c + p log n + q log d over (n, d, seconds); give p and q."""
    rows = np.array([[1.0, np.log(length), np.log(size)] for length, size, _ in points])
    found = np.linalg.lstsq(rows, np.log([seconds for *_, seconds in points]), rcond=None)[0]
    return float(found[1]), float(found[2])


def processor_seconds(layer: Layer, length: int, size: int) -> float:
    """Least processor time over repeats, after a call to warm up: what other processes do comes on top of it."""
    vectors = torch.randn(BATCH, length, size)
    times: list[float] = []
    with torch.no_grad():
        layer(vectors)
        for _ in range(REPEATS):
            started = time.process_time()
            num_calls = 0
            # The clock of processor time is coarse.
            while (taken := time.process_time() - started) < 0.02:
                layer(vectors)
                num_calls += 1
            times.append(taken / num_calls)
    return min(times)


def main(shrink: int = 1) -> None:
    """Print a line for each kind of layer.

    Args:
        shrink: lengths and sizes are divided by it, for a glance.
    """
    torch.manual_seed(0)
    print(f"{torch.get_num_threads()} threads, k = {WIDTH}, r = {2 * REACH}, batch {BATCH}, float32\n")
    heads = " ".join(f"rounds n={length:<4}" for length in PATH_LENGTHS)
    print(f"{'layer':24}{'cost':9}{'n^p':>11}{'d^q':>11}  {'steps':7}{'at n=16, 64':13}{'path':10}{heads}")
    for kind in KINDS:
        points = [
            (length, size, processor_seconds(kind.make(size), length, size))
            for length, size in product((n // shrink for n in kind.lengths), (d // shrink for d in kind.sizes))
        ]
        found = fitted_exponents(points)
        costs = "".join(f"{f'{got:.2f} ({want})':>11}" for got, want in zip(found, kind.exponents, strict=True))
        depths = [graph_depth(kind.make(8)(torch.randn(1, n, 8, requires_grad=True)).sum()) for n in GRAPH_LENGTHS]
        rounds = "".join(f"{path_length(kind.rounds(4), length):>8}      " for length in PATH_LENGTHS)
        steps = f"{kind.steps:7}{', '.join(map(str, depths)):13}"
        print(f"{kind.name:24}{kind.cost:9}{costs}  {steps}{kind.path:10}{rounds}".rstrip())
    rounds = "".join(f"{path_length(dilated(4), length):>8}      " for length in PATH_LENGTHS)
    print(f"{'convolutional, dilated':24}{'k n d^2':9}{'':22}  {'1':20}{'log_k n':10}{rounds}".rstrip())
    print("\nin brackets the paper's exponents; steps and rounds are counted")


if __name__ == "__main__":
    main()
