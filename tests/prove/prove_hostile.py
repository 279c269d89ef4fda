"""Damaged files, full disks, kills, odd options and closed streams, for every command: `make prove-hostile`.

A case fails if the command ends with exit code 1, prints a traceback, dies of a signal that it was not sent, takes more
than 30 s or 1 GB, refuses without a line that says why, or gives other results than an undisturbed run without saying
so. The table counts cases and failures by family; each failure is printed with the command that repeats it.
"""

import argparse
import fnmatch
import importlib
import os
import random
import re
import shlex
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tests.prove.hostile_cases import Case, Command, all_cases, fingerprint
from tests.prove.hostile_files import make_all
from tests.prove.hostile_process import BYTES, PLAIN, SECONDS, Outcome, Run

CODES: Final = frozenset((0, 2, 3, 4, 5, 6, 130, 141, 143))
"""Exit codes of a command that works as it should."""
_NUMBERS: Final = re.compile(r"[\d.,]+")


@dataclass
class Tally:
    """Cases and failures so far."""

    cases: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[Case, str]] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")
    largest: tuple[int, str] = (0, "")


class Server:
    """Process that forks for each case, after all modules were imported once."""

    def __init__(self, root: Path, seed: int = 1) -> None:
        """Make the files that the commands read.

        Args:
            root: an empty folder for them and for the cases.
            seed: of the damages.
        """
        self.root: Final = root
        self.files: Final = root / "files"
        self._seed: Final = seed
        self._usual: Final[dict[str, tuple[Outcome, dict[str, str]]]] = {}
        self.full: Final = _device(root / "full", 7)
        self.null: Final = _device(root / "null", 3)

    def make(self, make: Callable[[Path], None] = make_all) -> None:
        """Make the files and folders that commands read.

        Args:
            make: what makes them.
        """
        self.files.mkdir(parents=True)
        _import_all()
        make(self.files)

    def judge(self, case: Case, keep: bool = False) -> tuple[str, Outcome | None]:
        """Run a case.

        Args:
            case: the case.
            keep: whether its folder stays.

        Returns:
            What is wrong (empty = nothing), and how the command ended; None where the case could not be set up.
        """
        folder = self._copied(case.command, "case")
        try:
            draw = random.Random(f"{self._seed} {case.name}")
            if not case.prepare(folder, draw):
                return "", None
            outcome = self._run(case, folder)
            return self._fault(case, outcome, folder), outcome
        finally:
            if not keep:
                shutil.rmtree(folder, ignore_errors=True)

    def _copied(self, command: Command, name: str) -> Path:
        folder = self.root / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for need in command.needs:
            path = self.files / need
            (folder / need).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / need)
        return folder

    def _run(self, case: Case, folder: Path) -> Outcome:
        beside = Run(case.words, folder, self.root / "streams-beside") if case.beside else None
        words = case.words
        if case.about.without_folder:
            words = tuple(str(folder / word) if word in case.command.needs else word for word in words)
            folder = folder / "gone"
            folder.mkdir()
        outcome = Run(words, folder, self.root / "streams", case.about, is_real=case.is_real).wait()
        if beside is not None:
            other = beside.wait()
            if {outcome.code, other.code} - {0, 2} or min(outcome.code, other.code):
                return replace(max(outcome, other, key=lambda each: each.code), code=max(outcome.code, other.code) or 1)
            return outcome if outcome.code == 0 else other
        return outcome

    def _fault(self, case: Case, outcome: Outcome, folder: Path) -> str:
        if fault := fault_of(case, outcome) or case.check(folder):
            return fault
        if case.then:
            outcome = Run(case.words, folder, self.root / "streams").wait()
            is_there = outcome.code == 2 and "exists" in outcome.message  # then it must be as it should be
            if outcome.code and not is_there:
                return f"again: exit {outcome.code}: {outcome.message}"
        elif not (case.is_compared or case.beside) or outcome.code:
            return ""
        usual, results = self.usual(case.command)
        found = fingerprint(case.command, folder, outcome.out)
        differing = [name for name in results if found[name] != results[name] and not (case.then and name == _OUT)]
        if not differing or (not case.then and _says_more(outcome, usual)):
            return ""
        return f"silent difference of {', '.join(differing)}"

    def usual(self, command: Command) -> tuple[Outcome, dict[str, str]]:
        """End and results of a command without a fault.

        Raises:
            RuntimeError: it failed.
        """
        if command.name not in self._usual:
            folder = self._copied(command, "usual")
            outcome = Run(command.arguments, folder, self.root / "streams", PLAIN).wait()
            if outcome.code:
                raise RuntimeError(f"{command.name}: exit {outcome.code}: {outcome.err.decode()}")
            self._usual[command.name] = outcome, fingerprint(command, folder, outcome.out)
            shutil.rmtree(folder)
        return self._usual[command.name]


