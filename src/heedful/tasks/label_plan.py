"""Plan of the training of a classifier: batches and epochs that suit the numbers of its texts and labels."""

from dataclasses import dataclass
from typing import Final, final

from heedful.config.base import Tree
from heedful.tasks.plan import LANDING_AVERAGE, LANDING_SCHEDULE

TEXTS_PER_UPDATE: Final = (16, 64)
"""Smallest and largest number of texts in a batch of a classifier."""
BATCHES_PER_EPOCH: Final = 60
"""Number of batches that few texts are divided into."""
WANTED_UPDATES: Final = 450
UPDATES_PER_LABEL: Final = 6
MOST_UPDATES: Final = 1_500
"""Number of updates of a classifier: the least, more for each label, and the most."""
EPOCHS: Final = (3, 14)
"""Smallest and largest number of epochs of a classifier."""
PATIENT: Final = 3
"""Epochs, in multiples of the usual ones, that a classifier may be trained for in a limited time."""


@final
@dataclass(frozen=True)
class LabelPlan:
    """Settings of the training of a classifier, whose learning rate falls to zero at its end."""

    batch_tokens: int
    steps_per_epoch: int
    num_epochs: int
    warmup_steps: int

    def settings(self, learning_rate: float, is_limited: bool) -> Tree:
        """List the settings.

        Args:
            is_limited: whether the user has set a limit, at which the rate reaches zero; else it is the epochs.

        Returns:
            Values for `heedful.runs.settings.SettingsLayers`.
        """
        return {
            "batch_tokens": self.batch_tokens,
            "validate_every": max(1, self.steps_per_epoch // (1 if self.num_epochs > EPOCHS[0] else 2)),
            "average": LANDING_AVERAGE,
            # The rate falls by plan, and what a higher rate has not improved a lower one may.
            "patience": PATIENCE,
            **({} if is_limited else {"max_epochs": self.num_epochs}),
            "optimizer": {
                "learning_rate": learning_rate,
                "mean_over": "pairs",
                "schedule": {"kind": LANDING_SCHEDULE, "warmup_steps": self.warmup_steps},
            },
        }


PATIENCE: Final = 1_000_000
"""Number of validations that no planned training reaches."""


def plan_labels(num_texts: int, num_tokens: int, num_labels: int, has_minutes: bool, max_steps: int) -> LabelPlan:
    """Plan the training of a classifier.

    The constants were set by hand after single trainings on six corpora, not by a grid (docs/results.md).

    Args:
        num_texts: number of training texts.
        num_tokens: number of their tokens.
        num_labels: number of labels.
        has_minutes: whether there is a limit of time, which is used.
        max_steps: last step, if the user has set it; 0 = no limit.
    """
    least, most = TEXTS_PER_UPDATE
    texts_per_update = max(least, min(most, num_texts // BATCHES_PER_EPOCH))
    batch_tokens = max(64, texts_per_update * num_tokens // num_texts)
    steps_per_epoch = max(1, num_tokens // batch_tokens)
    wanted = min(MOST_UPDATES, WANTED_UPDATES + UPDATES_PER_LABEL * num_labels)
    num_epochs = max(EPOCHS[0], min(EPOCHS[1], round(wanted / steps_per_epoch)))
    if has_minutes:
        num_epochs *= PATIENT
    num_steps = max_steps or num_epochs * steps_per_epoch
    return LabelPlan(batch_tokens, steps_per_epoch, num_epochs, max(1, num_steps // 20))
