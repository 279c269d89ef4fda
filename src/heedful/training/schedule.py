"""Learning rate schedules of the papers, by step or by validation results."""

import math
from typing import Literal

from pydantic import Field

from heedful.config.base import MOST_STEPS, Config
from heedful.errors import UsageError


class ScheduleConfig(Config):
    """Settings of the learning rate schedule.

    inverse_sqrt: rises linearly to the peak, then falls with 1/sqrt(step): Vaswani et al. 2017, section 5.3, whose
        peak is model_size^-0.5 * warmup^-0.5.
    linear, cosine: rise, then fall to zero at the end of training: at the first limit of steps, epochs, tokens or
        minutes that is reached.
    halving: constant, then halved once `halve_after` has passed, and again every `halve_every`. Luong et al. 2015,
        section 4.1, halve every epoch after 5 of 10, with dropout after 8 of 12; Sutskever et al. 2014, section 3.4,
        every half epoch after 5 of 7.5.
    constant: rises if there is a warm-up, then stays: Bahdanau et al. 2015 with Adadelta.
    """

    kind: Literal["inverse_sqrt", "linear", "cosine", "halving", "constant"] = "inverse_sqrt"
    warmup_steps: int = Field(default=1000, ge=0, le=MOST_STEPS)
    """Steps in which the learning rate rises to its peak."""
    halve_after: float = Field(default=10_000, ge=0, le=1e12)
    """Steps after which the schedule "halving" begins to halve the rate."""
    halve_every: float = Field(default=2_000, gt=0, le=1e12)
    """Steps between two halvings."""
    halve_in: Literal["steps", "epochs"] = "steps"
    """Unit of `halve_after` and `halve_every`."""


def rate_factor(
    config: ScheduleConfig, step: int, max_steps: int, epoch: float | None = None, share: float = 0.0
) -> float:
    """Return the learning rate at a step as a share of its peak.

    Args:
        step: from 1.
        max_steps: last step, for schedules that fall to zero there; 0 = no limit of steps.
        epoch: number of epochs before this step, with fractions; required by schedules in epochs.
        share: part of the training that is done by the nearest limit, in [0, 1], for schedules that fall to zero.

    Returns:
        A factor in [0, 1].

    Raises:
        UsageError: the schedule is in epochs, and `epoch` is missing.

    Example:
        >>> noam = ScheduleConfig(warmup_steps=4000)
        >>> round(512**-0.5 * 4000**-0.5 * rate_factor(noam, 8000, 0) * 1e4, 6)
        4.941059
    """
    warmup = config.warmup_steps
    if step < warmup:
        return step / warmup
    # The step that the training is at, where another limit is nearer than the last step.
    reached = max_steps * share if share * max_steps > step * (1 + 1e-9) else step
    match config.kind:
        case "inverse_sqrt":
            return math.sqrt(max(1, warmup) / step)
        case "linear":
            return max(0.0, (max_steps - reached) / max(1, max_steps - warmup) if max_steps else 1.0 - share)
        case "cosine":
            done = min(1.0, (reached - warmup) / max(1, max_steps - warmup) if max_steps else share)
            return 0.5 * (1.0 + math.cos(math.pi * done))
        case "halving":
            passed = step - 1 if config.halve_in == "steps" else epoch
            if passed is None:
                raise UsageError("learning rate: the schedule counts epochs, but rate_factor was given none")
            return 0.5 ** max(0, 1 + math.floor((passed - config.halve_after) / config.halve_every))
        case "constant":
            return 1.0