_OUT: Final = "standard output"


def fault_of(case: Case, outcome: Outcome) -> str:
    """What is wrong with the end of a command in itself; empty = nothing."""
    err = outcome.err.decode("utf-8", "replace")
    if outcome.is_killed:
        return f"more than {BYTES >> 20} MiB" if outcome.most_bytes > BYTES else f"more than {SECONDS:.0f} s"
    # Ctrl-C before anything of heedful is imported is the interpreter's to report.
    if case.about.signal == signal.SIGINT and "KeyboardInterrupt" in err and not re.search(r"heedful/(cli|__)", err):
        return ""
    if "Traceback (most recent call last)" in err + outcome.out.decode("utf-8", "replace"):
        return f"traceback: {outcome.message}"
    sent = {-case.about.signal} if case.about.killed_after >= 0 else set[int]()
    if outcome.code not in CODES | sent:
        return f"exit {outcome.code}: {outcome.message}"
    is_heard = case.about.stderr == "file" and outcome.code in (2, 3, 4, 5, 6)
    is_check = case.words[:1] == ("check",) and outcome.out
    if is_heard and not is_check and "heedful: error: " not in err:
        return f"exit {outcome.code} without a line that says why: {outcome.message}"
    return ""


def _says_more(outcome: Outcome, usual: Outcome) -> bool:
    """Whether standard error has a line that an undisturbed run does not have, whatever its numbers."""
    now, before = (
        {_NUMBERS.sub("", line) for line in each.err.decode("utf-8", "replace").split("\n")}
        for each in (outcome, usual)
    )
    return bool(now - before)


