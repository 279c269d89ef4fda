"""Work beside busy neighbours, and within a quota: does each kind of work do its fair share?

    python benchmarks/company.py [--model MODEL --source FILE] [--only train-small,translate-onnx] [--neighbours 0,2,4]
        [--seconds 8] [--rounds 3] [--quota 1] [--threads 0] [--niceness 0]

A neighbour is a loop that never waits. Beside k of them, on n cores, the fair share of a program is n / (n + k), but at
most 1 for a program that could use all cores alone. Each kind of work runs in a process of its own, with the settings
that the commands use; rounds alternate between the numbers of neighbours, and the rates are medians over rounds. With
`--quota`, one more column: the rate in a control group that grants so many processors (where one can be made, else
bound to so many), divided by that of `--threads` of the same number, alone. With `--niceness 19` the neighbours give
way, and a program should keep nearly the rate that it has alone.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

PRELUDE = """
import os, sys, time
from heedful.cli.options import prepare_training, use_threads
threads, seconds = int(sys.argv[1]), float(sys.argv[2])
prepare_training(threads)


def measure(step):
    # Both the first steps and those after a change of company are left out.
    until = time.perf_counter() + seconds / 4
    while time.perf_counter() < until:
        step()
    print("ready", flush=True)
    for _ in sys.stdin:
        units, started = 0, time.perf_counter()
        while time.perf_counter() - started < seconds:
            units += step()
        print(units / (time.perf_counter() - started), flush=True)
"""

TRAIN = (
    PRELUDE
    + """
import numpy as np, torch
from torch import nn
from heedful.cpu.threads import follow_company
from heedful.data.batching import PairSampler
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.layers.cpu.accelerate import accelerate
from heedful.models.cpu_forms import CPU_FORMS
from heedful.training.memory_settings import tuned_process
from heedful.training.pair_step import PairStep
from heedful.training.precision import autocast, resolve_precision

kind = sys.argv[3]
generator = np.random.default_rng(0)
if kind == "small":
    from heedful.models.transformer import PRESETS
    config, vocabulary, batch_tokens, precision = PRESETS["small"], 8000, 4096, "auto"
    lengths = np.clip(generator.gamma(9.0, 1.6, 5000).astype(int), 4, 60)
else:
    from heedful.models.rnnsearch import RNNsearchConfig
    config = RNNsearchConfig(embedding_size=64, hidden_size=128, alignment_size=128, maxout_size=64, dropout=0.0)
    vocabulary, batch_tokens, precision = 100, 768, "float32"
    lengths = generator.integers(8, 30, 5000)
others = np.clip((lengths * generator.normal(1.0, 0.18, 5000)).astype(int), 4, 200)
sides = (EncodedSide.of([generator.integers(4, vocabulary, n).tolist() for n in side]) for side in (lengths, others))
batches = iter(PairSampler(EncodedCorpus(*sides), batch_tokens, 0))
torch.manual_seed(0)
model = PairStep(config.build(vocabulary, vocabulary, kind == "small"), 0.1)
accelerate(model, CPU_FORMS)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
device = torch.device("cpu")
precision = resolve_precision(precision, device)
tuned_process().__enter__()


def step():
    follow_company()
    batch = next(batches)
    tensors = [torch.from_numpy(a) for a in (batch.source, batch.source_lengths, batch.target_in, batch.target_out)]
    with autocast(precision, device):
        loss = model(*tensors).total / batch.num_units
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return batch.num_units


measure(step)
"""
)

ATTEND = (
    PRELUDE
    + """
import torch
from heedful.attention.dispatch import attend
from heedful.attention.scores import Additive, ScaledDot

score = {"additive": Additive, "scaled-dot": ScaledDot}[sys.argv[3]](512, 512, 512)
query, key = (torch.randn(8, 128, 512, requires_grad=True) for _ in range(2))


def step():
    attend(query, key, key, score=score).context.sum().backward()
    return 8 * 128 * 128


measure(step)
"""
)

TRANSLATE = (
    PRELUDE
    + """
import heedful

translator = heedful.load(sys.argv[4], engine=sys.argv[3])
lines = open(sys.argv[5], encoding="utf-8").read().split("\\n")[:64]


