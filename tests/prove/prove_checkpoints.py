"""Kills, full disks, power cuts and damage at every point of a training's saves: `make prove-checkpoints`.

Each sweep ends with the same question: is what the folder gives back, bit for bit, something that was saved, and not
older than the last save that was done? The table shows how often it was asked, and how often the answer was no.
"""

import argparse
import errno
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import torch
from torch import Tensor

from heedful.errors import HeedfulError, Stopped
from heedful.files.atomic_write import private_folder
from heedful.training.checkpoint import Checkpoint, CheckpointFolder
from heedful.training.config import TrainingConfig
from heedful.training.loop import Trainer
from heedful.training.progress import Validation
from tests.prove.disk import DEAD, Call, calls, die_at, without_waiting
from tests.prove.task_trainings import TASKS, parts

ERRORS = (errno.ENOSPC, errno.EIO)
KEPT = 2


@dataclass
class Record:
    """What a sweep met."""

    num_cases: int = 0
    failures: list[str] = field(default_factory=list)

    def ask(self, is_well: bool, what: str) -> None:
        """Count a case."""
        self.num_cases += 1
        if not is_well:
            self.failures.append(what)


def make(step: int) -> Checkpoint:
    """A small checkpoint in which every number tells of its step."""
    numbers = torch.arange(40.0).reshape(8, 5) + 1000.0 * step
    tensors = {
        "model": {"weight": numbers, "bias": numbers[0] / 3.0},
        "average": {"weight": numbers / 7.0},
        "optimizer": {"weight.step": torch.tensor(float(step)), "weight.exp_avg": numbers.double() / 9.0},
    }
    return Checkpoint(step, tensors, {"step": step, "best": -float("inf"), "seconds": step / 3.0})


def bits(checkpoint: Checkpoint) -> dict[str, object]:
    """All of a checkpoint, for comparing."""
    held = {
        f"{group}/{name}": (str(tensor.dtype), tensor.numpy().tobytes())
        for group, tensors in checkpoint.tensors.items()
        for name, tensor in tensors.items()
    }
    return {**held, "step": checkpoint.step, "state": dict(checkpoint.state)}


def newest(path: Path) -> Checkpoint | None:
    """What a training would go on from; None also where that is refused."""
    try:
        return CheckpointFolder(path, warn=lambda line: None).load_newest()
    except HeedfulError:
        return None


def loads(path: Path, steps: Sequence[int], at_least: int) -> bool:
    """Whether the newest checkpoint is one that was saved, whole, and none older than the last that is sure.

    `steps` empty and `at_least` 0: nothing was ever saved, so nothing may be refused either.
    """
    found = newest(path)
    if found is None:
        return at_least == 0 and not _names(path)
    return found.step in steps and found.step >= at_least and bits(found) == bits(make(found.step))


def _names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir() if entry.name.isdecimal()) if path.is_dir() else []


# ----------------------------------------------------------------------------------------------- calls of a save


def damage_all(path: Path) -> None:
    """Make a checkpoint one that will be passed over."""
    (path / "state.json").write_bytes(b"{}")


@dataclass(frozen=True)
class Phase:
    """A folder as it may be when a save begins."""

    name: str
    saved: tuple[int, ...]
    damaged: tuple[int, ...] = ()
    step: int = 7
    """To be saved."""

    @property
    def sure(self) -> int:
        return max((step for step in self.saved if step not in self.damaged), default=0)

    def prepare(self, root: Path) -> Path:
        path = root / "run" / "checkpoints"
        path.parent.mkdir(parents=True)
        for step in self.saved:
            CheckpointFolder(path, num_kept=9).save(make(step))
        for step in self.damaged:
            damage_all(path / f"{step:06d}")
        if self.saved:
            shutil.copytree(path / f"{self.saved[0]:06d}", path / ".000003-1")  # of a run that was killed
        return path


PHASES = (
    Phase("first", ()),
    Phase("second", (2,)),
    Phase("deleting", (2, 4)),
    Phase("over a damaged one", (2, 4, 7), (7,)),
    Phase("before damaged ones", (2, 4, 8, 9), (8, 9)),
)


def _after(phase: Phase, path: Path) -> bool:
    """Whether what a fault left is sound, also for the saves that follow."""
    sure = phase.sure
    if not loads(path, (sure, phase.step), sure):
        return False
    found = newest(path)
    step = max(phase.step, found.step if found else 0) + 3
    for later in (step, step + 1):
        CheckpointFolder(path, warn=lambda line: None).save(make(later))
    rubbish = [entry.name for entry in path.iterdir() if entry.name.startswith(".")]
    return _names(path) == [f"{s:06d}" for s in (step, step + 1)] and loads(path, (step + 1,), step + 1) and not rubbish


