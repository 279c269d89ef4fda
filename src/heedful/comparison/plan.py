"""Plan of a comparison: the recipe, folder and key of each run, fingerprints of the data, and shell commands."""

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
from heedful.data.same_data import DataWatch
from heedful.models.store import DEFAULT_TASK
from heedful.runs.resolution import other_files
from heedful.tasks.interface import Recipe, Task
from heedful.tasks.table import find_task


@final
@dataclass(frozen=True)
class Plan:
    """Plan of all runs of a comparison."""

    grid: Grid
    rows: tuple[Row, ...]
    recipe: Recipe
    """Data, budget and device that all runs share; its output folder contains the folders of the runs."""
    command: str
    gold: Gold | None = None
    """Manual alignments to compare with; None = none."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of all rows, each once, in order of appearance."""
        return tuple(dict.fromkeys(seed for row in self.rows for seed in row.seeds))

    @property
    def out(self) -> Path:
        """Folder of the comparison."""
        return self.recipe.out or Path()

    def run(self, row: Row, seed: int) -> Recipe:
        """Return the recipe of one run.

        Args:
            row: a row of the grid.
            seed: seed of initial weights, data order and dropout.

        Returns:
            The recipe that `heedful train` would follow.
        """
        settings = (*row.settings, *self.recipe.settings, f"training.seed={seed}")
        return replace(self.recipe, preset=row.preset, settings=settings, out=self.folder(row, seed))

    def folder(self, row: Row, seed: int) -> Path:
        """Return the model folder of one run.

        Args:
            row: a row of the grid.
            seed: seed of initial weights, data order and dropout.

        Returns:
            The folder.
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
            data: fingerprints of the data files.

        Returns:
            A hash; equal keys mean the same run.
        """
        by_name = {each.name: each for each in self.rows}
        if row.members:
            return run_key({"members": [self.key(by_name[name], seed, data) for name in row.members]})
        recipe = self.run(row, seed)
        changes: dict[str, Any] = {
            "preset": recipe.preset,
            "settings": recipe.settings,
            "languages": recipe.languages,
            **({"task": recipe.task} if recipe.task else {}),
        }
        if others := other_files(recipe):
            changes["files"] = DataWatch(others).fingerprints
        return run_key({**changes, "data": data, "columns": recipe.columns, "measures": sorted(MEASURES)})

    def context(self) -> list[str]:
        """Describe the settings that all rows share.

        Returns:
            Lines about data, seeds and budget.
        """
        recipe = self.recipe
        parts = {"training": recipe.data, "validation": recipe.dev, "test": recipe.test}
        parts["links made by hand"] = self.gold.paths if self.gold else ()
        data = [f"{name}: {', '.join(map(str, paths))}" for name, paths in parts.items() if paths]
        budget = [f"budget of each run: {setting}" for setting in recipe.settings]
        return [*data, f"seeds: {', '.join(map(str, self.seeds))}", *budget]


def watch_data(recipe: Recipe) -> DataWatch:
    """Fingerprint the data of a comparison, and watch over them.

    Args:
        recipe: recipe that names the files.

    Returns:
        The watch, over the parts train, dev and test.

    Raises:
        DataError: a file cannot be read.
        UsageError: there is no such task.
    """
    return DataWatch(task_of(recipe).find(recipe))


def task_of(recipe: Recipe) -> Task[Any, Any]:
    """Return the task of a comparison.

    Args:
        recipe: recipe of the comparison.

    Returns:
        The task; translation where the recipe names none.

    Raises:
        UsageError: there is no such task.
    """
    return find_task(recipe.task or DEFAULT_TASK)


def fingerprints(watch: DataWatch) -> dict[str, str]:
    """Write the fingerprints of data as texts, from which keys of runs are made.

    Args:
        watch: the watch over the data.

    Returns:
        Fingerprints by part; a fingerprint changes when its files change.
    """
    return {name: json.dumps(fingerprint) for name, fingerprint in watch.fingerprints.items()}


def shell_command(words: Sequence[str], recipe: Recipe, options: Sequence[str]) -> str:
    """Return a heedful command, quoted for a shell.

    Args:
        words: the command, and its arguments before the data.
        recipe: data and, for `heedful train`, preset and settings.
        options: options at the end of the line.

    Returns:
        One line.
    """
    command_words = ["heedful", *words, *map(str, recipe.data)]
    command_words += [
        word for name in ("dev", "test") for path in getattr(recipe, name) for word in (f"--{name}", str(path))
    ]
    command_words += ["--columns", ",".join(map(str, recipe.columns))] if recipe.columns != (1, 2) else []
    command_words += ["--languages", ":".join(recipe.languages)] if all(recipe.languages) else []
    if "train" in words:
        command_words += ["--task", recipe.task] if recipe.task else []
        command_words += ["--preset", recipe.preset] if recipe.preset else []
        command_words += [word for setting in recipe.settings for word in ("--set", setting)]
    return shlex.join([*command_words, *options])
