"""Plan of a training whose learning rate falls to zero at its end: batches and epochs that suit the number of items."""

from dataclasses import dataclass
from math import inf
from typing import Final, Literal, NamedTuple, final

from heedful.config.base import Tree
from heedful.tasks.plan import LANDING_AVERAGE, LANDING_SCHEDULE
from heedful.tasks.throughput import Throughput, largest_batch, rate_growth

BATCHES_PER_EPOCH: Final = 60
"""Number of batches that few items are divided into."""
PATIENCE: Final = 1_000_000
"""Number of validations that no planned training reaches."""
VALIDATIONS: Final = 10
"""Number of validations of a training in a limited time."""


class Course(NamedTuple):
    """Sizes of the training of a task."""

    items_per_update: tuple[int, int]
    """Smallest and largest number of items in a batch."""
    num_updates: int
    """Number of updates, from which the epochs follow."""
    epochs: tuple[int, int]
    """Smallest and largest number of epochs."""


@final
@dataclass(frozen=True)
class LandingPlan:
    """Settings of a training whose learning rate falls to zero at its end."""

    batch_tokens: int
    steps_per_epoch: int
    num_epochs: int
    warmup_steps: int
    validate_every: int
    rate_growth: float = 1.0
    """Factor of the learning rate for batches that are larger than usual."""

    def settings(self, learning_rate: float, is_limited: bool, mean_over: Literal["pairs", "tokens"] = "pairs") -> Tree:
        """List the settings.

        Args:
            is_limited: whether there is a limit, at which the rate reaches zero; else it is the epochs.
            mean_over: what the loss is a mean over.

        Returns:
            Values for `heedful.runs.settings.SettingsLayers`.
        """
        return {
            "batch_tokens": self.batch_tokens,
            "validate_every": self.validate_every,
            "average": LANDING_AVERAGE,
            # The rate falls by plan, and what a higher rate has not improved a lower one may.
            "patience": PATIENCE,
            **({} if is_limited else {"max_epochs": self.num_epochs}),
            "optimizer": {
                "learning_rate": learning_rate * self.rate_growth,
                "mean_over": mean_over,
                "schedule": {"kind": LANDING_SCHEDULE, "warmup_steps": self.warmup_steps},
            },
        }


def plan_landing(
    course: Course,
    num_items: int,
    num_tokens: int,
    max_steps: int = 0,
    num_seen: float = 0.0,
    multiple: int = 1,
    pace: Throughput | None = None,
    items_per_unit: float = 1.0,
) -> LandingPlan:
    """Plan a training.

    The constants of courses were set by hand after single trainings, not by a grid (docs/results.md).

    Args:
        num_items: number of training items.
        num_tokens: number of their tokens, as batches count them.
        max_steps: last step, if the user has set it; 0 = no limit.
        num_seen: number of items that can be trained on in a limited time, if steps had no fixed part. Batches are
            smaller if there would be too few of them; 0 = no limit.
        multiple: factor of the number of epochs.
        pace: measured speeds, by which batches are larger where a step takes a fixed time whatever its size; None = it
            takes none.
        items_per_unit: items for a unit of the loss.
    """
    least, most = course.items_per_update
    usual = max(least, min(most, num_items // BATCHES_PER_EPOCH))
    balanced, most_items = 0.0, inf
    if pace is not None:
        balanced, most_items = pace.balanced_units * items_per_unit, pace.most_tokens * num_items / num_tokens
    items_per_update = largest_batch(usual, balanced, num_items, most_items)
    if num_seen:
        wanted = max(int(num_seen / course.num_updates - balanced), int(balanced / 4))
        items_per_update = max(least, min(items_per_update, wanted))
    batch_tokens = max(64, items_per_update * num_tokens // num_items)
    steps_per_epoch = max(1, num_tokens // batch_tokens)
    fewest, largest = course.epochs
    num_epochs = max(fewest, min(largest, round(course.num_updates / steps_per_epoch)))
    validate_every = max(1, steps_per_epoch // (1 if num_epochs * multiple > fewest else 2))
    num_steps = max_steps or multiple * num_epochs * steps_per_epoch
    if num_seen:
        num_steps = max(1, int(num_seen / (items_per_update + balanced)))
        validate_every = max(1, num_steps // VALIDATIONS)
    warmup_steps = max(1, num_steps // 20)
    if pace is not None and not num_seen:
        validate_every = max(validate_every, pace.least_interval(items_per_update / items_per_unit))
    growth = rate_growth(items_per_update, usual)
    return LandingPlan(batch_tokens, steps_per_epoch, multiple * num_epochs, warmup_steps, validate_every, growth)
