"""Device of a training: the faster one for this corpus, its plan, and what is said about it before the first step."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final, final

import torch

from heedful.errors import UsageError
from heedful.models.devices import cuda_problem, has_cuda
from heedful.tasks.experiment import Experiment
from heedful.tasks.throughput import Throughput
from heedful.text.durations import duration
from heedful.training.precision import has_bfloat16, resolve_precision
from heedful.training.rank import rank_info

AUTO: Final = "auto"
MOST_COMPARED: Final = 20_000
"""Number of training examples up to which the CPU is tried too; with more of them a GPU is not slower."""

Measure = Callable[[str], Throughput]
"""Function that measures the pace of a training on a device."""
Replan = Callable[[Throughput], Experiment]
"""Function that resolves the settings of a training for a measured pace."""


@final
@dataclass(frozen=True)
class TrainingDevice:
    """Device of a training, with its measured pace."""

    name: str
    pace: Throughput | None = None
    """None = not measured yet."""
    reason: str = ""
    """Line about the reason for a device that the user did not name; empty = none is needed."""


def settled_device(name: str) -> TrainingDevice:
    """Replace "auto" by the only device there is, or by the GPU of each of several processes.

    Args:
        name: PyTorch's device, or "auto".

    Returns:
        The device, not measured yet; "auto" where CPU and GPU remain to be compared.

    Raises:
        UsageError: a CUDA device is named, and PyTorch sees none.
    """
    if name.startswith("cuda") and not has_cuda():
        raise UsageError(f"device {name}: PyTorch sees no CUDA device; train on the CPU, or see: heedful doctor")
    if name != AUTO:
        return TrainingDevice(name)
    if not has_cuda():
        problem = cuda_problem()
        reason = f"device: the CPU, because PyTorch uses no GPU ({problem}); see: heedful doctor" if problem else ""
        return TrainingDevice("cpu", reason=reason)
    return TrainingDevice(AUTO if rank_info().size == 1 else "cuda")


def faster_device(
    settled: TrainingDevice, experiment: Experiment, num_examples: int, measure: Measure, replan: Replan
) -> TrainingDevice:
    """Choose the faster device.

    Args:
        settled: result of `settled_device`.
        experiment: settings before a measurement.
        num_examples: number of training examples.
        measure: measures a device.
        replan: plans the training by a measurement.

    Cost: a few seconds where CPU and GPU are compared.
    """
    if settled.name != AUTO:
        return settled
    if num_examples > MOST_COMPARED:
        return TrainingDevice("cuda")
    slow = measure("cpu")
    try:
        fast = measure("cuda")
    except torch.OutOfMemoryError:
        return TrainingDevice("cpu", slow, "device: the CPU, because the GPU's memory does not hold a step")
    planned = replan(fast).training.batch_tokens * fast.units_per_position
    speeds = slow.tokens_per_second, fast.units_per_second(planned)
    if speeds[0] < speeds[1]:
        return TrainingDevice("cuda", fast)
    numbers = f"{speeds[0]:,.0f} against {speeds[1]:,.0f} units/s"
    reason = f"device: the CPU, because it is faster for so few examples ({numbers}); otherwise: --device cuda"
    return TrainingDevice("cpu", slow, reason)


def describe_device(
    name: str,
    experiment: Experiment,
    num_parameters: int,
    pace: Throughput | None,
    steps_per_epoch: int,
    recording_problem: str = "",
) -> str:
    """Describe device, number format, batch, steps on a GPU, and the longest time to the end, as far as it is known.

    Args:
        name: PyTorch's device.
        num_parameters: number of parameters of the model.
        pace: measured pace; None = not measured.
        steps_per_epoch: number of updates of an epoch.
        recording_problem: reason why steps on a GPU are not recorded; empty = they are.

    Returns:
        A line such as "device: cpu, float32, batches of 1,792 positions, at most 3 min 00 s".
    """
    device, training = torch.device(name), experiment.training
    precision = resolve_precision(training.precision, device, num_parameters)
    full = f"{name} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else name
    several = f" x {training.accumulate}" if training.accumulate > 1 else ""
    is_slow = precision == "bfloat16" and not has_bfloat16(device)
    note = " (which it emulates; training.precision=float32 is faster)" if is_slow else ""
    parts = [full, f"{precision}{note}", f"batches of {training.batch_tokens:,} positions{several}"]
    if device.type == "cuda":
        way = f"operation by operation ({recording_problem})" if recording_problem else "as CUDA graphs"
        parts.append(f"steps {way}")
    if pace is not None and pace.step_seconds:
        units = pace.units_per_position * training.batch_tokens * training.accumulate
        share = units / max(1e-9, units + pace.balanced_units)
        parts.append(f"{share:.0%} of a step is computation that grows with the batch")
    left = min(60.0 * training.max_minutes or inf, inf if pace is None else _seconds(experiment, pace, steps_per_epoch))
    if left < inf:
        parts.append(f"at most {duration(left)}")
    return f"device: {', '.join(parts)}"


def _seconds(experiment: Experiment, pace: Throughput, steps_per_epoch: int) -> float:
    """Time of the updates of a training with a limit of steps, epochs or tokens; infinity without one."""
    training = experiment.training
    units = pace.units_per_position * training.batch_tokens * training.accumulate
    steps = (training.max_steps, training.max_epochs * steps_per_epoch, training.max_target_tokens / max(1e-9, units))
    return min(number or inf for number in steps) * units / max(1e-9, pace.units_per_second(units))
