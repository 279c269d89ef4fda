"""Training with several seeds, side by side, and their ensemble: the option --seeds of `heedful train`."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from heedful.cli.messages import Messages
from heedful.errors import EndedElsewhere, Stopped, UsageError

if TYPE_CHECKING:
    from heedful.runs.request import TrainRequest

MOST_SEEDS: Final = 20
_BASELINES: Final = re.compile(r"result: [^;]* on validation; ([^;]* alone have [^;]*)")
"""Line about a result, with the scores of simple models on validation."""
FOLDER: Final = Path("run/seeds")
"""Folder of the models of further seeds, within that of the first."""


def train_seeds(
    request: "TrainRequest", num_seeds: int, threads: int, messages: Messages, is_plain: bool = True
) -> None:
    """Train one model for each seed, each in a process of its own, and join them to an ensemble; or resume.

    Args:
        request: the training of the first seed.
        threads: threads in total; 0 = one for each core.
        messages: printer of what is not a result.
        is_plain: whether the command has no options that several seeds cannot have.

    Raises:
        UsageError: the training cannot have several seeds.
        EndedElsewhere: a training failed, and has said why.
        Stopped: a signal arrived; every training is saved.
    """
    _check(request, is_plain)
    from heedful.cpu.cores import physical_cores
    from heedful.engines.folder import claim
    from heedful.engines.members import join_members
    from heedful.runs.facts import find_files, model_folder, request_task

    folder = model_folder(request, find_files(request_task(request), request))
    claim(folder)
    first = int(request.settings.get("training", {}).get("seed", 1))
    folders = {first: folder, **{seed: folder / FOLDER / str(seed) for seed in range(first + 1, first + num_seeds)}}
    width = min(num_seeds, threads or physical_cores())
    each = max(1, (threads or physical_cores()) // width)
    messages.say(f"{num_seeds} seeds, {width} at once with {each} thread{'s' * (each > 1)} each: {folder}")
    commands = {f"seed {seed}": _command(request, seed, path, each, seed == first) for seed, path in folders.items()}
    _run(commands, folder / FOLDER, width, messages.warn, lambda name, lines: messages.say(f"{name}: {_best(lines)}"))
    number = join_members(folder, [path for seed, path in folders.items() if seed != first])
    # The training of the first seed, which is complete, chooses and tests what only an ensemble has.
    again = {"ensemble": commands[f"seed {first}"]}
    _run(again, folder / FOLDER, 1, messages.warn, lambda _, lines: print(_tested(lines), end=""))
    print(f"model: {folder}, an ensemble of {number}")


def _check(request: "TrainRequest", is_plain: bool) -> None:
    from heedful.models.store import DEFAULT_TASK
    from heedful.predictors.label_predictor import LabelPredictor
    from heedful.predictors.table import predictor_of
    from heedful.runs.facts import request_task

    if not is_plain:
        raise UsageError("--seeds: it goes with neither --monolingual nor --profile; leave one of them out")
    if "RANK" in os.environ or "TORCHELASTIC_RUN_ID" in os.environ:
        raise UsageError("--seeds: each seed is a process of its own; run it without torchrun")
    name = request_task(request).name
    if name != DEFAULT_TASK and not issubclass(predictor_of(name), LabelPredictor):
        raise UsageError(f"--seeds: there are no ensembles of {name}; train one seed")
    if request.pretrained is not None:
        raise UsageError("--seeds: models that go on from one model are too much alike; leave out --from")


def _command(request: "TrainRequest", seed: int, folder: Path, threads: int, is_first: bool) -> list[str]:
    from heedful.config.base import leaves
    from heedful.data.rows import are_open

    options: list[tuple[str, str]] = [("--out", str(folder)), ("--threads", str(threads)), ("--device", request.device)]
    options += [("--dev", str(path)) for path in request.dev] + [("--test", str(path)) for path in request.test]
    options += [] if are_open(request.columns) else [("--columns", ",".join(map(str, request.columns)))]
    options += [("--separator", request.separator)] if request.separator else []
    options += [("--languages", ":".join(request.languages))] if any(request.languages) else []
    options += [("--preset", request.preset)] if request.preset else []
    options += [("--task", request.task)] if request.task else []
    settings = {key: value for key, value in leaves(request.settings) if key != "training.seed"}
    settings |= {} if is_first else {"training.export": False}
    options += [("--set", f"{key}={json.dumps(value, ensure_ascii=False)}") for key, value in settings.items()]
    arguments = [part for option in options for part in option]
    return [sys.executable, "-m", "heedful", "train", *map(str, request.data), *arguments, "--seed", str(seed)]


def _best(lines: list[str]) -> str:
    return next((line for line in lines if line.startswith("best:")), lines[-1])


def _tested(lines: list[str]) -> str:
    """Lines of test scores, of which the further ones are indented, and one of simple models, where there are any."""
    tested = dropwhile(lambda line: not line.startswith("test:"), lines)
    shown = [*takewhile(lambda line: line.startswith(("test:", " ")), tested)]
    # The score of that line is of the first seed, and those of simple models are of all.
    compared = next((match for line in lines if (match := _BASELINES.match(line))), None)
    shown += [f"       on validation, {compared[1]}"] if compared else []
    return "".join(f"{line}\n" for line in shown)


def _run(
    commands: Mapping[str, list[str]],
    logs: Path,
    width: int,
    warn: Callable[[str], None],
    tell: Callable[[str, list[str]], None],
) -> None:
    """Run commands, some at once; what they print goes to log files.

    Args:
        commands: words of each command, by its name.
        tell: function that receives the name of a command that has ended, and the lines that it has printed.

    Raises:
        EndedElsewhere: a command failed; the others were stopped.
        Stopped: a signal arrived; the commands have saved.
    """
    logs.mkdir(parents=True, exist_ok=True)
    running: list[subprocess.Popen[bytes]] = []

    def run(name: str) -> tuple[int, list[str]]:
        path = logs / f"{name.removeprefix('seed ')}.txt"
        with path.open("wb") as log:
            running.append(process := subprocess.Popen(commands[name], stdout=log, stderr=subprocess.STDOUT))
        code = process.wait()
        return code, path.read_text(encoding="utf-8", errors="replace").strip().split("\n")

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    pool = ThreadPoolExecutor(width)
    try:
        futures = {pool.submit(run, name): name for name in commands}
        for future in as_completed(futures):
            (code, lines), name = future.result(), futures[future]
            if code:
                warn(f"{name}: {lines[-1]}")
                raise EndedElsewhere(code if code > 0 else 128 - code)
            tell(name, lines)
    except KeyboardInterrupt:
        raise Stopped("stopped: every seed is saved; the same command resumes", signal.SIGINT) from None
    finally:
        signal.signal(signal.SIGTERM, before)
        pool.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()  # those that have ended feel nothing
        pool.shutdown()
