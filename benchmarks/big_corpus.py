"""A corpus of many encoded pairs: seconds from the start of the process to the first training step, and memory.

    python benchmarks/big_corpus.py FOLDER [--pairs 10000000] [--steps 20]

Writes the encoded corpus into FOLDER (about 75 bytes a pair) unless it is there. A fresh process then opens it, plans
the epoch and takes steps of the small Transformer. Resident memory is told in two parts: what the process holds
(anonymous), and pages of mapped files, which the system takes back when it needs them.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

VOCABULARY = 8_000
PIECE = 1 << 18

WORKER = """
import json, sys, time
from pathlib import Path

def memory():
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    lines = dict(line.split(":", 1) for line in status.split("\\n") if line)
    return {name: int(lines[name].split()[0]) / 1024 for name in ("VmHWM", "VmRSS", "RssAnon", "RssFile")}

found = []
def note(what):
    since = time.clock_gettime(time.CLOCK_BOOTTIME) - began
    found.append({"what": what, "seconds": since, "cpu": time.process_time(), **memory()})

began = float(sys.argv[3])
import torch
from heedful.layers.cpu.accelerate import accelerate
from heedful.models.cpu_forms import CPU_FORMS
from heedful.models.transformer import PRESETS
from heedful.data.batching import PairSampler
from heedful.data.encoded import EncodedCorpus
from heedful.training.pair_step import PairStep
note("PyTorch loaded")
corpus = EncodedCorpus.read(Path(sys.argv[1]))
note("corpus opened")
sampler = PairSampler(corpus, 4096, 1)
batches = iter(sampler)
model = PairStep(PRESETS["small"].build(8_000, 8_000, True), 0.1)
accelerate(model, CPU_FORMS)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
first = next(batches)
note("first batch")
for step in range(int(sys.argv[2])):
    batch = next(batches) if step else first
    arrays = (batch.source, batch.source_lengths, batch.target_in, batch.target_out)
    (model(*map(torch.from_numpy, arrays)).total / batch.num_units).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if not step:
        note("first step")
note(f"{int(sys.argv[2])} steps")
print(json.dumps(found))
"""


def write_corpus(folder: Path, num_pairs: int) -> None:
    """Write pairs of random ids whose lengths go together as those of translations do, in constant memory."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    totals = {"source": 0, "target": 0}
    files = {f"{side}.{kind}": (folder / f"{side}.{kind}").open("wb") for side in totals for kind in ("ids", "offsets")}
    for side in totals:
        np.zeros(1, "<i8").tofile(files[f"{side}.offsets"])
    for start in range(0, num_pairs, PIECE):
        num = min(PIECE, num_pairs - start)
        source = np.clip(generator.gamma(9.0, 1.6, num).astype(int), 4, 60)
        target = np.clip((source * generator.normal(1.0, 0.18, num)).astype(int), 4, 60)
        for side, lengths in (("source", source), ("target", target)):
            generator.integers(4, VOCABULARY, int(lengths.sum()), dtype=np.uint16).tofile(files[f"{side}.ids"])
            (totals[side] + np.cumsum(lengths)).astype("<i8").tofile(files[f"{side}.offsets"])
            totals[side] += int(lengths.sum())
    for file in files.values():
        file.close()
    facts = {"dtype": "<u2", "num_pairs": num_pairs} | {f"num_{side}_ids": total for side, total in totals.items()}
    (folder / "encoded.json").write_text(json.dumps(facts), encoding="utf-8", newline="\n")


def main() -> None:
    """Write the corpus, measure in a process of its own, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    described = options.folder / "encoded.json"
    if not described.is_file() or json.loads(described.read_text(encoding="utf-8"))["num_pairs"] != options.pairs:
        write_corpus(options.folder, options.pairs)
    # A clock that both processes share: the start of Python is counted too.
    began = str(time.clock_gettime(time.CLOCK_BOOTTIME))
    command = [sys.executable, "-c", WORKER, str(options.folder), str(options.steps), began]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=os.environ, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    print(f"{options.pairs:,} pairs; MB resident now (held + pages of files), and at most so far")
    for line in json.loads(done.stdout):
        print(
            f"{line['what']:16}{line['seconds']:7.1f} s{line['cpu']:7.1f} s of CPU{line['VmRSS']:8,.0f} MB "
            f"({line['RssAnon']:,.0f} + {line['RssFile']:,.0f}), at most {line['VmHWM']:,.0f} MB"
        )


if __name__ == "__main__":
    main()