@without_waiting()
def sweep_kills(root: Path, record: Record, with_power: bool = False) -> None:
    """Die at every call of a save, in every phase; with power also lose what was not synced."""
    for phase in PHASES:
        for number in count():
            folder = root / f"{phase.name} {number}"
            path = phase.prepare(folder)
            status = die_at(number, lambda path=path, phase=phase: _save(path, phase.step), with_power)
            what = f"{'power cut' if with_power else 'kill'} at call {number} of the save '{phase.name}'"
            is_well = status in (0, DEAD) and (status == DEAD or loads(path, (phase.step,), phase.step))
            record.ask(is_well and _after(phase, path), what)
            shutil.rmtree(folder)
            if status != DEAD:
                break


def _save(path: Path, step: int) -> None:
    CheckpointFolder(path, warn=lambda line: None).save(make(step))


@without_waiting()
def sweep_errors(root: Path, record: Record) -> None:
    """Let every call of a save fail, alone and with all calls after it that write."""
    for phase in PHASES:
        for number in ERRORS:
            for lasts in (False, True):
                for place in count():
                    folder = root / f"{phase.name} {number} {lasts} {place}"
                    path = phase.prepare(folder)
                    num_calls, is_clean = _save_failing(path, phase.step, number, place, lasts)
                    what = f"{errno.errorcode[number]}{' for good' if lasts else ''} at call {place} of '{phase.name}'"
                    record.ask(is_clean and _after(phase, path), what)
                    shutil.rmtree(folder)
                    if num_calls <= place:
                        break


def _save_failing(path: Path, step: int, number: int, place: int, lasts: bool) -> tuple[int, bool]:
    """Save; how many calls there were, and whether it ended in an error of ours or in a checkpoint."""
    seen = 0

    def see(call: Call) -> None:
        nonlocal seen
        seen += 1
        if seen - 1 == place or (lasts and seen > place and call.name in ("open", "write", "mkdir", "fsync")):
            call.fail(number)

    with calls(see):
        try:
            _save(path, step)
        except HeedfulError:
            return seen, True
        except OSError:
            return seen, False
    return seen, loads(path, (step,), step)


# ------------------------------------------------------------------------------------------------------- kills


def sweep_random_kills(root: Path, num_cases: int, chance: random.Random, record: Record) -> None:
    """SIGKILL at random times a process that does nothing but save; each goes on where the one before was killed."""
    path = root / "run" / "checkpoints"
    for number in range(num_cases):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            _save_forever(path, writer)
        os.close(writer)
        time.sleep(chance.uniform(0.001, 0.03))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with os.fdopen(reader) as stream:
            done = [int(line) for line in stream.read().split()]
        sure = max(done, default=0)
        found = newest(path)
        is_well = sure == 0 if found is None else found.step >= sure and bits(found) == bits(make(found.step))
        record.ask(is_well, f"random kill {number}, step {sure}")


def _save_forever(path: Path, writer: int) -> None:
    try:
        found = newest(path)
        begun = found.step if found else 0
        os.write(writer, f"{begun}\n".encode())
        for step in count(begun + 1):
            _save(path, step)
            os.write(writer, f"{step}\n".encode())
    finally:
        os._exit(1)


# ------------------------------------------------------------------------------------------------------ damage


@without_waiting()
def sweep_damage(
    root: Path, num_flips: int, num_cuts: int, chance: random.Random, records: Mapping[str, Record]
) -> None:
    """Flip bits of, and cut, the files of the newest checkpoint: it is named, and the one before it taken."""
    path = root / "run" / "checkpoints"
    for step in (5, 6):
        _save(path, step)
    files = sorted((path / "000006").iterdir())
    for number in range(num_flips + num_cuts):
        file = files[number % len(files)]
        whole = file.read_bytes()
        place = chance.randrange(len(whole))
        if number < num_flips:
            bit = 1 << chance.randrange(8)
            damaged = whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :]
        else:
            damaged = whole[:place]
        file.write_bytes(damaged)
        said: list[str] = []
        found = CheckpointFolder(path, warn=said.append).load_newest()
        is_well = found is not None and bits(found) == bits(make(5)) and len(said) == 1 and "000006" in said[0]
        kind = "bit flips" if number < num_flips else "truncations"
        records[kind].ask(is_well, f"{kind}: {file.name}, byte {place}")
        file.write_bytes(whole)


