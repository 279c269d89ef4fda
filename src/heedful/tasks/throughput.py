"""Throughput of a training: the time that it may take, and its speed on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Final, Self, final

TRAINED_SHARE: Final = 0.8
"""Share of a limited time that goes into updates; the rest is for validations and the test."""
VALIDATED_SHARE: Final = 0.02
"""Share of a limited time that one of the first validations may take; there are four to ten in all."""
MOST_VALIDATED: Final = 0.1
"""Share of the time that validations may take where steps are quick, as on a GPU."""
USUAL_ITEMS: Final = 1000
LEAST_ITEMS: Final = 50
GROWTH: Final = 8
"""Largest batch in usual batches, where fixed costs of a step make larger ones quicker."""
BATCHES_AN_EPOCH: Final = 20
"""Number of batches that an epoch has at least where batches grow."""
MOST_RATE_GROWTH: Final = 2.0


@final
@dataclass(frozen=True)
class Throughput:
    """Time that a training may take, and measured speeds.

    A step of n units takes `step_seconds` + n / `tokens_per_second`. On a CPU the first part is too small to matter; on
    a GPU it is the time in which Python launches the programs of a step, and may be longer than these take.
    """

    seconds: float
    """Limit of time for training, validation and test together; 0 = no limit."""
    tokens_per_second: float
    """Speed of updates: units of the loss, such as target tokens, per second, without the fixed part of each step."""
    items_per_second: float
    """Speed of the first validations, whose outputs are the longest."""
    step_seconds: float = 0.0
    """Fixed part of the time of a step."""
    units_per_position: float = 1.0
    """Number of units for each of the positions that `training.batch_tokens` counts."""
    most_tokens: float = inf
    """Largest `training.batch_tokens` that the device's memory holds."""

    @property
    def num_units(self) -> float:
        """Number of units of the loss that can be trained on in the time, if steps had no fixed part."""
        return TRAINED_SHARE * self.seconds * self.tokens_per_second

    @property
    def balanced_units(self) -> float:
        """Number of units whose computation takes as long as the fixed part of a step."""
        return self.step_seconds * self.tokens_per_second

    def units_per_second(self, units_per_step: float) -> float:
        """Speed of updates with steps of a size.

        Args:
            units_per_step: number of units of a step.
        """
        return self.tokens_per_second * units_per_step / (units_per_step + self.balanced_units)

    def shared_by(self, size: int) -> Self:
        """Pace of several processes like the measured one, each of which computes its share of every batch.

        Args:
            size: number of processes; the fixed part of a step is not shared.
        """
        return replace(self, tokens_per_second=size * self.tokens_per_second, most_tokens=size * self.most_tokens)

    @property
    def num_validations(self) -> int:
        """Number of validations, the last one included: few in a short time, since they take time from the updates."""
        return min(10, max(4, round(2.0 * sqrt(self.seconds / 60.0))))

    @property
    def validation_items(self) -> int:
        """Number of items whose validation is quick enough; 0 = the usual number."""
        if not self.seconds:
            return 0
        share = min(VALIDATED_SHARE, MOST_VALIDATED / self.num_validations) if self.step_seconds else VALIDATED_SHARE
        number = int(share * self.seconds * self.items_per_second)
        return 0 if number >= USUAL_ITEMS else max(LEAST_ITEMS, number)

    def least_interval(self, units_per_step: float) -> int:
        """Smallest number of steps between validations of the usual number of items that take a tenth of the time.

        Args:
            units_per_step: number of units of a step.
        """
        validation = USUAL_ITEMS / max(1e-9, self.items_per_second)
        step = units_per_step / max(1e-9, self.units_per_second(units_per_step))
        return int((1.0 / MOST_VALIDATED - 1.0) * validation / max(1e-9, step))


def largest_batch(usual: int, balanced: float, size: float, most: float = inf) -> int:
    """Choose the largest batch that is worth its memory and its number of updates.

    Args:
        usual: largest batch where a step costs in proportion to its size, in positions or items.
        balanced: number of them whose computation takes as long as the fixed part of a step, so that a larger batch
            would shorten an epoch to half at most.
        size: number of them in an epoch.
        most: number that memory holds.

    Returns:
        The number; at least `usual`, if memory holds it.

    Example:
        >>> [largest_batch(1000, balanced, 400_000) for balanced in (0, 500, 5000, 50_000)]
        [1000, 1000, 5000, 8000]
    """
    return int(min(max(usual, min(balanced, GROWTH * usual, size / BATCHES_AN_EPOCH)), max(1.0, most)))


def rate_growth(batch: float, usual: float) -> float:
    """Factor of the learning rate for a larger batch than the usual one: the square root, up to 2.

    Malladi et al. 2022, arXiv:2205.10287, for optimizers that divide by a gradient's size.

    Args:
        batch: in any unit.
        usual: in the same unit.

    Example:
        >>> [rate_growth(batch, 1000) for batch in (100, 1000, 2250, 8000)]
        [1.0, 1.0, 1.5, 2.0]
    """
    return min(MOST_RATE_GROWTH, sqrt(max(1.0, batch / usual)))


def fit_step_time(steps: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Fit a + b n to the times of steps of several sizes, by least squares of the relative errors.

    Args:
        steps: number n of units and seconds of each; at least one.

    Returns:
        a and b in seconds, neither negative.

    Example:
        >>> [round(number, 6) for number in fit_step_time([(1000, 0.03), (2000, 0.04), (8000, 0.1)])]
        [0.02, 1e-05]
    """
    proportional = 0.0, sum(seconds for _, seconds in steps) / max(1e-9, sum(units for units, _ in steps))
    if len({units for units, _ in steps}) < 2:
        return proportional
    weights = [1.0 / seconds**2 for _, seconds in steps]
    total = sum(weights)
    mean_units = sum(w * units for w, (units, _) in zip(weights, steps, strict=True)) / total
    mean_seconds = sum(w * seconds for w, (_, seconds) in zip(weights, steps, strict=True)) / total
    spread = sum(w * (units - mean_units) ** 2 for w, (units, _) in zip(weights, steps, strict=True))
    slope = (
        sum(
            w * (units - mean_units) * (seconds - mean_seconds)
            for w, (units, seconds) in zip(weights, steps, strict=True)
        )
        / spread
    )
    fixed = mean_seconds - slope * mean_units
    if slope <= 0.0:  # all of the time is fixed, as far as these sizes tell
        largest = max(units for units, _ in steps)
        return mean_seconds, 0.01 * mean_seconds / largest
    return proportional if fixed < 0.0 else (fixed, slope)
