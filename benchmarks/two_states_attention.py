"""Calls of `attend` in two states of this project, in turn: has attention become slower?

    git worktree add /tmp/before COMMIT
    python benchmarks/two_states_attention.py /tmp/before . [--rounds 40] [--threads 1] [--neighbours 0]

Each state runs the same calls in a process of its own and waits while the other takes its turn, so that both see the
same machine; the ratio of each call is the median over rounds. A round lasts about 20 ms per call.
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
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--neighbours", type=int, default=0, help="busy loops that run beside")
    options = parser.parse_args()
    with ExitStack() as stack:
        for _ in range(options.neighbours):
            neighbour = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(neighbour.kill)
        workers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WORKER, str(options.threads)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    # Threads that spin while they wait would take the other's cores.
                    env={**os.environ, "PYTHONPATH": str(state.resolve() / "src"), "OMP_WAIT_POLICY": "passive"},
                )
            )
            for state in options.states
        ]
        rounds: list[list[dict[str, float]]] = [[], []]
        for _ in range(options.rounds):
            for worker, series in zip(workers, rounds, strict=True):
                if worker.stdin is None or worker.stdout is None:
                    raise SystemExit("a worker has no pipes")
                print("go", file=worker.stdin, flush=True)
                series.append(json.loads(worker.stdout.readline()))
    for name in rounds[0][0]:
        before, after = ([seconds[name] for seconds in series] for series in rounds)
        ratios = sorted(one / other for one, other in zip(after, before, strict=True))
        quarters = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
        print(
            f"{name}: {statistics.median(after) * 1e6:.0f} us, after / before {statistics.median(ratios):.3f}, "
            f"half of the rounds in {quarters[0]:.3f} to {quarters[1]:.3f}"
        )


if __name__ == "__main__":
    main()
