"""Plain operations against scaled_dot_product_attention, forward and backward, on a CPU.

    python benchmarks/attention_cpu.py [--depths 64] [--types float32,bfloat16] [--mask causal] [--threads 1]

Floor: 4 * query * key * depth operations forward and twice that backward, at the rate of a large product of the same
type measured in the same run. Decides `SHORT` and `WIDE` in heedful/attention/kernels/sdpa.py, by which `auto` takes
plain operations. Both take turns; prints medians and their ratio, SDPA over plain: above 1 plain operations win.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from heedful.attention import attend
from heedful.attention.masks import Mask, causal, padding
from heedful.attention.scores import ScaledDot

HEADS, TOKENS, REPEATS = 4, 4096, 9
LENGTHS = 8, 16, 32, 64, 128, 256, 512


def median_seconds(*works: Callable[[], object]) -> list[float]:
    """Medians over repeats in turn, after two warm-up calls."""
    times: list[list[float]] = [[] for _ in works]
    for repeat in range(REPEATS + 2):
        for work, spent in zip(works, times, strict=True):
            started = time.perf_counter()
            work()
            if repeat >= 2:
                spent.append(time.perf_counter() - started)
    return [statistics.median(spent) for spent in times]


def main() -> None:
    """Print a row for each depth, type and length."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depths", default="64")
    parser.add_argument("--types", default="float32,bfloat16")
    parser.add_argument("--mask", default="causal", choices=("causal", "padding"))
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    wanted = parser.parse_args()
    torch.set_num_threads(wanted.threads)
    print(f"{wanted.threads} threads, {TOKENS} tokens, {HEADS} heads, {wanted.mask}")
    print("depth  length  type      mode      plain ms  sdpa ms  sdpa/plain  plain, share of floor")
    for depth in map(int, wanted.depths.split(",")):
        for name in wanted.types.split(","):
            dtype = getattr(torch, name)
            square = torch.randn(1024, 1024, dtype=dtype)
            rate = 2 * 1024**3 / median_seconds(lambda square=square: square @ square)[0]
            for length in LENGTHS:
                batch = TOKENS // length
                inputs = [torch.randn(batch, HEADS, length, depth, dtype=dtype, requires_grad=True) for _ in range(3)]
                mask = (
                    causal() if wanted.mask == "causal" else padding(torch.randint(length // 2, length + 1, (batch,)))
                )
                for mode, products in (("infer", 2), ("train", 6)):
                    plain, fused = median_seconds(*(partial(run, inputs, mask, mode, k) for k in ("plain", "sdpa")))
                    floor = products * 2 * TOKENS * HEADS * length * depth / rate
                    print(
                        f"{depth:5}  {length:6}  {name:8}  {mode:8}  {plain * 1e3:8.2f} {fused * 1e3:8.2f}  "
                        f"{fused / plain:10.2f}  {floor / plain:8.0%}"
                    )


def run(inputs: list[Tensor], mask: Mask, mode: str, kernel: str) -> None:
    """Attend by one kernel, with gradients or without."""
    query, key, value = inputs
    score = ScaledDot(query.shape[-1], query.shape[-1])
    with torch.set_grad_enabled(mode == "train"):
        context = attend(query, key, value, score=score, mask=mask, kernel=kernel).context
    if mode == "train":
        context.sum().backward()


if __name__ == "__main__":
    main()
