"""Additive scores on a CUDA device: our Triton programs against the formula in PyTorch, and against the device's floor.

    python benchmarks/gpu.py [--repeats N]

Floors, for each query * key * hidden: our forward pass takes six operations of the arithmetic units (128 a cycle and
multiprocessor from compute capability 8.6 on and on 9.0, 64 on 8.0) and half a reciprocal of the special units (16 a
cycle); other forms are listed beside it for the same device. Times are medians of what CUDA events measure, after
warming up. On a machine without a CUDA device or without Triton it says so in one line.
"""

import argparse
import importlib.util
import statistics
from collections.abc import Callable
from functools import partial
from typing import Final

import torch
from torch import Tensor

from heedful.attention.kernels.additive_triton import additive_scores

SHAPES: Final = [(32, 256, 256, 512), (64, 32, 32, 512), (8, 1024, 1024, 256), (128, 1, 64, 512)]
FORMS: Final = {
    "tanh, exponential and reciprocal each": (14.0, 2.0),
    "tanh of the special units, error 1e-5": (2.0, 1.0),
    "exponential form, a reciprocal each": (5.0, 1.0),
    "exponential form, a reciprocal for two (ours)": (6.0, 0.5),
}
"""Operations of the arithmetic units and of the special units for each element."""
SPECIAL: Final = 16

Score = Callable[[Tensor, Tensor, Tensor], Tensor]


def formula(query: Tensor, key: Tensor, vector: Tensor) -> Tensor:
    return torch.tanh(query[:, :, None] + key[:, None]) @ vector


def floor_microseconds(
    num_elements: float, operations: float, special: float, num_processors: int, arithmetic: int, hertz: float
) -> float:
    """The slower of the two kinds of units, each never idle."""
    return 1e6 * num_elements / (num_processors * hertz) * max(operations / arithmetic, special / SPECIAL)


def forward(score: Score, inputs: list[Tensor]) -> None:
    with torch.no_grad():
        score(*inputs)


def forward_and_backward(score: Score, inputs: list[Tensor]) -> None:
    leaves = [part.detach().requires_grad_() for part in inputs]
    result = score(*leaves)
    torch.autograd.grad(result, leaves, torch.ones_like(result))


def measure(work: Callable[[], None], repeats: int) -> float:
    """Median milliseconds."""
    for _ in range(3):
        work()
    times: list[float] = []
    for _ in range(repeats):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop))
    return statistics.median(times)


def missing() -> str:
    """Why nothing can be timed here."""
    if not torch.cuda.is_available():
        return "no CUDA device"
    return "" if importlib.util.find_spec("triton") else "Triton is not installed (pip install 'heedful[gpu]')"


def print_table(repeats: int) -> None:
    device = torch.cuda.get_device_properties(0)
    arithmetic = 64 if (device.major, device.minor) == (8, 0) else 128
    hertz = 1e3 * getattr(device, "clock_rate", 0) or 1.98e9
    units = (device.multi_processor_count, arithmetic, hertz)
    print(f"{device.name}, {units[0]} multiprocessors at {hertz / 1e9:.2f} GHz, PyTorch {torch.__version__}")
    num_elements = float(torch.tensor(SHAPES[0]).prod())
    for name, (operations, special) in FORMS.items():
        print(f"floor, {SHAPES[0]}, {name}: {floor_microseconds(num_elements, operations, special, *units):.0f} us")
    print("batch  query   key  hidden  pass      ours ms  formula ms  formula/ours  ours/floor")
    for shape in SHAPES:
        batch, num_queries, num_keys, hidden = shape
        sizes = ((batch, num_queries, hidden), (batch, num_keys, hidden), (hidden,))
        inputs = [torch.randn(size, device="cuda") for size in sizes]
        floor = floor_microseconds(float(torch.tensor(shape).prod()), *list(FORMS.values())[-1], *units) / 1e3
        for name, run in (("forward", forward), ("both", forward_and_backward)):
            ours, plain = (measure(partial(run, score, inputs), repeats) for score in (additive_scores, formula))
            ratio = f"{ours / floor:10.1f}" if run is forward else " " * 10
            print(
                f"{batch:5}  {num_queries:5}  {num_keys:4}  {hidden:6}  {name:8}  {ours:7.3f}  {plain:10.3f}  "
                f"{plain / ours:12.1f}  {ratio}",
                flush=True,
            )


def main() -> None:
    """Print the table, or why there is none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=21)
    repeats = parser.parse_args().repeats
    if reason := missing():
        print(f"nothing timed: {reason}")
    else:
        print_table(repeats)


if __name__ == "__main__":
    main()
