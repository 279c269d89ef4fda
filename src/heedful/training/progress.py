"""Reports of a training: validations, progress for display, and the outcome."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Protocol


@dataclass(frozen=True)
class Validation:
    """Result of a validation."""

    scores: Mapping[str, float]
    """Scores by metric name; "loss" is the mean negative log likelihood of a gold token, in nats."""
    sample: tuple[str, str, str] = ("", "", "")
    """Source, reference and output of one fixed sentence."""
    samples: tuple[tuple[str, str, str], ...] = ()
    """Sources, references and outputs of a few fixed sentences, short to long."""


@dataclass(frozen=True)
class Ends:
    """Ends of a training that say nothing of the time until then."""

    max_epochs: int = 0
    """Largest number of passes over the data; 0 = no limit."""
    num_without_better: int = 0
    """Number of consecutive validations without a better score so far."""
    patience: int = 0
    """Number of such validations that end the training; 0 = unknown."""


@dataclass
class Window:
    """Sums since the last report."""

    started: float = field(default_factory=time.monotonic)
    loss: float = 0.0
    num_tokens: int = 0


@dataclass(frozen=True)
class Progress:
    """Progress report for display."""

    step: int
    epoch: float
    loss: float
    """Mean smoothed loss of a token since the last report, in nats."""
    tokens_per_second: float
    """Target tokens, or other units of the loss, per second since the last report, padding not counted."""
    learning_rate: float
    seconds: float
    """Seconds of training so far, over all resumes."""
    done: float
    """Used share of the limit that is nearest, in [0, 1]; 0 without a limit."""
    validation: Validation | None = None
    is_best: bool = False
    unit: str = "tokens"
    """Name of the units that `tokens_per_second` counts."""
    ends: Ends = Ends()


class Watcher(Protocol):
    """Callback that follows the training, such as a progress bar or a log."""

    def __call__(self, progress: Progress) -> None:
        """Receive a report.

        Args:
            progress: current state of the training.
        """
        ...


@dataclass(frozen=True)
class Outcome:
    """Outcome of a training."""

    step: int
    seconds: float
    best: float
    """Best score by which the model is selected, as validated."""
    best_step: int
    reason: str
    num_target_tokens: int
    """Target tokens trained on, in all epochs together."""
    tokens_per_second: float
    """Target tokens per second of updates, without padding and validation, over all resumes."""
    num_epochs: float = inf
    """Number of passes over the data, with fractions."""
