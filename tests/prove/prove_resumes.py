"""Trainings under torchrun, killed and resumed at random, to the bits of one that never was: `make prove-resumes`.

A training of one kind (number of processes, one copy of the model each or sharded) is killed again and again, at a
random time and in a random way, until it reaches its last step; then the next one begins, until all kills are used up.
The bits of each, its losses and scores at every validation included, have to be those of an uninterrupted training.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path

from heedful.files.atomic_write import private_folder
from tests.prove.prove_checkpoints import Record, bits, newest, table
from tests.prove.prove_ddp import TIMED
from tests.prove.ranks import IS_POSSIBLE, REASON

WAYS = ("worker killed", "all killed", "launcher killed", "launcher stopped")
"""SIGKILL to a process, to all with their launcher, to the launcher alone; SIGTERM to it, as schedulers send it."""
START_SHARE = 0.1
"""Share of kills that come before the first step."""
SECONDS_OF_STEPS = 6.0
"""Latest kill after the first validation."""
DEADLINE = 300.0
ALLOCATOR = {"LD_PRELOAD": "libc_malloc_debug.so.0", "MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165"}
"""The C library's allocator checks its blocks and fills them when they are freed."""


class Training:
    """Command of one kind of training."""

    def __init__(self, root: Path, size: int, parallel: str, is_checked: bool) -> None:
        root.mkdir(parents=True)
        self._data = root / "words.tsv"
        letters = [[(7 * n + 3 * place) % 6 for place in range(2 + n % 7)] for n in range(199)]
        words = ["".join("abcdef"[each] for each in row) for row in letters]
        lines = [f"{word}{n}\t{word.upper()}{n}\n" for n, word in enumerate(words)]
        self._data.write_bytes("".join(lines).encode())
        self._size = size
        settings = f"parallel={parallel} export=false precision=float32 batch_tokens=96 validate_every=10 max_steps=150"
        settings += " optimizer.kind=adam optimizer.learning_rate=0.01"
        self._settings = [word for each in settings.split() for word in ("--set", f"training.{each}")]
        self._settings += ["--set", "model.kind=transformer", "--preset", "tiny"]
        self._environment = {**os.environ, "OMP_NUM_THREADS": "1"} | (ALLOCATOR if is_checked else {})

    def start(self, out: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(self._size)]
        command += ["-m", "heedful", "train", str(self._data), "--out", str(out), *self._settings]
        return subprocess.Popen(
            command,
            env=self._environment | {"PYTHONHASHSEED": "random"},
            stdout=subprocess.DEVNULL,
            stderr=out.with_suffix(".log").open("ab"),
            start_new_session=True,
        )


def ends(out: Path) -> dict[str, object]:
    """All that a training leaves, but times."""
    checkpoint = newest(out / "run" / "checkpoints")
    if checkpoint is None:
        return {}
    lines = (out / "run" / "metrics.jsonl").read_bytes().decode().split("\n")[:-1]
    metrics = [{key: value for key, value in json.loads(line).items() if key not in TIMED} for line in lines]
    return {key: value for key, value in bits(checkpoint).items() if key != "state"} | {"metrics": metrics}


def _num_lines(out: Path) -> int:
    path = out / "run" / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.is_file() else 0


