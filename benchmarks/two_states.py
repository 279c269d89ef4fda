"""Training steps of two states of this project, on the same batches in turn: has training become faster?

    git worktree add /tmp/before COMMIT
    python benchmarks/two_states.py /tmp/before . [--model rnnsearch] [--steps 30] [--batch-tokens 2048] [--longer 0]
        [--neighbours 0]

Each state runs its own WORKER, from its own copy of this file, in a process of its own, and waits while the other takes
its step, so that both see the same machine; the ratio is the median over steps. Models, sizes and sentences are
the same as long as both states know the preset. `--neighbours` is how many busy loops run beside.
"""

import argparse
import os
import runpy
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

WORKER = """
import sys, time, importlib
import numpy as np, torch
from torch import nn
from heedful.data.batching import PairSampler
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.layers.cpu.accelerate import accelerate
from heedful.models.cpu_forms import CPU_FORMS
from heedful.training.memory_settings import tuned_process, use_large_pages
from heedful.training.pair_step import PairStep
from heedful.training.precision import autocast, resolve_precision

kind, preset, batch_tokens = sys.argv[1], sys.argv[2], int(sys.argv[3])
generator = np.random.default_rng(0)
lengths = np.clip(generator.gamma(9.0, 1.6, 5000).astype(int), 4, 60) + int(sys.argv[4])
others = np.clip((lengths * generator.normal(1.0, 0.18, 5000)).astype(int), 4, 200)
sides = (EncodedSide.of([generator.integers(4, 8000, n).tolist() for n in side]) for side in (lengths, others))
batches = iter(PairSampler(EncodedCorpus(*sides), batch_tokens, 0))
torch.manual_seed(0)
config = importlib.import_module("heedful.models." + kind).PRESETS[preset]
model = PairStep(config.build(8000, 8000, kind != "rnnsearch"), 0.1)
accelerate(model, CPU_FORMS)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
device = torch.device("cpu")
precision = resolve_precision("auto", device)
use_large_pages()
tuned_process().__enter__()
for _ in sys.stdin:
    batch = next(batches)
    tensors = [torch.from_numpy(a) for a in (batch.source, batch.source_lengths, batch.target_in, batch.target_out)]
    started = time.perf_counter()
    with autocast(precision, device):
        loss = model(*tensors).total / batch.num_units
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(time.perf_counter() - started, batch.num_units, flush=True)
"""


def main() -> None:
    """Print target tokens per second of both, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("states", nargs=2, type=Path, help="folders that hold src/heedful: before and after")
    parser.add_argument("--model", choices=("rnnsearch", "transformer"), default="rnnsearch")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--longer", type=int, default=0, help="words added to the 14 that a sentence has on average")
    parser.add_argument("--neighbours", type=int, default=0, help="busy loops that run beside")
    options = parser.parse_args()
    preset = {"rnnsearch": "rnnsearch", "transformer": "small"}[options.model]
    arguments = [options.model, preset, str(options.batch_tokens), str(options.longer)]
    programs = [runpy.run_path(str(state / "benchmarks" / "two_states.py"))["WORKER"] for state in options.states]
    with ExitStack() as stack:
        for _ in range(options.neighbours):
            neighbour = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(neighbour.kill)
        workers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", program, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    # Threads that spin while they wait would take the other's cores.
                    env={**os.environ, "PYTHONPATH": str(state.resolve() / "src"), "OMP_WAIT_POLICY": "passive"},
                )
            )
            for program, state in zip(programs, options.states, strict=True)
        ]
        rates: list[list[float]] = [[], []]
        for step in range(options.steps + 3):
            for worker, series in zip(workers, rates, strict=True):
                if worker.stdin is None or worker.stdout is None:
                    raise SystemExit("a worker has no pipes")
                print("go", file=worker.stdin, flush=True)
                seconds, tokens = map(float, worker.stdout.readline().split())
                if step >= 3:
                    series.append(tokens / seconds)
    ratios = sorted(after / before for before, after in zip(*rates, strict=True))
    before, after = map(statistics.median, rates)
    quarters = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    print(f"{options.model}: {before:.0f} and {after:.0f} target tokens/s")
    print(
        f"after / before: {statistics.median(ratios):.3f}, half of the steps in {quarters[0]:.3f} to {quarters[1]:.3f}"
    )


if __name__ == "__main__":
    main()
