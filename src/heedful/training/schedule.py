"""Learning rate as a function of the step, or of validation results: the papers' schedules."""

import math
from typing import Literal

from pydantic import Field

from heedful.config import Config


class ScheduleConfig(Config):
    """How the learning rate changes.

    inverse_sqrt: rises linearly to the peak, then falls with 1/sqrt(step): Vaswani et al. 2017, section 5.3, whose
        peak is model_size^-0.5 * warmup^-0.5.
    linear, cosine: rise, then fall to zero at `max_steps`.
    halving: constant, then halved every `halve_every` steps after `halve_after`: Luong et al. 2015, section 4.1.
    constant: rises if there is a warm-up, then stays: Bahdanau et al. 2015 with Adadelta.
    """

    kind: Literal["inverse_sqrt", "linear", "cosine", "halving", "constant"] = "inverse_sqrt"
    warmup_steps: int = Field(default=1000, ge=0)
    halve_after: int = Field(default=10_000, ge=0)
    halve_every: int = Field(default=2_000, ge=1)


def rate_factor(config: ScheduleConfig, step: int, max_steps: int) -> float:
    """Give the share of the peak learning rate at a step.

    Args:
        config: the schedule.
        step: from 1.
        max_steps: last step, for schedules that fall to zero there.

    Returns:
        A factor in [0, 1].

    Example:
        >>> noam = ScheduleConfig(warmup_steps=4000)
        >>> round(512**-0.5 * 4000**-0.5 * rate_factor(noam, 8000, 0) * 1e4, 6)
        4.941059
    """
    warmup = config.warmup_steps
    if step < warmup:
        return step / warmup
    match config.kind:
        case "inverse_sqrt":
            return math.sqrt(max(1, warmup) / step)
        case "linear":
            return max(0.0, (max_steps - step) / max(1, max_steps - warmup))
        case "cosine":
            done = min(1.0, (step - warmup) / max(1, max_steps - warmup))
            return 0.5 * (1.0 + math.cos(math.pi * done))
        case "halving":
            return 0.5 ** max(0, math.ceil((step - config.halve_after) / config.halve_every))
        case "constant":
            return 1.0
