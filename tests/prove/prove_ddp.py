"""One training by several processes: equal to one process, and nothing lost when one of them dies: `make prove-ddp`."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from fnmatch import fnmatchcase
from functools import partial
from itertools import product
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor, nn

from heedful.files.atomic_write import private_folder
from heedful.training import distributed
from heedful.training.checkpoint import CheckpointFolder
from heedful.training.config import TrainingConfig
from heedful.training.distributed import Ranks, SingleProcess
from heedful.training.likelihood import log_likelihood
from heedful.training.loop import Trainer
from heedful.training.progress import Validation
from heedful.training.train_state import StepSums
from tests.models.tiny import CONFIGS
from tests.prove.disk import without_waiting
from tests.prove.prove_checkpoints import Record, bits, newest, table
from tests.prove.ranks import IS_POSSIBLE, REASON, Ended, free_port, launch
from tests.prove.task_trainings import TASKS, parts

TIMED = ("seconds", "update_seconds", "tokens_per_second", "loss", "sha256")
PHASES = ("forward", "backward", "gather", "step", "validation", "save")
WAYS = ("kill", "error")
SURVIVE_SECONDS = 60.0
"""In which all have to be gone after one is."""
GROUPS = {"pairs": tuple(CONFIGS), "tasks": tuple(TASKS)}
"""Kinds of trainings that are compared with one process: models that translate, and the other tasks."""
DYING = ("transformer-post", *TASKS)
"""Kinds of trainings in which processes die."""
DIFFERENCE = "of difference"


class Planned(Exception):
    """An error in one process, as a bug would raise it."""


@dataclass(frozen=True)
class Doom:
    """One process that dies, and when: after the checkpoint of step 5, so that what follows is resumed from it."""

    rank: int
    phase: str
    way: str = "kill"

    @property
    def step(self) -> int:
        return 10 if self.phase in ("validation", "save") else 7

    def strike(self) -> None:
        if self.way == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.way == "hang":
            os.kill(os.getpid(), signal.SIGSTOP)
        raise Planned


@dataclass(frozen=True)
class Toy:
    """A tiny training, in float64 if nothing else is said; batches of very few rows: uneven shares, and empty ones."""

    kind: str = "transformer-post"
    has_chance: bool = True
    num_steps: int = 12
    batch_tokens: int = 12
    settings: Mapping[str, object] = field(default_factory=dict)
    dtype: torch.dtype = torch.float64

    def trainer(self, folder: Path, ranks: Ranks, doom: Doom | None = None) -> Trainer:
        training = TrainingConfig.model_validate(
            {
                "batch_tokens": self.batch_tokens,
                "validate_every": 5,
                "select_by": "loss",
                "precision": "float32",
                "max_steps": self.num_steps,
                "optimizer": {"kind": "sgd", "learning_rate": 0.5},
                **self.settings,
            }
        )
        torch.manual_seed(7 + ranks.place.rank)  # the first one's weights count
        own = parts(self.kind, training, 24, self.has_chance, self.dtype)
        batches = [own.sampler.collect(indices) for indices in own.sampler.plan(0)]
        is_doomed = doom is not None and doom.rank == ranks.place.rank

        def validate(model: nn.Module) -> Validation:
            if doom is not None and is_doomed and doom.phase == "validation" and trainer._state.step == doom.step:
                doom.strike()
            return Validation({"loss": log_likelihood(own.make_step(model), batches).loss}, ("a", "b", "c"))

        def keep(weights: Mapping[str, Tensor]) -> None:
            content = b"".join(tensor.detach().numpy().tobytes() for tensor in weights.values())
            (folder / "best").write_bytes(content)

        trainer = Trainer(
            own.make_step(own.model),
            training,
            own.sampler,
            folder,
            validate,
            False,
            keep,
            lambda progress: None,
            lambda line: None,
            ranks,
        )
        if doom is not None and is_doomed:
            _plan(trainer, doom)
        return trainer

    def train(self, folder: Path, size: int, doom: Doom | None = None) -> Ended:
        """Train in so many processes; the first writes the loss of each step to `losses`."""

        def body(ranks: Ranks) -> None:
            with without_waiting():
                trainer = self.trainer(folder, ranks, doom)
                losses = noted_losses(trainer)
                trainer.run()
            if ranks.is_first:
                (folder / "losses").write_text(json.dumps([loss.hex() for loss in losses]), encoding="utf-8")

        return launch(size, body, hung=doom.rank if doom and doom.way == "hang" else -1)


def noted_losses(trainer: Trainer) -> list[float]:
    """The loss of each step that is yet to come."""
    losses: list[float] = []
    known = trainer._train_state.differentiate

    def noted(*given: object) -> StepSums:
        found = known(*given)  # type: ignore[arg-type]
        losses.append(found.read()[0])
        return found

    trainer._train_state.differentiate = noted  # type: ignore[method-assign]
    return losses


def _plan(trainer: Trainer, doom: Doom) -> None:
    """Have a process die in a phase of a step."""

    def is_due() -> bool:
        return trainer._state.step == doom.step

    def before(target: object, name: str) -> None:
        known = getattr(target, name)

        def doomed(*given: object, **options: object) -> object:
            if is_due():
                doom.strike()
            return known(*given, **options)

        setattr(target, name, doomed)

    model = trainer._train_state.model
    match doom.phase:
        case "forward":
            model.register_forward_pre_hook(lambda module, given: doom.strike() if is_due() else None)
        case "backward":

            def watch(module: object, given: object, output: object) -> None:
                for tensor in _trained_tensors(output):
                    tensor.register_hook(lambda gradient: doom.strike() if is_due() else None)

            model.register_forward_hook(watch)
        case "gather":
            before(trainer._ranks, "gather")
        case "step":
            before(trainer._train_state.optimizer, "step")
        case "validation" if doom.rank:
            before(trainer, "_validate_now")  # while the first validates, it waits
        case "save" if doom.rank:
            before(trainer, "_save")
        case "save":
            before(trainer._storage._checkpoints, "save")
        case _:
            pass


def _trained_tensors(output: object) -> list[Tensor]:
    """Tensors with a gradient in the output of a model, whatever its task."""
    if isinstance(output, Tensor):
        return [output] if output.requires_grad else []
    values = vars(output).values() if is_dataclass(output) else output if isinstance(output, tuple) else ()
    return [tensor for value in values for tensor in _trained_tensors(value)]


def result(folder: Path) -> dict[str, object]:
    """Weights, average, optimizer, state, metrics and best model at the end of a training."""
    checkpoint = newest(folder / "checkpoints")
    if checkpoint is None:
        return {}
    state = {key: value for key, value in checkpoint.state.items() if key not in TIMED}
    lines = (folder / "metrics.jsonl").read_bytes().decode().split("\n")[:-1]
    metrics = [{key: value for key, value in json.loads(line).items() if key not in TIMED} for line in lines]
    return bits(checkpoint) | {"state": state, "metrics": metrics, "best": (folder / "best").read_bytes()}


# -------------------------------------------------------------------------------------------------------- equal


def difference(folder: Path, toy: Toy, size: int) -> float:
    """Train in one process and in several; the largest relative difference of a loss, or of the last weights."""
    alone, together = folder / "alone", folder / "together"
    for each in (alone, together):
        each.mkdir(parents=True)
    trainer = toy.trainer(alone, SingleProcess())
    wanted = noted_losses(trainer)
    trainer.run()
    ended = toy.train(together, size)
    if any(ended.codes):
        return float("inf")
    found = [float.fromhex(loss) for loss in json.loads((together / "losses").read_text(encoding="utf-8"))]
    worst = max(abs(a - b) / abs(a) for a, b in zip(wanted, found, strict=True))
    weights = [CheckpointFolder(each / "checkpoints").load_newest() for each in (alone, together)]
    for group in ("model", "average"):
        one, other = (dict(each.tensors[group]) if each else {} for each in weights)
        scale = max(float(tensor.abs().max()) for tensor in one.values())
        worst = max(worst, *(float((one[name] - other[name]).abs().max()) / scale for name in one))
    return worst


@without_waiting()
def sweep_equal(
    root: Path, sizes: Sequence[int], kinds: Sequence[str], record: Record, parallel: str = "data"
) -> float:
    """Every model, whole and accumulated batches, means over tokens and pairs; all without chance, in float64."""
    worst = 0.0
    for number, (kind, size) in enumerate((kind, size) for kind in kinds for size in sizes):
        settings: dict[str, object] = {"accumulate": 1 + 2 * (number % 2), "parallel": parallel}
        if number % 3 == 2:
            settings["optimizer"] = {"kind": "sgd", "learning_rate": 0.05, "mean_over": "pairs"}
        toy = Toy(kind, has_chance=False, num_steps=6, settings=settings)
        with mock.patch.object(distributed, "DEADLINE_SECONDS", 600.0):  # a busy machine is no matter here
            found = difference(root / f"{kind} {size}", toy, size)
        worst = max(worst, found)
        record.ask(found <= 1e-12, f"{kind}, {size} processes: {found:.1e} from one")
    return worst


# -------------------------------------------------------------------------------------------------------- death


def sweep_deaths(
    root: Path,
    size: int,
    dooms: Sequence[Doom],
    record: Record,
    toy: Toy = Toy(),
) -> float:
    """Let one process die; all are gone in time and none as if all were well, and going on gives the same bits."""
    (root / "whole").mkdir(parents=True)
    assert toy.train(root / "whole", size).codes == [0] * size
    wanted = result(root / "whole")
    longest = 0.0
    for number, doom in enumerate(dooms):
        folder = root / str(number)
        folder.mkdir()
        ended = toy.train(folder, size, doom)
        is_told = 0 not in ended.codes and 99 not in ended.codes
        is_resumed = newest(folder / "checkpoints") is not None
        again = toy.train(folder, size)
        is_same = is_resumed and again.codes == [0] * size and result(folder) == wanted
        rubbish = [path for path in (folder / "checkpoints").iterdir() if path.name.startswith(".")]
        longest = max(longest, ended.seconds)
        is_well = is_told and is_same and ended.seconds <= SURVIVE_SECONDS and not rubbish
        record.ask(is_well, f"{doom} of {size}: {ended}, then {again.codes}, {is_same=}, {rubbish}")
        shutil.rmtree(folder)
    return longest


def all_dooms(size: int) -> list[Doom]:
    return [Doom(rank, phase, way) for rank in range(size) for phase in PHASES for way in WAYS]


def sweep_hangs(
    root: Path, dooms: Sequence[Doom], size: int, record: Record, deadline: float = 4.0, toy: Toy = Toy()
) -> float:
    """Let one process stand still; the others end. What stands still is for the launcher to kill."""
    longest = 0.0
    with (
        mock.patch.object(distributed, "DEADLINE_SECONDS", deadline),
        mock.patch.object(distributed, "SILENT_SECONDS", deadline),
        mock.patch.object(distributed, "BEAT_SECONDS", deadline / 12),
    ):
        for number, doom in enumerate(dooms):
            folder = root / str(number)
            folder.mkdir(parents=True)
            ended = toy.train(folder, size, doom)
            longest = max(longest, ended.all_seconds)
            is_told = (
                all(code > 0 for rank, code in enumerate(ended.codes) if rank != doom.rank) and 99 not in ended.codes
            )
            record.ask(is_told and ended.all_seconds <= 2 * deadline + 10, f"{doom} of {size}: {ended}")
    return longest


# ----------------------------------------------------------------------------------------------------- torchrun


def sweep_torchrun(root: Path, size: int, record: Record) -> float:
    """The command itself, and a process of it that is killed; seconds from there until all are gone."""
    root.mkdir(parents=True)
    words = ["".join("abcdef"[(number * 7 + place * 3) % 6] for place in range(2 + number % 7)) for number in range(99)]
    data = root / "words.tsv"
    data.write_bytes("".join(f"{word}{n}\t{word.upper()}{n}\n" for n, word in enumerate(words)).encode())
    settings = "export=false precision=float32 batch_tokens=128 validate_every=10 max_steps=60".split()
    settings.append("optimizer.learning_rate=0.01")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(size), "-m", "heedful", "train"]
    command += [str(data), *(word for each in settings for word in ("--set", f"training.{each}"))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MASTER_PORT": "0"}
    longest = 0.0

    def train(out: Path) -> subprocess.Popen[bytes]:
        given = [*command, "--out", str(out)]
        given.insert(3, f"--master-port={free_port()}")
        return subprocess.Popen(given, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    whole = train(root / "whole")
    whole.communicate()
    wanted = _model_bits(root / "whole")
    for rank in range(size):
        folder = root / str(rank)
        process = train(folder)
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith(b"step 20"):
                break
        workers = _children(process.pid)
        os.kill(workers[rank % len(workers)], signal.SIGKILL)
        killed_at = time.monotonic()
        process.communicate()
        seconds = time.monotonic() - killed_at
        left = [pid for pid in workers if _is_running(pid)]
        again = train(folder)
        again.communicate()
        longest = max(longest, seconds)
        is_well = process.returncode != 0 and not left and seconds <= SURVIVE_SECONDS and again.returncode == 0
        record.ask(
            is_well and _model_bits(folder) == wanted, f"torchrun, worker {rank} of {size} killed: {seconds:.0f} s"
        )
    return longest


def _model_bits(folder: Path) -> dict[str, object]:
    checkpoint = newest(folder / "run" / "checkpoints")
    found = bits(checkpoint) if checkpoint else {}
    return {key: value for key, value in found.items() if key != "state"}


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text(encoding="ascii").split()] if path.is_file() else []


def _is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.is_file() and stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"


# ---------------------------------------------------------------------------------------------------------- all


Sweep = Callable[[Record], float]
"""Sweep that asks in a record, and returns the worst that it met."""


def all_sweeps(root: Path) -> dict[str, tuple[Sweep, str]]:
    """Sweeps by name, each with the unit of its worst case."""
    sweeps: dict[str, tuple[Sweep, str]] = {}
    sharded: dict[str, object] = {"parallel": "sharded", "optimizer": {"learning_rate": 0.01}}
    modes: dict[str, Mapping[str, object]] = {"": {}, "sharded ": sharded}
    for size, (mode, settings) in product((2, 4), modes.items()):
        parallel = str(settings.get("parallel", "data"))
        for group, kinds in GROUPS.items():
            name = f"{mode}equal {group}, {size}"
            sweeps[name] = partial(sweep_equal, root / name, [size], kinds, parallel=parallel), DIFFERENCE
        for kind in DYING:
            name, toy = f"{mode}deaths of {kind}, {size}", Toy(kind, settings=settings)
            sweeps[name] = partial(sweep_deaths, root / name, size, all_dooms(size), toy=toy), "s until all were gone"
    hangs = [Doom(rank, phase, "hang") for rank in range(2) for phase in ("forward", "validation")]
    for kind in DYING:
        name = f"hangs of {kind}, 2"
        sweeps[name] = partial(sweep_hangs, root / name, hangs, 2, toy=Toy(kind)), "s in all, the deadline being 4"
    sweeps["torchrun, 2"] = partial(sweep_torchrun, root / "torchrun", 2), "s until all were gone"
    return sweeps


def prove(say: Callable[[str], None], root: Path, only: Sequence[str] = ("*",)) -> dict[str, Record]:
    """Sweep.

    Args:
        say: is told of each sweep.
        root: an empty folder.
        only: patterns of the names of sweeps.

    Returns:
        Cases and failures by sweep.
    """
    torch.set_num_threads(1)
    records: dict[str, Record] = {}
    for name, (sweep, unit) in all_sweeps(root).items():
        if not any(fnmatchcase(name, pattern) for pattern in only):
            continue
        began = time.monotonic()
        records[name] = Record()
        worst = sweep(records[name])
        told = f"{worst:.1e}" if unit == DIFFERENCE else f"{worst:.1f}"
        say(f"{name}: at most {told} {unit}; {records[name].num_cases} cases, {time.monotonic() - began:.0f} s")
        for failure in records[name].failures:
            say(f"  {failure}")
    return records


def main(arguments: Sequence[str] | None = None) -> int:
    """Sweep and print the table.

    Returns:
        0 if nothing was lost, else 1.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=("*",), metavar="PATTERN", help="names of sweeps, as '*of span*'")
    only = parser.parse_args(arguments).only
    if not IS_POSSIBLE:
        print(f"prove_ddp {REASON}", file=sys.stderr)
        return 2
    began = time.monotonic()
    with private_folder() as folder:
        records = prove(lambda line: print(line, file=sys.stderr, flush=True), folder, only)
    print(table(records, time.monotonic() - began))
    return int(any(each.failures for each in records.values()))


if __name__ == "__main__":
    sys.exit(main())