class Members:
    """Launcher of a training and its processes, each of which has a session of its own: torchrun starts them so."""

    def __init__(self, launcher: "subprocess.Popen[bytes]", out: Path) -> None:
        self.launcher = launcher
        self._out = str(out).encode()
        self._known = {launcher.pid}

    def alive(self) -> list[int]:
        """Processes that have not ended, found by their command, which names the model folder."""
        self.launcher.poll()
        found: list[int] = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if self._out in (path / "cmdline").read_bytes().split(b"\0"):
                    self._known.add(int(path.name))
                fields = (path / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            # A process whose first thread has ended, whose command is empty then, holds its files until the others
            # have ended too.
            if int(path.name) in self._known and (fields[0] not in "ZX" or int(fields[17]) > 1):
                found.append(int(path.name))
        return sorted(found)

    def strike(self, way: str, generator: random.Random) -> None:
        workers = [pid for pid in self.alive() if pid != self.launcher.pid]
        chosen = {
            "worker killed": [generator.choice(workers)] if workers else [self.launcher.pid],
            "all killed": [*workers, self.launcher.pid],
        }.get(way, [self.launcher.pid])
        for pid in chosen:
            try:
                os.kill(pid, signal.SIGTERM if way == "launcher stopped" else signal.SIGKILL)
            except ProcessLookupError:
                pass

    def clear(self) -> bool:
        """Wait for the end of all processes, which a scheduler would bring about too; whether they ended alone."""
        until = time.monotonic() + DEADLINE
        while time.monotonic() < until:
            if not self.alive():
                return True
            time.sleep(0.05)
        for pid in self.alive():
            os.kill(pid, signal.SIGKILL)
        self.launcher.wait()
        return False


def _end_of_log(out: Path) -> str:
    return out.with_suffix(".log").read_text(encoding="utf-8", errors="replace")[-3000:]


def sweep(
    root: Path, training: Training, num_kills: int, generator: random.Random, record: Record, say: Callable[[str], None]
) -> None:
    """Kill and resume trainings of one kind, so many times in all."""
    whole = training.start(root / "whole")
    assert whole.wait(DEADLINE) == 0, (root / "whole.log").read_text(encoding="utf-8")[-2000:]
    wanted = ends(root / "whole")
    kills: list[str] = []
    used = number = 0
    while used < num_kills or kills:
        out = root / str(number)
        process = training.start(out)
        members = Members(process, out)
        is_last = used >= num_kills
        before, began = _num_lines(out), time.monotonic()
        is_early = generator.random() < START_SHARE
        if not is_last and is_early:
            time.sleep(generator.uniform(0.0, 8.0))
        elif not is_last:
            while _num_lines(out) <= before and process.poll() is None and time.monotonic() < began + DEADLINE:
                time.sleep(0.02)
            time.sleep(generator.uniform(0.0, SECONDS_OF_STEPS))
        if not is_last and process.poll() is None:
            way = generator.choice(WAYS)
            members.strike(way, generator)
            kills.append(way)
            used += 1
            if not members.clear():
                record.ask(False, f"{out}: processes remained after: {way}")
            continue
        code = process.wait(DEADLINE)
        members.clear()
        if code == 0 or is_last:
            is_well = code == 0 and ends(out) == wanted
            log = "" if is_well else _end_of_log(out)
            for _ in kills:
                record.ask(is_well, f"{out}: exit code {code} after {kills}: {log}")
            say(f"{out.name}: {len(kills)} kills, {'the same bits' if is_well else 'DIFFERENT'}; {used} in all")
            if is_well:
                shutil.rmtree(out)
            kills, number = [], number + 1
        else:
            record.ask(False, f"{out}: ended by itself with {code} after {kills}: {_end_of_log(out)}")
            kills, number = [], number + 1


def prove(
    say: Callable[[str], None], root: Path, num_kills: int, is_checked: bool, seed: int, only: Sequence[str]
) -> Mapping[str, Record]:
    """Sweep all kinds; kills in all."""
    records: dict[str, Record] = {}
    kinds = [(size, parallel) for size, parallel in product((2, 3), ("data", "sharded"))]
    names = {f"{parallel}, {size}": (size, parallel) for size, parallel in kinds}
    chosen = {name: kind for name, kind in names.items() if not only or name in only}
    for number, (name, (size, parallel)) in enumerate(chosen.items()):
        records[name] = Record()
        folder = root / name.replace(", ", "-")
        training = Training(folder, size, parallel, is_checked)
        share = num_kills * (number + 1) // len(chosen) - num_kills * number // len(chosen)
        sweep(folder, training, share, random.Random(f"{seed} {name}"), records[name], say)
        say(f"{name}: {records[name].num_cases} kills, {len(records[name].failures)} failed")
        for failure in records[name].failures:
            say(f"  {failure}")
    return records


def main(arguments: Sequence[str] | None = None) -> int:
    """Sweep and print the table.

    Returns:
        0 if every training ended with the right bits, else 1.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200, help="kills in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=(), metavar="KIND", help="such as 'sharded, 2'")
    parser.add_argument("--check-allocator", action="store_true", help="run under glibc's checking allocator (slower)")
    given = parser.parse_args(arguments)
    if not IS_POSSIBLE or not Path("/proc/self/stat").is_file():
        print(f"prove_resumes {REASON}, and /proc", file=sys.stderr)
        return 2
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {line}", file=sys.stderr, flush=True)

    with private_folder() as folder:
        records = prove(say, folder, given.kills, given.check_allocator, given.seed, given.only)
    print(table(records, time.monotonic() - began))
    return int(any(each.failures for each in records.values()))


if __name__ == "__main__":
    sys.exit(main())
