"""Measurement of the pace of a training on this machine, with a model that is then discarded."""

import time
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch

from heedful.config.base import merge, validate
from heedful.data.batch import Batch, Sampler
from heedful.tasks.experiment import Experiment
from heedful.tasks.interface import Prepared, Task
from heedful.tasks.throughput import GROWTH, Throughput, fit_step_time
from heedful.training.config import TrainingConfig
from heedful.training.distributed import SingleProcess
from heedful.training.precision import resolve_precision
from heedful.training.train_state import TrainState

MOST_STEPS: Final = 10
MEASURED_SECONDS: Final = 2.0
TRIED_ITEMS: Final = 20
RECORDING_STEPS: Final = 3
"""First steps of a size on a GPU that are not timed: the second one may be recorded."""
GROWTHS: Final = (1, 3, GROWTH)
"""Sizes of the steps that are measured on a GPU, in usual batches."""


class StepTime(NamedTuple):
    """Mean size and time of some steps."""

    units: float
    seconds: float


def measure_throughput(
    task: Task[Any, Any],
    experiment: Experiment,
    folder: Path,
    data: Prepared,
    device: str,
    growths: Sequence[int] | None = None,
) -> Throughput:
    """Measure the pace of a training.

    Args:
        experiment: configuration, fully resolved.
        folder: the model's folder, with the prepared data.
        data: result of `Task.completed`.
        device: PyTorch's device.
        growths: sizes of the measured steps, in batches of the configuration; None = one size on a CPU, where a step
            costs in proportion to its size, and three elsewhere, where it has a fixed part too.

    Raises:
        torch.OutOfMemoryError: the device cannot even hold a step of the smallest size.

    Cost: a few seconds.
    """
    where, batch_tokens = torch.device(device), experiment.training.batch_tokens
    if growths is None:
        growths = (1,) if where.type == "cpu" else GROWTHS
    fields = experiment.training.model_dump(mode="json")
    model = task.build_model(experiment, data.sizes).to(where)
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    precision = resolve_precision(experiment.training.precision, where, num_parameters)
    config = validate(TrainingConfig, fields | {"precision": precision, "parallel": "data"}, "training")
    state = TrainState(task.step(experiment, model), config, SingleProcess())

    def measure(growth: int) -> StepTime:
        sampler = task.sampler(_changed(experiment, batch_tokens=growth * batch_tokens), folder, data)
        return _time_steps(state, sampler, config.accumulate, MEASURED_SECONDS / len(growths), len(growths) > 1)

    steps, largest = measure_sizes(measure, growths)
    step_seconds, unit_seconds = fit_step_time(steps)
    validator = task.validator(data, _changed(experiment, validation_items=TRIED_ITEMS))
    started = 0.0
    with state.evaluation_weights(state.averaged()) as evaluated:
        for _ in range(2):  # the first validation compiles and imports
            started = time.monotonic()
            validator(evaluated)
    items_per_second = TRIED_ITEMS / max(1e-9, time.monotonic() - started)
    limit = 60.0 * experiment.training.max_minutes
    return Throughput(
        limit,
        1.0 / max(1e-12, unit_seconds),
        items_per_second,
        step_seconds,
        steps[0].units / (growths[0] * batch_tokens * config.accumulate),
        largest * batch_tokens,
    )


def measure_sizes(measure: Callable[[int], StepTime], growths: Sequence[int]) -> tuple[list[StepTime], float]:
    """Measure steps of growing size until memory is exhausted.

    Args:
        measure: function that measures steps of so many usual batches.
        growths: sizes, the smallest first.

    Returns:
        The measured steps, and the largest size that memory holds; infinity if it holds all.

    Raises:
        torch.OutOfMemoryError: memory does not hold the smallest size.
    """
    steps: list[StepTime] = []
    for number, growth in enumerate(growths):
        try:
            steps.append(measure(growth))
        except torch.OutOfMemoryError:
            if not steps:
                raise
            torch.cuda.empty_cache()
            return steps, float(growths[number - 1])
    return steps, inf


def _time_steps(state: TrainState, sampler: Sampler, accumulate: int, seconds: float, is_repeated: bool) -> StepTime:
    """Time steps of one size, after those that compile, allocate and record.

    Args:
        is_repeated: whether all steps have the same batches, so that what is recorded for their shapes is timed.
    """
    batches, drawn = iter(sampler), list[Batch]()
    num_warm = RECORDING_STEPS if is_repeated else 1
    num_units, num_steps, started = 0, 0, 0.0
    for number in range(MOST_STEPS + num_warm):
        if not (is_repeated and drawn):
            drawn = [next(batches) for _ in range(accumulate)]
        size = sum(batch.num_units for batch in drawn)
        state.differentiate(drawn, size)
        state.update(number + 1, 0.0)
        if number < num_warm:
            state.synchronize()
            started = time.monotonic()
            continue
        num_units, num_steps = num_units + size, num_steps + 1
        if time.monotonic() - started > seconds:
            break
    state.synchronize()
    return StepTime(num_units / num_steps, max(1e-9, time.monotonic() - started) / num_steps)


def _changed(experiment: Experiment, **training: object) -> Experiment:
    return validate(Experiment, merge(experiment.model_dump(mode="json"), {"training": training}))
