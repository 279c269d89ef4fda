"""Calls of `attend` in two states of this project, in turn: has attention become slower?

    git worktree add /tmp/before COMMIT
    python benchmarks/two_states_attention.py /tmp/before . [--processes 9] [--rounds 12] [--threads 1] [--neighbours 0]
        [--compiled]

Each state runs the same calls in a process of its own and waits while the other takes its turn, so that both see the
same machine; a round lasts about 20 ms per call. Where a process happens to lie in memory changes a call by up to 10 %,
so the ratio of a pair of processes is the median over its rounds, and the result is the median over several pairs.
With --compiled the calls are those of code that `torch.compile` has made, on the CPU.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

WORKER = """
import json, sys, time
import torch
from heedful.attention.dispatch import attend
from heedful.attention.masks import causal, padding
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import Additive, Gaussian, ScaledDot

torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(0)
numbers = torch.Generator().manual_seed(0)


def draw(*shape):
    return torch.randn(*shape, generator=numbers)


def lengths(items, longest):
    return padding(torch.randint(5, longest + 1, (items,), generator=numbers))


def trained(score, query, key, mask, **more):
    def call():
        inputs = [tensor.detach().requires_grad_() for tensor in (query, key)]
        attend(*inputs, inputs[1], score=score, mask=mask, **more).context.sum().backward()

    return call


def answered(score, query, key, value, mask):
    def call():
        with torch.no_grad():
            attend(query, key, value, score=score, mask=mask)

    return call


def steps(score, query, key, mask):
    def call():
        inputs = [tensor.detach().requires_grad_() for tensor in (query, key)]
        prepared = score.prepare(inputs[1])
        sum(attend(inputs[0], prepared, inputs[1], score=score, mask=mask).context.sum() for _ in range(8)).backward()

    return call


additive, dot, gaussian = Additive(256, 256, 256), ScaledDot(64, 64), Gaussian(8, 8)
source, heads, memory = draw(80, 20, 256), draw(8, 4, 64, 64), draw(4, 4, 30, 64)
with torch.no_grad():
    prepared = additive.prepare(source)
CALLS = {
    "additive, decoding step": answered(additive, draw(80, 1, 256), prepared, source, lengths(80, 20)),
    "scaled dot, decoding step": answered(dot, draw(4, 4, 1, 64), memory, memory, lengths(4, 30)),
    "scaled dot, causal": answered(dot, heads, heads, heads, causal()),
    "scaled dot, training": trained(dot, heads, heads, causal()),
    "scaled dot, sparsemax, training": trained(dot, heads, heads, causal(), normalizer=NORMALIZERS["sparsemax"]()),
    "additive, training": trained(additive, draw(32, 20, 256), draw(32, 20, 256), lengths(32, 20)),
    "additive, training step by step": steps(additive, draw(80, 1, 256), source, lengths(80, 20)),
    "Gaussian, training": trained(gaussian, draw(4, 200, 8), draw(4, 200, 8), lengths(4, 200)),
    "Gaussian without a mask, training": trained(gaussian, draw(4, 200, 8), draw(4, 200, 8), None),
}
if sys.argv[2] == "compiled":
    attend = torch.compile(attend)
    many = draw(8, 8, 64, 64)
    CALLS = {
        "padding": answered(dot, many, many, many, lengths(8, 64)),
        "causal": answered(dot, many, many, many, causal()),
        "padding and causal": answered(dot, many, many, many, lengths(8, 64) & causal()),
        "padding, training": trained(dot, many, many, lengths(8, 64)),
        "causal, training": trained(dot, many, many, causal()),
        "padding and causal, training": trained(dot, many, many, lengths(8, 64) & causal()),
    }
repeats = {}
for name, call in CALLS.items():
    call()
    started = time.perf_counter()
    call()
    repeats[name] = max(1, int(0.02 / (time.perf_counter() - started)))
for _ in sys.stdin:
    seconds = {}
    for name, call in CALLS.items():
        started = time.perf_counter()
        for _ in range(repeats[name]):
            call()
        seconds[name] = (time.perf_counter() - started) / repeats[name]
    print(json.dumps(seconds), flush=True)
"""


def main() -> None:
    """Print the time of each call in the state after, and its ratio to the one before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("states", nargs=2, type=Path, help="folders that hold src/heedful: before and after")
    parser.add_argument("--processes", type=int, default=9, help="pairs of processes, one after the other")
    parser.add_argument("--rounds", type=int, default=12, help="turns of each pair")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--compiled", action="store_true", help="time calls within code that torch.compile has made")
    parser.add_argument("--neighbours", type=int, default=0, help="busy loops that run beside")
    options = parser.parse_args()
    with ExitStack() as stack:
        for _ in range(options.neighbours):
            neighbour = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(neighbour.kill)
        # The state whose process starts first changes from pair to pair.
        pairs = [
            measure(options.states, options.threads, options.rounds, options.compiled, is_reversed=bool(number % 2))
            for number in range(options.processes)
        ]
    for name in pairs[0]:
        seconds, ratios = zip(*(pair[name] for pair in pairs), strict=True)
        ordered = sorted(ratios)
        quarters = ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]
        print(
            f"{name}: {statistics.median(seconds) * 1e6:.0f} us, after / before {statistics.median(ratios):.3f}, "
            f"half of the processes in {quarters[0]:.3f} to {quarters[1]:.3f}"
        )


def measure(
    states: list[Path], threads: int, rounds: int, is_compiled: bool, is_reversed: bool
) -> dict[str, tuple[float, float]]:
    """Time every call in a pair of processes.

    Args:
        states: folders of the states before and after.
        threads: of each process.
        rounds: turns of each process.
        is_compiled: whether to time compiled code.
        is_reversed: whether the process of the later state starts first.

    Returns:
        For each call the seconds after, and their ratio to those before: medians over rounds.
    """
    with ExitStack() as stack:
        workers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WORKER, str(threads), "compiled" if is_compiled else "eager"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    # Threads that spin while they wait would take the other's cores.
                    env={**os.environ, "PYTHONPATH": str(state.resolve() / "src"), "OMP_WAIT_POLICY": "passive"},
                )
            )
            for state in (reversed(states) if is_reversed else states)
        ]
        series: list[list[dict[str, float]]] = [[], []]
        for _ in range(rounds):
            for worker, times in zip(workers, series, strict=True):
                if worker.stdin is None or worker.stdout is None:
                    raise SystemExit("a worker has no pipes")
                print("go", file=worker.stdin, flush=True)
                times.append(json.loads(worker.stdout.readline()))
    before, after = reversed(series) if is_reversed else series
    results: dict[str, tuple[float, float]] = {}
    for name in before[0]:
        ratios = [late[name] / early[name] for early, late in zip(before, after, strict=True)]
        results[name] = statistics.median(times[name] for times in after), statistics.median(ratios)
    return results


if __name__ == "__main__":
    main()
