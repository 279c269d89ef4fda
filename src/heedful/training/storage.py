"""Files of a training: checkpoints, best model, log; a temporary disk failure loses no work."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, final

from torch import Tensor

from heedful.errors import ResourceError
from heedful.training.checkpoint import Checkpoint, CheckpointFolder
from heedful.training.metrics import MetricsLog

Keep = Callable[[Mapping[str, Tensor]], None]
"""Callback that writes the weights of a new best model; raises ResourceError."""


@dataclass(frozen=True)
class Best:
    """Model that is better than all before."""

    score: float
    step: int
    weights: Mapping[str, Tensor]


@final
class Storage:
    """Writer of a training's files; content that could not be written stays in memory until the next save."""

    def __init__(self, folder: Path, keep: Keep, warn: Callable[[str], None]) -> None:
        """Set the folder.

        Args:
            folder: folder of checkpoints and metrics.jsonl.
            keep: callback for the weights of each new best model.
            warn: callback for a line about each failed save.
        """
        self.metrics: Final = MetricsLog(folder / "metrics.jsonl")
        self._checkpoints: Final = CheckpointFolder(folder / "checkpoints", warn=warn)
        self._keep: Final = keep
        self._warn: Final = warn
        self._unkept: Best | None = None
        self._kept: dict[str, float] = {"best": -math.inf, "best_loss": math.inf, "best_step": 0}
        self.saved_step = 0
        """Step of the newest complete checkpoint; 0 = none."""
        self._failure = ""

    def load(self, parameter_order: Sequence[str] = ()) -> Checkpoint | None:
        """Read the newest complete checkpoint.

        Args:
            parameter_order: names of the optimizer's parameters in its own order, by which older formats named them.

        Returns:
            The checkpoint, or None if there is none yet.

        Raises:
            FileRefused: there are checkpoints but all are damaged, or the newest is of another model.
            NewerFormat: the newest was saved by a newer heedful.
        """
        checkpoint = self._checkpoints.load_newest(parameter_order)
        if checkpoint is not None:
            self.saved_step = checkpoint.step
            self._kept = {name: checkpoint.state.get(name, value) for name, value in self._kept.items()}
        return checkpoint

    def cut(self) -> None:
        """Remove log lines after the checkpoint that was read; report damaged ones, which are removed too."""
        if number := self.metrics.cut(self.saved_step):
            self._warn(f"{self.metrics.path}: {number} damaged line{'s' * (number > 1)} left out")

    def hold(self, best: Best) -> None:
        """Hold the best model so far, to be written by the next save.

        Args:
            best: best model; its weights must not change before that save.
        """
        self._unkept = best

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the best model, the log and a checkpoint, each even if another fails; report failures.

        Args:
            checkpoint: its state's "best" and "best_step" are those of the best model.
        """
        failures: list[str] = []
        best = self._unkept
        if best is not None:
            try:
                self._keep(best.weights)
                self._kept = {"best": best.score, "best_loss": math.inf, "best_step": best.step}
                self._unkept = None
            except ResourceError as error:
                failures.append(str(error))
                # A run that resumes from this checkpoint finds an older model in the folder, and needs its score.
                checkpoint = replace(checkpoint, state={**checkpoint.state, **self._kept})
        try:
            self.metrics.flush()
        except OSError as error:
            failures.append(f"{self.metrics.path}: not written: {error.strerror}")
        try:
            self._checkpoints.save(checkpoint)
            self.saved_step = checkpoint.step
        except ResourceError as error:
            failures.append(str(error))
        if best is not None and self._unkept is not None:
            self._unkept = replace(best, weights={name: tensor.clone() for name, tensor in best.weights.items()})
        self._failure = failures[0] if failures else ""
        if self._failure:
            self._warn(f"{self._failure}; training continues and retries at the next save")

    def ensure(self, ending: str) -> None:
        """Raise an error if anything is unsaved at the end of training.

        Args:
            ending: how it ends, such as "finished at step 9".

        Raises:
            ResourceError: the last save failed.
        """
        if self._failure:
            last = f"the last checkpoint is of step {self.saved_step}" if self.saved_step else "there is no checkpoint"
            raise ResourceError(
                f"{ending}, but not saved: {self._failure}; {last}; free some space and run the same command"
            )
