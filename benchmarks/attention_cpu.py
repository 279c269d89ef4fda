"""Eager operations against scaled_dot_product_attention, forward and backward, on a CPU.

    python benchmarks/attention_cpu.py

Floor: 4 * query * key * depth operations forward and twice that backward, at the rate of a large product of the same
type measured in the same run. Decides `SHORT` in heedful/attention/kernels/sdpa.py: below so many scores of one head,
plain operations train faster. Prints the ratio of medians, SDPA over eager: above 1 eager wins.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

import torch

from heedful.attention.dispatch import attend
from heedful.attention.masks import causal
from heedful.attention.scores import ScaledDot

HEADS, DEPTH, TOKENS, REPEATS = 4, 64, 4096, 9


def median_seconds(work: Callable[[], object]) -> float:
    """Median over repeats, after two warm-up calls."""
    times = []
    for repeat in range(REPEATS + 2):
        started = time.perf_counter()
        work()
        if repeat >= 2:
            times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> None:
    """Print a row for each length and type."""
    print(f"{torch.get_num_threads()} threads, {TOKENS} tokens, {HEADS} heads of {DEPTH}, causal")
    print("length  type      mode      eager ms  sdpa ms  sdpa/eager  eager, share of floor")
    for dtype in (torch.float32, torch.bfloat16):
        square = torch.randn(1024, 1024, dtype=dtype)
        rate = 2 * 1024**3 / median_seconds(lambda square=square: square @ square)
        for length in (8, 16, 32, 64, 128, 256):
            shape = (TOKENS // length, HEADS, length, DEPTH)
            inputs = [torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(3)]
            for mode, products in (("infer", 2), ("train", 6)):
                eager, fused = (median_seconds(partial(work, inputs, mode)) for work in (run_eager, run_sdpa))
                floor = products * 2 * TOKENS * HEADS * length * DEPTH / rate
                print(
                    f"{length:6}  {str(dtype)[6:]:8}  {mode:8}  {eager * 1e3:8.2f} {fused * 1e3:8.2f}  "
                    f"{fused / eager:10.2f}  {floor / eager:8.0%}"
                )


def run_eager(inputs: list[torch.Tensor], mode: str) -> None:
    """Attend with plain operations."""
    query, key, value = inputs
    with torch.set_grad_enabled(mode == "train"):
        context = attend(query, key, value, score=ScaledDot(DEPTH, DEPTH), mask=causal(), kernel="plain").context
    if mode == "train":
        context.sum().backward()


def run_sdpa(inputs: list[torch.Tensor], mode: str) -> None:
    """Call the function itself: for short sentences our kernel refuses to train, which is what this decides."""
    query, key, value = inputs
    with torch.set_grad_enabled(mode == "train"):
        context = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    if mode == "train":
        context.sum().backward()


if __name__ == "__main__":
    main()
