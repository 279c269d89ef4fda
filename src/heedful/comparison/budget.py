"""Budget of a run: what ends its training, which must be the same for all rows of a table."""

from itertools import count
from pathlib import Path
from typing import Final

from heedful.config.base import read_toml, validate
from heedful.data.same_data import EXPERIMENT
from heedful.errors import UsageError
from heedful.pages.record import read_run
from heedful.runs.request import TrainRequest
from heedful.tasks.experiment import Experiment, upgraded
from heedful.training.config import TrainingConfig

_LIMITS: Final = ("max_steps", "max_epochs", "max_target_tokens", "max_minutes", "patience")
_LANDING: Final = ("linear", "cosine")
"""Schedules whose learning rate falls to zero at the end of the budget."""


def move_other_budget(request: TrainRequest) -> Path | None:
    """Move the folder of a run aside if its training cannot go on to the budget of a request.

    It cannot if it has used more than the request allows, or if its rate was to fall to zero at another end.

    Returns:
        The folder's new place; None = it stays, or there is none.
    """
    folder = request.out or Path()
    if not (folder / EXPERIMENT).is_file():
        return None
    before = validate(Experiment, upgraded(read_toml(folder / EXPERIMENT))).training
    wanted = TrainingConfig().model_copy(update=request.settings.get("training", {}))
    if all(getattr(before, name) == getattr(wanted, name) for name in _LIMITS):
        return None
    used = _used(folder)
    is_over = wanted.share_done(*used) >= 1.0 or wanted.patience < before.patience
    if not (is_over or before.optimizer.schedule.kind in _LANDING):
        return None
    names = (folder.with_name(f"{folder.name}.{number}") for number in count(1))
    moved = next(name for name in names if not name.exists())
    return folder.rename(moved)


def _used(folder: Path) -> tuple[int, float, int, float]:
    """Steps, epochs, target tokens and seconds of the training in a folder."""
    try:
        state = read_run(folder).checkpoint
    except UsageError:  # it has not begun
        return 0, 0.0, 0, 0.0
    names = ("step", "epoch", "num_target_tokens", "seconds")
    step, epoch, tokens, seconds = (state.get(name, 0) for name in names)
    return int(step), float(epoch), int(tokens), float(seconds)
