"""Pace of a training on this machine: speeds of updates and validations, measured on a model that is then discarded."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import torch

from heedful.config import merge, validate
from heedful.experiment import Experiment
from heedful.training.config import TrainingConfig
from heedful.training.distributed import Alone
from heedful.training.precision import resolve_precision
from heedful.training.train_state import TrainState

if TYPE_CHECKING:
    from heedful.tasks.interface import Prepared, Task

TRAINED_SHARE: Final = 0.75
"""Share of a limited time that goes into updates; the rest is for validations and the test."""
VALIDATED_SHARE: Final = 0.02
"""Share of a limited time that one of the first validations may take; there are about ten in all."""
USUAL_ITEMS: Final = 1000
LEAST_ITEMS: Final = 50
MOST_STEPS: Final = 10
MEASURED_SECONDS: Final = 2.0
TRIED_ITEMS: Final = 20


@final
@dataclass(frozen=True)
class Pace:
    """Time that a training may take, and measured speeds."""

    seconds: float
    """Limit of time for training, validation and test together."""
    tokens_per_second: float
    """Speed of updates: units of the loss, such as target tokens, per second."""
    items_per_second: float
    """Speed of the first validations, whose outputs are the longest."""

    @property
    def num_units(self) -> float:
        """Number of units of the loss that can be trained on in the time."""
        return TRAINED_SHARE * self.seconds * self.tokens_per_second

    @property
    def validation_items(self) -> int:
        """Number of items whose validation is quick enough; 0 = the usual number."""
        number = int(VALIDATED_SHARE * self.seconds * self.items_per_second)
        return 0 if number >= USUAL_ITEMS else max(LEAST_ITEMS, number)


def measure_pace(task: "Task[Any, Any]", experiment: Experiment, folder: Path, data: "Prepared", device: str) -> Pace:
    """Measure the pace of a training that has a limit of time.

    Args:
        task: the task.
        experiment: configuration, fully resolved.
        folder: the model's folder, with the prepared data.
        data: result of `Task.completed`.
        device: PyTorch's device.

    Returns:
        The pace.

    Cost: a few seconds.
    """
    fields = experiment.training.model_dump(mode="json")
    model = task.build_model(experiment, data.sizes).to(device)
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    precision = resolve_precision(experiment.training.precision, torch.device(device), num_parameters)
    config = validate(TrainingConfig, fields | {"precision": precision, "parallel": "data"}, "training")
    state = TrainState(task.step(experiment, model), config, Alone())
    batches = iter(task.sampler(experiment, folder, data))
    num_tokens, started = 0, 0.0
    for number in range(MOST_STEPS + 1):
        drawn = [next(batches) for _ in range(config.accumulate)]
        num_units = sum(batch.num_units for batch in drawn)
        state.differentiate(drawn, num_units)
        state.update(number + 1, 0.0)
        if number == 0:  # the first step compiles and allocates
            started = time.monotonic()
            continue
        num_tokens += num_units
        if time.monotonic() - started > MEASURED_SECONDS:
            break
    tokens_per_second = num_tokens / max(1e-9, time.monotonic() - started)
    few = validate(
        Experiment, merge(experiment.model_dump(mode="json"), {"training": {"validation_items": TRIED_ITEMS}})
    )
    validator = task.validator(data, few)
    with state.evaluation_weights(state.averaged()) as evaluated:
        for _ in range(2):  # the first validation compiles and imports
            started = time.monotonic()
            validator(evaluated)
    items_per_second = TRIED_ITEMS / max(1e-9, time.monotonic() - started)
    return Pace(60.0 * experiment.training.max_minutes, tokens_per_second, items_per_second)
