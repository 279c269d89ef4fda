"""Plan of a comparison: the request, folder and key of each run, fingerprints of the data, and shell commands."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from heedful.comparison.evaluation import MEASURES
from heedful.comparison.gold import Gold
from heedful.comparison.grid import Grid, Row
from heedful.comparison.run_result import run_key
from heedful.data.rows import are_open
from heedful.data.same_data import DataWatch
from heedful.models.store import DEFAULT_TASK
from heedful.runs.facts import other_files
from heedful.runs.request import TrainRequest, merged_settings
from heedful.tasks.interface import Task
from heedful.tasks.table import find_task


@final
@dataclass(frozen=True)
class ComparisonPlan:
    """Plan of all runs of a comparison."""

    grid: Grid
    rows: tuple[Row, ...]
    request: TrainRequest
    """Data and device that all runs share; its output folder contains the folders of the runs."""
    command: str
    budget: tuple[str, ...] = ()
    """Settings that limit every run, each written ``dotted.key=value``."""
    gold: Gold | None = None
    """Manual alignments to compare with; None = none."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of all rows, each once, in order of appearance."""
        return tuple(dict.fromkeys(seed for row in self.rows for seed in row.seeds))

    @property
    def out(self) -> Path:
        """Folder of the comparison."""
        return self.request.out or Path()

    def settings(self, row: Row, seed: int) -> tuple[str, ...]:
        """List the settings of one run.

        Args:
            row: a row of the grid.
            seed: seed of initial weights, data order and dropout.

        Returns:
            Settings as `--set` takes them.
        """
        return (*row.settings, *self.budget, f"training.seed={seed}")

    def run(self, row: Row, seed: int) -> TrainRequest:
        """Return the request for one run.

        Args:
            row: a row of the grid.
            seed: seed of initial weights, data order and dropout.

        Returns:
            The request that `heedful train` would make.
        """
        settings = merged_settings(overrides=self.settings(row, seed))
        return replace(self.request, preset=row.preset, settings=settings, out=self.folder(row, seed))

    def folder(self, row: Row, seed: int) -> Path:
        """Return the model folder of one run.

        Args:
            row: a row of the grid.
            seed: seed of initial weights, data order and dropout.
        """
        return self.out / "runs" / f"{row.folder}-{seed}"

    def folders(self, row: Row, seed: int) -> list[Path]:
        """Return the model folders of a row: its own, or those of an ensemble's members.

        Args:
            row: a row of the grid.
            seed: seed of initial weights, data order and dropout.

        Returns:
            At least one folder.
        """
        by_name = {each.name: each for each in self.rows}
        return [self.folder(by_name[name], seed) for name in row.members] or [self.folder(row, seed)]

    def key(self, row: Row, seed: int, data: Mapping[str, str]) -> str:
        """Return the key of a run: a hash of everything that determines its result.

        Args:
            row: a row of the grid.
            seed: seed of initial weights, data order and dropout.

        Returns:
            A hash; equal keys mean the same run.
        """
        by_name = {each.name: each for each in self.rows}
        if row.members:
            return run_key({"members": [self.key(by_name[name], seed, data) for name in row.members]})
        request = self.run(row, seed)
        changes: dict[str, Any] = {
            "preset": request.preset,
            "settings": self.settings(row, seed),
            "languages": request.languages,
            **({"task": request.task} if request.task else {}),
        }
        if others := other_files(request):
            changes["files"] = DataWatch(others).fingerprints
        return run_key({**changes, "data": data, "columns": request.columns, "measures": sorted(MEASURES)})

    def context(self) -> list[str]:
        """Describe the settings that all rows share.

        Returns:
            Lines about data, seeds and budget.
        """
        request = self.request
        parts = {"training": request.data, "validation": request.dev, "test": request.test}
        parts["links made by hand"] = self.gold.paths if self.gold else ()
        data = [f"{name}: {', '.join(map(str, paths))}" for name, paths in parts.items() if paths]
        budget = [f"budget of each run: {setting}" for setting in self.budget]
        return [*data, f"seeds: {', '.join(map(str, self.seeds))}", *budget]


def watch_data(request: TrainRequest) -> DataWatch:
    """Fingerprint the data of a comparison, and watch over them.

    Returns:
        The watch, over the parts train, dev and test.

    Raises:
        DataError: a file cannot be read.
        UsageError: there is no such task.
    """
    return DataWatch(task_of(request).find(request))


def task_of(request: TrainRequest) -> Task[Any, Any]:
    """Return the task of a comparison.

    Returns:
        The task; translation where the request names none.

    Raises:
        UsageError: there is no such task.
    """
    return find_task(request.task or DEFAULT_TASK)


def fingerprints(watch: DataWatch) -> dict[str, str]:
    """Write the fingerprints of data as texts, from which keys of runs are made.

    Returns:
        Fingerprints by part; a fingerprint changes when its files change.
    """
    return {name: json.dumps(fingerprint) for name, fingerprint in watch.fingerprints.items()}


def shell_command(words: Sequence[str], request: TrainRequest, options: Sequence[str]) -> str:
    """Return a heedful command, quoted for a shell.

    Args:
        words: the command, and its arguments before the data.
        request: data and, for `heedful train`, task and preset.
    """
    command_words = ["heedful", *words, *map(str, request.data)]
    command_words += [
        word for name in ("dev", "test") for path in getattr(request, name) for word in (f"--{name}", str(path))
    ]
    command_words += ["--columns", ",".join(map(str, request.columns))] if not are_open(request.columns) else []
    command_words += ["--languages", ":".join(request.languages)] if all(request.languages) else []
    if "train" in words:
        command_words += ["--task", request.task] if request.task else []
        command_words += ["--preset", request.preset] if request.preset else []
    return shlex.join([*command_words, *options])