def _device(path: Path, minor: int) -> Path:
    """A device of our own, so that no case can harm those of the machine; the machine's where that is not allowed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        return Path("/dev/full" if minor == 7 else "/dev/null")
    return path


def _import_all() -> None:
    """Import what the commands import, so that each case only forks."""
    from heedful.cli.main import COMMANDS, RENAMED

    names = [f"heedful.cli.{RENAMED.get(name, name)}" for name in COMMANDS]
    package = Path(importlib.import_module("heedful").__file__ or "").parent
    for folder in (
        "training",
        "models",
        "runtime",
        "predictors",
        "tasks",
        "comparison",
        "export",
        "pages",
        "evaluation",
    ):
        names += [f"heedful.{folder}.{path.stem}" for path in (package / folder).glob("[a-z]*.py")]
    for name in (*names, "sacrebleu", "numba", "onnxruntime", "ctranslate2", "transformers", "onnxscript"):
        try:
            importlib.import_module(name)
        except ImportError:
            continue


def sweep(server: Server, cases: Iterable[Case], tally: Tally, is_telling: bool = False) -> None:
    """Run cases.

    Args:
        server: with its files made.
        cases: the cases.
        tally: counts.
        is_telling: whether failures are printed as they come.
    """
    for case in cases:
        family = case.name.partition("/")[0]
        if is_telling and tally.cases.total() % 500 == 499:
            print(f"{tally.cases.total() + 1:,} cases, {len(tally.failures)} failed", flush=True)
        fault, outcome = server.judge(case)
        if outcome is None:
            tally.skipped[family] += 1
            continue
        tally.cases[family] += 1
        tally.slowest = max(tally.slowest, (outcome.seconds, case.name))
        tally.largest = max(tally.largest, (outcome.most_bytes, case.name))
        if fault:
            tally.failures.append((case, fault))
            if is_telling:
                print(f"{case.name}: {fault[:400]}\n  {repeat(case)}", flush=True)


def repeat(case: Case) -> str:
    """Command line that repeats a case."""
    return f"python -m tests.prove.prove_hostile --keep --only {shlex.quote(case.name)}"


def chosen(cases: Sequence[Case], only: Sequence[str], limit: int, shard: str, seed: int) -> list[Case]:
    """Cases that the options select, in random order, so that a part of them is like the whole.

    Args:
        cases: all cases.
        only: patterns of names; empty = all.
        limit: most cases; 0 = all.
        shard: as in 1/4, the first of four parts.
        seed: of the order.
    """
    some = [case for case in cases if not only or any(_is_named(case, pattern) for pattern in only)]
    random.Random(seed).shuffle(some)
    number, _, parts = shard.partition("/")
    return some[: limit or None][int(number) - 1 :: int(parts)]


def _is_named(case: Case, pattern: str) -> bool:
    return case.name == pattern or fnmatch.fnmatchcase(case.name, pattern)


def main() -> int:
    """Run the sweep; the exit code is 1 if a case failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=(), metavar="PATTERN", help="names of cases, as 'read/info/*'")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="at most N cases")
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="part I of N")
    parser.add_argument("--seed", type=int, default=1, help="seed of damages and of the order")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the last case, and print its messages")
    parser.add_argument("--list", action="store_true", help="print the names of the cases only")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    root = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        return _prove(Server(root, options.seed), options)
    finally:
        if not options.keep:
            shutil.rmtree(root, ignore_errors=True)


def _prove(server: Server, options: argparse.Namespace) -> int:
    started = time.monotonic()
    server.make()
    every = all_cases(server.files, server.full, server.null)
    cases = chosen(every, options.only, options.limit, options.shard, options.seed)
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    if options.keep and cases:
        fault, outcome = server.judge(cases[-1], keep=True)
        print(f"{server.root}/case: heedful {shlex.join(cases[-1].words)}\n{outcome}\n{fault or 'as it should be'}")
        return int(bool(fault))
    tally = Tally()
    try:
        sweep(server, cases, tally, is_telling=True)
    finally:
        print(table(tally))
        minutes = (time.monotonic() - started) / 60.0
        print(f"{tally.cases.total():,} cases of {len(every):,} in {minutes:.1f} minutes")
    return int(bool(tally.failures))


def table(tally: Tally) -> str:
    """Cases and failures by family."""
    failed = Counter(case.name.partition("/")[0] for case, _ in tally.failures)
    rows = [
        f"| {name} | {count:,} | {tally.skipped[name]:,} | {failed[name]:,} |"
        for name, count in sorted(tally.cases.items())
    ]
    kinds = Counter(_kind(fault) for _, fault in tally.failures)
    return "\n".join(
        [
            "| family | cases | not possible here | failed |\n|---|---|---|---|",
            *rows,
            *(f"{count:,} x {kind}" for kind, count in kinds.most_common()),
            f"slowest: {tally.slowest[0]:.1f} s, {tally.slowest[1]}",
            f"largest: {tally.largest[0] >> 20} MiB, {tally.largest[1]}",
        ]
    )


def _kind(fault: str) -> str:
    return fault.partition(":")[0].partition(" of ")[0]


if __name__ == "__main__":
    sys.exit(main())
