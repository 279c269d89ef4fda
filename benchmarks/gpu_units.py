"""Results per cycle of a GPU's units: the rates that every floor of benchmarks/gpu.py is made of.

    python benchmarks/gpu_units.py [--repeats N]

Each program applies one instruction to numbers that stay in registers, again and again; results a clock cycle and
multiprocessor are counted at the clock that the device reports as its highest. Expected on compute capability 9.0: 16
results of the special units (tanh, reciprocal, exponential, packed or not), 128 multiply-adds; mixed, the special
units work while the others do, so that 8 multiply-adds for each reciprocal take little longer than the slower part.
"""

import argparse
import importlib.util
import statistics
from collections.abc import Callable
from typing import Any, Final

import torch

NUMBERS: Final = 1024
"""Held by a program of 4 warps: 8 for each thread."""
TURNS: Final = 4096


def measure(work: Callable[[], object], repeats: int) -> float:
    """Median seconds of what CUDA events measure, after warming up."""
    for _ in range(3):
        work()
    times: list[float] = []
    for _ in range(repeats):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop) / 1e3)
    return statistics.median(times)


def hertz() -> float:
    """The highest clock."""
    return 1e3 * getattr(torch.cuda.get_device_properties(0), "clock_rate", 0) or 1.98e9


def print_rates(repeats: int) -> None:
    import _unit_programs as programs  # Triton is not installed everywhere

    processors = torch.cuda.get_device_properties(0).multi_processor_count
    numbers = torch.rand(processors * 16 * NUMBERS, device="cuda")

    def rate(program: Any, results: int, **constants: Any) -> float:
        grid = (processors * 16,)
        seconds = measure(lambda: program[grid](numbers, TURNS=TURNS, SIZE=NUMBERS, **constants), repeats)
        return results * TURNS * len(numbers) / seconds / processors / hertz()

    print(f"results a cycle and multiprocessor, at {hertz() / 1e9:.2f} GHz")
    for name, constants in programs.SPECIAL.items():
        print(f"{name:32} {rate(programs.repeat_special, constants['COUNT'], **constants):7.1f}")
    print(f"{'fma.rn.f32':32} {rate(programs.repeat_multiply_add, 1):7.1f}")
    for count in (2, 4, 8):
        both = rate(programs.repeat_mixed, 1, MULTIPLY_ADDS=count)
        print(f"{f'rcp with {count} fma each':32} {both:7.1f} rcp, {both * count:7.1f} fma")


def missing() -> str:
    """Why nothing can be timed here."""
    if not torch.cuda.is_available():
        return "no CUDA device"
    return "" if importlib.util.find_spec("triton") else "Triton is not installed (pip install 'heedful[gpu]')"


def main() -> None:
    """Print the rates, or why there are none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=21)
    repeats = parser.parse_args().repeats
    if reason := missing():
        print(f"nothing timed: {reason}")
    else:
        print_rates(repeats)


if __name__ == "__main__":
    main()
