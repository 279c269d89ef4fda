"""Distance attention on a CPU against other ways to the same result: Gaussian, forward and backward.

    python benchmarks/distance_cpu.py [points] [size] [value_size]

Compared with plain operations on blocks of queries; with scaled_dot_product_attention on keys that hold -|k|^2 / 2 as
one more coordinate (centred first, or digits are lost); and with KeOps where `pykeops` is installed. The ratio is of
processor seconds, so that other work on the machine does not count; the error is the largest against float64.

Floor for a size of 3 and one value: 10 multiplications and 10 additions or shifts for each pair, 2.5 vector operations
a cycle at most of either kind for 8 numbers, which is 0.62 cycles on Zen 4.
"""

import math
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from heedful.attention.kernels.distance.cpu_ops import distance_attention

REPEATS, BLOCK, BANDWIDTH = 5, 256, 0.5


def attend_fused(query: Tensor, key: Tensor, value: Tensor, bandwidth: Tensor) -> Tensor:
    return distance_attention(query, key, value, bandwidth, "gaussian")[0]


def attend_plainly(query: Tensor, key: Tensor, value: Tensor, bandwidth: Tensor) -> Tensor:
    def one(rows: Tensor) -> Tensor:
        squares = ((rows[:, None, :] - key) / bandwidth).square().sum(dim=-1)
        return torch.softmax(-0.5 * squares, dim=-1) @ value

    return torch.cat([one(rows) for rows in query.split(BLOCK)])


def attend_by_dot_products(query: Tensor, key: Tensor, value: Tensor, bandwidth: Tensor) -> Tensor:
    """On a CPU the function is fused only where all sizes are equal."""
    centre = key.mean(dim=0)
    query, key = (query - centre) / bandwidth, (key - centre) / bandwidth
    queries = torch.cat([query, torch.ones_like(query[:, :1])], dim=1)
    keys = torch.cat([key, -0.5 * key.square().sum(dim=1, keepdim=True)], dim=1)
    size = max(queries.shape[1], value.shape[1])
    padded = [functional.pad(tensor, (0, size - tensor.shape[1]))[None, None] for tensor in (queries, keys, value)]
    return functional.scaled_dot_product_attention(*padded, scale=1.0)[0, 0, :, : value.shape[1]]


def attend_with_keops(query: Tensor, key: Tensor, value: Tensor, bandwidth: Tensor) -> Tensor:
    from pykeops.torch import LazyTensor

    queries, keys = LazyTensor((query / bandwidth)[:, None, :]), LazyTensor((key / bandwidth)[None, :, :])
    return (-0.5 * ((queries - keys) ** 2).sum(-1)).sumsoftmaxweight(LazyTensor(value[None]), dim=1)


def sum_with_keops(query: Tensor, key: Tensor, value: Tensor, bandwidth: Tensor) -> Tensor:
    """Without a shift: 0/0 where all keys are far."""
    from pykeops.torch import LazyTensor

    queries, keys = LazyTensor((query / bandwidth)[:, None, :]), LazyTensor((key / bandwidth)[None, :, :])
    weights = (-0.5 * ((queries - keys) ** 2).sum(-1)).exp()
    return (weights * LazyTensor(value[None])).sum(1) / weights.sum(1)


WAYS: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]] = {
    "heedful": attend_fused,
    "plain": attend_plainly,
    "dot products": attend_by_dot_products,
    "KeOps softmax": attend_with_keops,
    "KeOps sums": sum_with_keops,
}


def seconds(work: Callable[[], object]) -> float:
    """Least processor seconds of some repeats, after one call to warm up; of slow work fewer."""
    work()
    least = math.inf
    for _ in range(REPEATS):
        started = time.process_time()
        work()
        least = min(least, time.process_time() - started)
        if least > 2.0:
            break
    return least


def main(num_points: int = 20_000, size: int = 3, value_size: int = 1) -> None:
    """Print a row for each way."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(num_points, width) for width in (size, size, value_size))
    bandwidth = torch.tensor(BANDWIDTH)
    probe = slice(0, 500)
    exact = attend_plainly(query[probe].double(), key.double(), value.double(), bandwidth.double())
    print(
        f"{num_points} queries and keys of size {size}, values of size {value_size}, {torch.get_num_threads()} threads"
    )
    print("way            forward s   ns/pair   ratio    both s   ns/pair   ratio     error")
    base: list[float] = []
    for name, way in WAYS.items():
        try:
            error = float((way(query[probe], key, value, bandwidth) - exact).abs().max())
        except ImportError as missing:
            print(f"{name:13}  {missing}")
            continue

        def train(way: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = way) -> None:
            inputs = [tensor.clone().requires_grad_() for tensor in (query, key, value, bandwidth)]
            way(*inputs).sum().backward()

        times = [seconds(lambda way=way: way(query, key, value, bandwidth)), seconds(train)]
        base = base or times
        cells = [f"{t:9.3f} {t / num_points**2 * 1e9:9.3f} {t / b:7.1f}" for t, b in zip(times, base, strict=True)]
        print(f"{name:13}  {cells[0]} {cells[1]} {error:9.1e}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
