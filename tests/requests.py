"""Requests and settings of tests, with settings as the command line writes them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.runs import settings as runs_settings
from heedful.runs.request import TrainRequest, merged_settings
from heedful.runs.train import Console, RunInfo
from heedful.runs.train import train as run_training
from heedful.tasks.experiment import Experiment
from heedful.training.progress import Outcome, Watcher


def make_request(
    data: Sequence[Path], out: Path | None = None, settings: Sequence[str] = (), **options: Any
) -> TrainRequest:
    """A request with settings as `--set` takes them."""
    return TrainRequest(data=tuple(data), out=out, settings=merged_settings(overrides=settings), **options)


def train(
    request: TrainRequest, watch: Watcher, started: Callable[[RunInfo], object], warn: Callable[[str], object]
) -> Outcome:
    """The outcome of a training in one process."""
    return run_training(
        request, Console(watch, lambda info: void(started(info)), lambda text: void(warn(text)))
    ).outcome


def void(value: object) -> None: ...


def load_experiment(
    preset: str = "", file: Path | None = None, settings: Sequence[str] = (), adapted: Mapping[str, Any] | None = None
) -> Experiment:
    """Settings of a preset, a file and a command line."""
    return runs_settings.load_experiment(preset, merged_settings(file, settings), adapted)
