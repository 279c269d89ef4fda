"""Resolution of a recipe: its task, data files, model folder and settings."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from heedful.config.base import Tree, merge, parse_overrides, read_toml
from heedful.config.plugins import is_custom
from heedful.data.corpus import find_pairs
from heedful.data.corrected_links import CorrectedLinks
from heedful.data.pretrained_vectors import SIDES
from heedful.data.same_data import WatchedFile, WholeFile
from heedful.engines.folder import open_folder
from heedful.errors import ConfigError, UsageError, did_you_mean
from heedful.models.store import DEFAULT_TASK
from heedful.tasks.experiment import Experiment, load_experiment
from heedful.tasks.interface import DataFile, Recipe, Task
from heedful.tasks.table import find_task


def task_of(recipe: Recipe) -> Task[Any, Any]:
    """Find the task that a recipe or its settings name, or that of the model to go on from.

    Args:
        recipe: data and settings.

    Returns:
        The task.

    Raises:
        UsageError: the task is unknown, or there is no such model.
        FileRefused: the model is damaged.
    """
    named = recipe.task or str(user_settings(recipe).get("task", ""))
    return find_task(named or (open_folder(recipe.origin).task if recipe.origin else DEFAULT_TASK))


def user_settings(recipe: Recipe) -> Tree:
    """Read the settings that the user gave.

    Args:
        recipe: data and settings.

    Returns:
        Those of its file and its options.
    """
    return merge(read_toml(recipe.config) if recipe.config else {}, parse_overrides(recipe.settings))


def files_of(task: Task[Any, Any], recipe: Recipe) -> dict[str, DataFile]:
    """Find and inspect the data files of a recipe.

    Args:
        task: its task.
        recipe: data and settings.

    Returns:
        The files by role.

    Raises:
        UsageError: there are no data files.
    """
    if not recipe.data:
        raise UsageError("train: no data given; give one file of pairs, or two aligned files")
    return task.find(recipe)


def other_files(recipe: Recipe) -> dict[str, WatchedFile]:
    """Find the files that settings name and a training depends on like its data: corrected links, older pairs, vectors.

    Args:
        recipe: data and settings.

    Returns:
        The files by role.

    Raises:
        DataError: a file does not exist.
    """
    settings = user_settings(recipe)
    training, text = settings.get("training"), settings.get("text")
    links, mix = (training.get(key) if isinstance(training, dict) else None for key in ("links", "mix"))
    files: dict[str, WatchedFile] = {}
    if links and isinstance(links, str):
        files["links"] = CorrectedLinks(Path(links))
    if mix and isinstance(mix, list):
        files["mix"] = find_pairs([Path(str(path)) for path in mix], recipe.columns)
    for side in SIDES:
        path = text.get(f"{side}_vectors") if isinstance(text, dict) else None
        if path and isinstance(path, str) and Path(path).is_file():  # another is refused later, with what is there
            files[f"{side} vectors"] = WholeFile(Path(path))
    return files


def folder_of(recipe: Recipe, files: Mapping[str, DataFile]) -> Path:
    """Choose the model folder of a recipe.

    Args:
        recipe: data and settings.
        files: its data files.

    Returns:
        The folder that it names, or one named after the data.
    """
    return recipe.out or Path(f"{files['train'].name}.model")


def resolve(task: Task[Any, Any], recipe: Recipe, adapted: Tree) -> Experiment:
    """Resolve the settings of a training, whose model kind and selection score belong to the task.

    Args:
        task: task of the recipe.
        recipe: data and settings.
        adapted: settings that were chosen from the data.

    Returns:
        The settings, every value resolved.

    Raises:
        ConfigError: a setting is invalid, or belongs to another task.
    """
    settings = (*recipe.settings, f"task={json.dumps(task.name)}")
    experiment = load_experiment(recipe.preset, recipe.config, settings, adapted, task.default_preset)
    if experiment.model.kind not in task.kinds and not is_custom(experiment.model.kind):
        known = ", ".join(sorted(task.kinds))
        raise ConfigError(f"model.kind: {experiment.model.kind} is not a model for {task.name}; known: {known}")
    if experiment.training.mix and task.name != DEFAULT_TASK:
        raise ConfigError(f"training.mix: older pairs can be mixed into {DEFAULT_TASK} only, not into {task.name}")
    for name in task.without_effect:
        section, _, key = name.partition(".")
        part = getattr(experiment, section)
        if getattr(part, key) != type(part).model_fields[key].default:
            raise ConfigError(f"{name}: {task.name} does not use it; leave it out")
    chosen = experiment.training.select_by
    if chosen != "auto" and chosen not in task.higher_is_better:
        hint = did_you_mean(chosen, task.higher_is_better)
        raise ConfigError(f"training.select_by: no score {chosen!r} in {task.name}{hint}")
    return experiment


def check_buildable(recipe: Recipe) -> None:
    """Refuse settings that no model can be built with, before any data are read.

    Args:
        recipe: preset and settings.

    Raises:
        ConfigError: a setting is invalid, or belongs to another task.
        UsageError: the task is unknown.
        ValueError: sizes do not fit together.
    """
    task = task_of(recipe)
    experiment = resolve(task, recipe, {})
    with torch.device("meta"):
        task.build_model(experiment, task.trial_sizes(experiment))
