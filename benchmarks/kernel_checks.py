"""Time of the checks before compiled kernels: calls of a kernel replaced by a function that does nothing.

    PYTHONPATH=. python benchmarks/kernel_checks.py [--rounds 5]

Inputs are the right ones of tests/contracts/test_kernel_inputs.py. Times are processor time in microseconds, in
proportion to a reference that is measured in turn with each kernel, so that a slow machine shows the same figures.
Kernels of more than ten arrays check them in compiled code, which is not counted here; --compiled measures that.
"""

import argparse
import statistics
import timeit
from typing import Any

import numpy as np
from numba import njit

from heedful.attention.kernels.additive.numba_shapes import are_operands_right
from heedful.cpu.checked_kernel import CheckedKernel
from tests.contracts.test_kernel_inputs import kernels, right_inputs
from tests.contracts.test_linear_time import REFERENCE_SECONDS, reference, seconds

CALLS = 500


def measure(kernel: CheckedKernel, inputs: list[Any]) -> float:
    """Microseconds of a call without the kernel's own."""
    real = vars(kernel)["_kernel"]
    references, times = [], []
    for _ in range(4):
        references.append(seconds(reference))
        with_check = without = 0.0
        vars(kernel)["_kernel"] = nothing
        try:
            with_check = min(timeit.repeat(lambda: kernel(*inputs), number=CALLS, repeat=2))
        finally:
            vars(kernel)["_kernel"] = real
        without = min(timeit.repeat(lambda: nothing(*inputs), number=CALLS, repeat=2))
        times.append((with_check - without) / CALLS)
    return min(times) / min(references) * REFERENCE_SECONDS * 1e6


def nothing(*_: object) -> bool:
    return True


@njit
def check_often(number: int, *arrays: Any) -> int:
    """Run the compiled check of additive scores; an index changes each time, so that no run is left out."""
    total = 0
    for i in range(number):
        arrays[0][1][0] = i % 2
        total += are_operands_right(*arrays)
    return total


def measure_compiled() -> float:
    """Microseconds of the check of 9 arrays, 256 slots."""
    query, key = np.zeros((2, 5, 256), np.float32), np.zeros((2, 20, 256), np.float32)
    index, bounds, order = np.zeros(2, np.int64), np.zeros((3, 256), np.float32), np.arange(256)
    none, none_rounded = np.zeros((0, 0, 0), np.float32), np.zeros((0, 0, 0), np.int16)
    arrays = (query, index.copy()), (key, bounds), (none, none_rounded, index), order
    score = np.zeros((2, 5, 20), np.float32)
    if check_often(10, *arrays, score) != 10:
        raise SystemExit("the inputs are wrong")
    best = min(timeit.repeat(lambda: check_often(10_000, *arrays, score), number=1, repeat=5)) / 10_000
    return best / seconds(reference) * REFERENCE_SECONDS * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--compiled", action="store_true")
    arguments = parser.parse_args()
    if arguments.compiled:
        print(f"compiled check of 9 arrays: {measure_compiled():.2f} us")
        return
    found: dict[str, list[float]] = {}
    inputs = {name: (kernel, right_inputs(kernel)) for name, kernel in kernels().items()}
    for _ in range(arguments.rounds):
        for name, (kernel, values) in inputs.items():
            found.setdefault(name, []).append(measure(kernel, values))
    for name, times in sorted(found.items(), key=lambda item: -statistics.median(item[1])):
        print(f"{statistics.median(times):5.2f} us ({min(times):.2f} to {max(times):.2f})  {name}")


if __name__ == "__main__":
    main()
