"""Budget of a run: what ends its training, which must be the same for all rows of a table."""

from itertools import count
from pathlib import Path
from typing import Final

from heedful.config import read_toml, validate
from heedful.data.same_data import EXPERIMENT
from heedful.experiment import Experiment, upgraded
from heedful.resolution import user_settings
from heedful.tasks.interface import Recipe
from heedful.training.config import TrainingConfig

_LIMITS: Final = ("max_steps", "max_epochs", "max_target_tokens", "max_minutes", "patience")
_LANDING: Final = ("linear", "cosine")
"""Schedules whose learning rate falls to zero at the end of the budget."""


def move_other_budget(recipe: Recipe) -> Path | None:
    """Move the folder of a run aside if its training cannot go on to the budget of a recipe.

    It cannot if it was allowed more than the recipe allows, or if its rate was to fall to zero at another end.

    Args:
        recipe: recipe of one run of a comparison.

    Returns:
        The folder's new place; None = it stays, or there is none.
    """
    folder = recipe.out or Path()
    if not (folder / EXPERIMENT).is_file():
        return None
    before = validate(Experiment, upgraded(read_toml(folder / EXPERIMENT))).training
    wanted = user_settings(recipe).get("training", {})
    pairs = [(getattr(before, name), wanted.get(name, getattr(TrainingConfig(), name))) for name in _LIMITS]
    is_less = any(now and (not old or now < old) for old, now in pairs)
    has_landed = before.optimizer.schedule.kind in _LANDING and any(old != now for old, now in pairs)
    if not (is_less or has_landed):
        return None
    names = (folder.with_name(f"{folder.name}.{number}") for number in count(1))
    moved = next(name for name in names if not name.exists())
    return folder.rename(moved)
