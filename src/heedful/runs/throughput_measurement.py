"""Measurement of the pace of a training on this machine, with a model that is then discarded."""

import time
from pathlib import Path
from typing import Any, Final

import torch

from heedful.config.base import merge, validate
from heedful.tasks.experiment import Experiment
from heedful.tasks.interface import Prepared, Task
from heedful.tasks.throughput import Throughput
from heedful.training.config import TrainingConfig
from heedful.training.distributed import SingleProcess
from heedful.training.precision import resolve_precision
from heedful.training.train_state import TrainState

MOST_STEPS: Final = 10
MEASURED_SECONDS: Final = 2.0
TRIED_ITEMS: Final = 20


def measure_throughput(
    task: Task[Any, Any], experiment: Experiment, folder: Path, data: Prepared, device: str
) -> Throughput:
    """Measure the pace of a training that has a limit of time.

    Args:
        experiment: configuration, fully resolved.
        folder: the model's folder, with the prepared data.
        data: result of `Task.completed`.
        device: PyTorch's device.

    Cost: a few seconds.
    """
    fields = experiment.training.model_dump(mode="json")
    model = task.build_model(experiment, data.sizes).to(device)
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    precision = resolve_precision(experiment.training.precision, torch.device(device), num_parameters)
    config = validate(TrainingConfig, fields | {"precision": precision, "parallel": "data"}, "training")
    state = TrainState(task.step(experiment, model), config, SingleProcess())
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
    return Throughput(60.0 * experiment.training.max_minutes, tokens_per_second, items_per_second)