def step():
    return sum(len(output.text.split()) for output in translator.translate(lines))


measure(step)
"""
)

WORK = {
    "train-small": (TRAIN, "small"),
    "train-rnnsearch": (TRAIN, "rnnsearch"),
    "attend-additive": (ATTEND, "additive"),
    "attend-scaled-dot": (ATTEND, "scaled-dot"),
    "translate-torch": (TRANSLATE, "torch"),
    "translate-onnx": (TRANSLATE, "onnx"),
    "translate-ctranslate2": (TRANSLATE, "ctranslate2"),
}
"""Programs by name, each with its first argument."""


def main() -> None:
    """Print the rate of each kind of work alone, and its share of it in company."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="model folder with all engines; without it nothing is translated")
    parser.add_argument("--source", help="file of sentences to translate, of which 64 are taken")
    parser.add_argument("--only", default=",".join(WORK), help="kinds of work, with commas between")
    parser.add_argument("--neighbours", default="0,2,4", help="numbers of busy loops, with commas between")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--quota", type=int, default=0, help="processors that a control group grants")
    parser.add_argument("--niceness", type=int, default=0, help="niceness of the neighbours, up to 19")
    options = parser.parse_args()
    numbers = [int(number) for number in options.neighbours.split(",")]
    cores = len(os.sched_getaffinity(0))
    for name in options.only.split(","):
        program, kind = WORK[name]
        more = [options.model, options.source] if name.startswith("translate") else []
        if None in more:
            continue
        call = [program, str(options.threads), str(options.seconds), kind, *more]
        rates = _rates(call, numbers, options.rounds, niceness=options.niceness)
        line = f"{name}: {rates[0]:,.0f} units/s alone" if 0 in rates else name
        for number in numbers:
            if number and 0 in rates:
                share, fair = rates[number] / rates[0], cores / (cores + number)
                line += f"; beside {number} {share:.0%} of that ({share / fair:.0%} of the fair share)"
            elif number:
                line += f"; beside {number} {rates[number]:,.0f} units/s"
        if options.quota:
            few = _rates([program, str(options.quota), *call[2:]], [0], options.rounds)[0]
            with _quota(options.quota) as limit:
                limited = _rates(call, [0], options.rounds, limit)[0]
            line += f"; in a quota of {options.quota} {limited / few:.0%} of --threads {options.quota}"
        print(line, flush=True)


def _rates(
    call: list[str], numbers: list[int], rounds: int, limit: list[str] | None = None, niceness: int = 0
) -> dict[int, float]:
    """Median rates of one process, by number of neighbours."""
    rates: dict[int, list[float]] = {number: [] for number in numbers}
    with ExitStack() as stack:
        worker = stack.enter_context(
            subprocess.Popen(
                [*(limit or []), sys.executable, "-c", *call], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        if worker.stdin is None or worker.stdout is None:
            raise SystemExit("a worker has no pipes")
        worker.stdout.readline()
        for _ in range(rounds):
            for number in numbers:
                with _neighbours(number, niceness):
                    print("go", file=worker.stdin, flush=True)
                    rates[number].append(float(worker.stdout.readline()))
        worker.stdin.close()
    return {number: statistics.median(series) for number, series in rates.items()}


@contextmanager
def _neighbours(number: int, niceness: int) -> Iterator[None]:
    """Run busy loops within a context."""
    loop = ["nice", "-n", str(niceness), sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(loop) for _ in range(number)]
    if number:
        time.sleep(0.5)
    try:
        yield
    finally:
        for each in loops:
            each.kill()
            each.wait()


@contextmanager
def _quota(processors: int) -> Iterator[list[str]]:
    """Command before a command, that runs it within a quota."""
    group = Path(f"/sys/fs/cgroup/cpu/heedful-{os.getpid()}")
    try:
        group.mkdir()
        (group / "cpu.cfs_quota_us").write_text(str(100_000 * processors))
    except OSError:
        yield ["taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:processors]))]
        return
    try:
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        # A group can be removed once its last process has ended.
        for _ in range(20):
            with suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


if __name__ == "__main__":
    main()