# ------------------------------------------------------------------------------------------------------ resume


class Toy:
    """A tiny training: 3 epochs of so many steps together, with dropout, averages, validations, a best model."""

    def __init__(self, num_steps: int, kind: str = "transformer-post") -> None:
        self.num_steps = num_steps
        self.kind = kind

    def train(self, folder: Path, stop: int = 0) -> bool:
        """Train, or go on; stop by a signal within a step.

        Returns:
            Whether it was stopped.
        """
        config = TrainingConfig.model_validate(
            {
                "batch_tokens": 28,
                "validate_every": max(2, self.num_steps // 12),
                "select_by": "loss",
                "precision": "float32",
                "patience": 1000,
                "max_steps": self.num_steps,
                "optimizer": {"learning_rate": 0.01, "schedule": {"warmup_steps": 4}},
            }
        )

        torch.manual_seed(7)
        own = parts(self.kind, config, 4 * -(-self.num_steps // 3), True, torch.float32)
        torch.manual_seed(random.randrange(1 << 30))  # what a new process would have is none of ours

        def keep(weights: Mapping[str, Tensor]) -> None:
            torch_bytes = b"".join(tensor.detach().numpy().tobytes() for tensor in weights.values())
            (folder / "best").write_bytes(torch_bytes)

        trainer = Trainer(
            own.make_step(own.model),
            config,
            own.sampler,
            folder,
            _validation,
            False,
            keep,
            lambda progress: None,
            lambda line: None,
        )

        checkpoint = newest(folder / "checkpoints")
        step = checkpoint.step if checkpoint else 0

        def send(module: torch.nn.Module, given: object) -> None:
            nonlocal step
            step += module.training
            if module.training and step == stop:
                os.kill(os.getpid(), signal.SIGTERM)

        own.model.register_forward_pre_hook(send)
        try:
            trainer.run()
        except Stopped:
            return True
        return False

    def result(self, folder: Path) -> dict[str, object]:
        """Weights, average, optimizer, state, metrics and best model at the end of a training."""
        checkpoint = newest(folder / "checkpoints")
        if checkpoint is None:
            return {}
        timed = ("seconds", "update_seconds", "tokens_per_second", "loss", "sha256")
        state = {key: value for key, value in checkpoint.state.items() if key not in timed}
        lines = (folder / "metrics.jsonl").read_bytes().decode().split("\n")[:-1]
        metrics = [{key: value for key, value in json.loads(line).items() if key not in timed} for line in lines]
        best = (folder / "best").read_bytes()
        return bits(checkpoint) | {"state": state, "metrics": metrics, "best": best}


def _validation(model: torch.nn.Module) -> Validation:
    total = sum(float(parameter.double().square().sum()) for parameter in model.parameters())
    return Validation({"loss": total}, ("a", "b", "c"))


@without_waiting()
def sweep_resume(
    root: Path,
    stops: Iterator[tuple[int, ...]],
    num_steps: int,
    records: Mapping[str, Record],
    kind: str = "transformer-post",
) -> None:
    """Stop a training in so many of its steps; at its end all is as if it had never been stopped."""
    toy = Toy(num_steps, kind)
    (root / "whole").mkdir(parents=True)
    toy.train(root / "whole")
    wanted = toy.result(root / "whole")
    for number, each in enumerate(stops):
        folder = root / str(number)
        folder.mkdir()
        was_stopped = [toy.train(folder, stop) for stop in (*each, 0)]
        is_well = was_stopped == [True] * len(each) + [False] and toy.result(folder) == wanted
        records[f"resumed {len(each)}x" if len(each) <= 3 else "resumed at all"].ask(
            is_well, f"resume: {kind}, stopped at {each}"
        )
        shutil.rmtree(folder)


def stops(num_steps: int, num_single: int, num_more: int, chance: random.Random) -> Iterator[tuple[int, ...]]:
    """All steps in one training; every step once, or some of them; and pairs and triples of steps."""
    last = num_steps - 1
    single = range(1, num_steps) if num_single >= last else chance.sample(range(1, num_steps), num_single)
    yield tuple(range(1, num_steps))
    yield from ((step,) for step in single)
    for number in range(num_more):
        yield tuple(sorted(chance.sample(range(1, num_steps), 2 + number % 2)))


@without_waiting()
def sweep_killed_training(
    root: Path,
    num_steps: int,
    num_kills: int,
    chance: random.Random,
    record: Record,
    kind: str = "transformer-post",
) -> None:
    """SIGKILL a training at random times until it comes to its end; at its end all is as if it never had been."""
    toy = Toy(num_steps, kind)
    (root / "whole").mkdir(parents=True)
    began = time.monotonic()
    toy.train(root / "whole")
    seconds = time.monotonic() - began
    wanted = toy.result(root / "whole")
    for number in range(num_kills):
        folder = root / str(number)
        folder.mkdir()
        is_done = False
        for attempt in range(4):
            pid = os.fork()
            if pid == 0:
                try:
                    toy.train(folder)
                    os._exit(0)
                finally:
                    os._exit(1)
            if attempt < 3:
                time.sleep(chance.uniform(0.0, 1.0) * seconds)
                os.kill(pid, signal.SIGKILL)
            is_done = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        record.ask(is_done and toy.result(folder) == wanted, f"{kind}: training {number}, killed up to 3 times")
        shutil.rmtree(folder)


# -------------------------------------------------------------------------------------------------------- all


@dataclass(frozen=True)
class Sizes:
    """How much is tried of what has no end."""

    num_kills: int = 1000
    num_flips: int = 2000
    num_cuts: int = 1000
    num_steps: int = 200
    num_single: int = 1000
    """Stops at one step; every step once where there are no more."""
    num_more: int = 40
    """Stops at two and three steps."""
    num_steps_of_task: int = 24
    """Length of the trainings of tasks other than translation, each stopped at every step."""
    num_more_of_task: int = 6
    num_killed: int = 40
    """Trainings killed at random times."""
    num_killed_of_task: int = 20
    """The same of each task other than translation."""


def prove(sizes: Sizes, seed: int, say: Callable[[str], None] = lambda line: None) -> dict[str, Record]:
    """All sweeps.

    Returns:
        What each met, by name.
    """
    names = ("kills", "power cuts", "errors", "random kills", "bit flips", "truncations")
    records = {
        name: Record()
        for name in (*names, "resumed at all", "resumed 1x", "resumed 2x", "resumed 3x", "killed trainings", *TASKS)
    }
    chance = random.Random(seed)
    each = stops(sizes.num_steps, sizes.num_single, sizes.num_more, chance)
    torch.set_num_threads(1)  # a forked child has none of the others
    with private_folder() as root:
        sweep_kills(root / "a", records["kills"])
        sweep_kills(root / "b", records["power cuts"], with_power=True)
        say("calls")
        sweep_errors(root / "c", records["errors"])
        say("errors")
        sweep_random_kills(root / "d", sizes.num_kills, chance, records["random kills"])
        sweep_damage(root / "e", sizes.num_flips, sizes.num_cuts, chance, records)
        say("damage")
        sweep_resume(root / "f", each, sizes.num_steps, records)
        for kind in TASKS:
            few = stops(sizes.num_steps_of_task, sizes.num_single, sizes.num_more_of_task, chance)
            names_of_stops = ("resumed at all", "resumed 1x", "resumed 2x", "resumed 3x")
            own = dict.fromkeys(names_of_stops, records[kind])
            sweep_resume(root / kind, few, sizes.num_steps_of_task, own, kind)
        say("resume")
        killed = records["killed trainings"]
        sweep_killed_training(root / "g", sizes.num_steps, sizes.num_killed, chance, killed)
        for kind in TASKS:
            own_root = root / f"killed-{kind}"
            sweep_killed_training(own_root, sizes.num_steps, sizes.num_killed_of_task, chance, killed, kind)
    return records


def table(records: Mapping[str, Record], seconds: float) -> str:
    """What was met, a line for each sweep."""
    width = max(18, *(len(name) for name in records))
    lines = [f"{'sweep':<{width}}{'cases':>8}{'failed':>8}"]
    lines += [f"{name:<{width}}{each.num_cases:>8}{len(each.failures):>8}" for name, each in records.items()]
    lines.append(f"{sum(each.num_cases for each in records.values())} cases, {seconds:.0f} s")
    return "\n".join([*lines, *(failure for each in records.values() for failure in each.failures[:5])])


def main(arguments: Sequence[str] | None = None) -> int:
    """Sweep and print the table.

    Returns:
        0 if nothing was lost, else 1.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, size in vars(Sizes()).items():
        parser.add_argument(f"--{name.removeprefix('num_')}", dest=name, type=int, default=size, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    given = vars(parser.parse_args(arguments))
    seed = given.pop("seed")
    began = time.monotonic()
    records = prove(Sizes(**given), seed, lambda line: print(line, file=sys.stderr, flush=True))
    print(table(records, time.monotonic() - began))
    return int(any(each.failures for each in records.values()))


if __name__ == "__main__":
    sys.exit(main())
