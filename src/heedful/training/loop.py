"""Training loop: steps, validation, best model, checkpoints, early stopping."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, final

import torch
from torch import Tensor, nn

from heedful.cpu.threads import adapt_threads
from heedful.data.batch import Batch, Position, Sampler
from heedful.errors import FileRefused, NonFiniteError, Stopped
from heedful.layers.normalizing import is_soft_step, set_soft
from heedful.training.checkpoint import Checkpoint
from heedful.training.checkpoint_formats import read_state
from heedful.training.config import TrainingConfig
from heedful.training.distributed import Ranks, SingleProcess
from heedful.training.loss import TrainingStep
from heedful.training.lost_device import telling_lost_device
from heedful.training.memory_settings import tuned_process
from heedful.training.progress import Ends, Outcome, Progress, Validation, Watcher, Window
from heedful.training.schedule import rate_factor
from heedful.training.signals import Interrupted, StopRequest, WorkingTime
from heedful.training.step_times import NOT_TIMED, StepTimes
from heedful.training.storage import Best, Storage
from heedful.training.train_state import StepSums, TrainState


@dataclass
class TrainerState:
    """State of the training loop except tensors; part of every checkpoint."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    num_target_tokens: int = 0
    update_seconds: float = 0.0
    """Seconds spent in updates, part of `seconds`; the rest was validation."""
    recent_loss: float = 0.0
    """Loss since the last validation, summed over tokens, in nats."""
    recent_tokens: int = 0
    recent_seconds: float = 0.0
    """Seconds spent in updates since the last validation."""
    best: float = -math.inf
    """Best selection score so far, negated if lower is better; of equal ones, that with the lower loss."""
    best_loss: float = math.inf
    best_step: int = 0
    num_without_better: int = 0
    learning_rate: float = 0.0
    """Learning rate of the last update; 0 in checkpoints from before it was stored."""
    finished: str = ""


class _PendingStep(NamedTuple):
    """Step that was launched, and whose loss was not read yet."""

    number: int
    sums: StepSums
    divisor: int
    num_tokens: int


REPORT_SECONDS: Final = 1.0
CHECKPOINT_SECONDS: Final = 300.0


@final
class Trainer:
    """Resumable training loop."""

    def __init__(
        self,
        step: TrainingStep,
        config: TrainingConfig,
        sampler: Sampler,
        folder: Path,
        validate: Callable[[nn.Module], Validation],
        higher_is_better: bool,
        keep: Callable[[Mapping[str, Tensor]], None],
        watch: Watcher,
        warn: Callable[[str], None] = print,
        ranks: Ranks | None = None,
        times: StepTimes = NOT_TIMED,
        test_seconds: Callable[[float], float] = lambda seconds: 0.0,
    ) -> None:
        """Assemble the parts.

        Args:
            step: model and loss; the model is trained in place.
            config: settings, with `batch_tokens`, `validate_every` and `select_by` resolved.
            folder: folder of checkpoints and metrics.jsonl.
            validate: function that validates a model in evaluation mode.
            higher_is_better: whether a higher score `select_by` is better.
            keep: callback for the weights of each new best model.
            watch: callback for progress reports.
            warn: callback for warnings.
            ranks: processes that share each batch; None = this one alone. With several, only the first validates,
                writes and calls callbacks.
            test_seconds: function that estimates the time needed after training, such as for the test, from the time
                of one validation; both in seconds. `max_minutes` covers this time too.
        """
        self._times: Final = times
        self._ranks: Final = ranks or SingleProcess()
        self._config: Final = config
        self._train_state: Final = TrainState(step, config, self._ranks, times, warn)
        self._sampler: Final = sampler
        self._folder: Final = folder
        self._storage: Final = Storage(folder, keep, warn)
        self._validate: Final = validate
        self._sign: Final = 1.0 if higher_is_better else -1.0
        self._watch: Final = watch
        self._warn: Final = warn
        self._seconds_after: Final = test_seconds
        self._validation_seconds = 0.0
        self._remaining_work = 0.0
        self._state = TrainerState()
        self._window = Window()
        self._pending: Final[list[_PendingStep]] = []
        self._passed = 0.0
        self._is_ready = False
        self._time: Final = WorkingTime()
        self._saved_at = time.monotonic()

    def run(self) -> Outcome:
        """Train until a limit or until validation stops improving.

        Raises:
            Stopped: SIGINT or SIGTERM; everything is saved.
            NonFiniteError: the loss or a gradient is not finite; the weights are unaffected.
            ResourceError: the last save failed, with earlier ones untouched; or another process was lost.
        """
        self.resume()
        state = self._state
        batches = iter(self._sampler)
        self._saved_at = time.monotonic()
        device_errors = telling_lost_device(self._train_state.device, lambda: state.step, lambda: self.saved_step)
        with StopRequest(self._warn) as stop, self._time, tuned_process(), device_errors:
            self._times.start()
            while self._is_validation_due or not state.finished:
                if self._is_validation_due:
                    number = self._validate_now(stop)
                else:
                    number = self._advance(batches, stop)
                if number:
                    self._ensure(f"stopped at step {state.step}")
                    raise Stopped(f"stopped at step {state.step}; run the same command to continue", number)
        self._times.end()
        self._ensure(f"finished at step {state.step}")
        speed = state.num_target_tokens / max(1e-9, state.update_seconds)
        totals = (state.step, state.seconds, self._sign * state.best, state.best_step, state.finished)
        return Outcome(*totals, state.num_target_tokens, speed, self._epochs())

    def scores(self) -> dict[str, float]:
        """Validate the present weights; all processes call this.

        Returns:
            Scores by metric; empty on every process but the first.
        """
        weights, scores = self._train_state.averaged(), dict[str, float]()

        def measure() -> list[float]:
            with self._train_state.evaluation_weights(weights) as model:
                scores.update(self._validate(model).scores)
            return []

        self._ranks.first(measure)
        return scores

    def _advance(self, batches: Iterator[Batch], stop: StopRequest) -> int:
        """Make one step, and save where a signal or the clock asks for it.

        Returns:
            The signal that arrived at any process; 0 = none.
        """
        state = self._state
        # Other numbers of threads may give other last bits, and so other weights in each process.
        if self._ranks.place.size == 1 and (line := adapt_threads()):
            self._warn(line)
        drawn = [next(batches) for _ in range(self._config.accumulate)]
        self._times.mark("batch preparation")
        with self._times.step(sum(batch.num_units for batch in drawn), self._train_state.device):
            self._update(drawn)
            number, is_save_due = self._agree(stop.signal_number)
            self._times.mark("optimizer")
        state.finished = self._limit_reached()
        if number:
            self._save()
        elif not self._is_validation_due:
            self._report()
            if is_save_due:
                self._save()
        return number

    @property
    def _is_validation_due(self) -> bool:
        """Whether the newest step has to be validated: at regular steps and at the last one.

        The last step is validated too, so that a run shorter than an epoch still leaves a model. A run that a signal
        stopped in a validation repeats it when it is resumed.
        """
        state = self._state
        is_regular = state.step % self._config.validate_every == 0
        return state.recent_tokens > 0 and (is_regular or bool(state.finished))

    def _agree(self, signal_number: int) -> tuple[int, bool]:
        """Let all processes make the same decision, by the signal of any and the clock of the first.

        Returns:
            The signal, 0 = none, and whether it is time for a checkpoint.
        """
        state = self._state
        waited = time.monotonic() - self._saved_at
        remaining = self._estimated_work()
        rows = self._ranks.gather(signal_number, state.seconds, state.update_seconds, waited, remaining)
        _, state.seconds, state.update_seconds, waited, self._remaining_work = rows[0]
        return int(max(row[0] for row in rows)), waited >= CHECKPOINT_SECONDS

    def _update(self, batches: list[Batch]) -> None:
        state, config = self._state, self._config
        self._time.restart()
        state.step += 1
        # Dropout is a function of (seed, step, rank), so no generator state has to be saved.
        torch.manual_seed(self._ranks.seed(config.seed, state.step))
        if config.soft_start or config.soft_share:
            set_soft(
                self._train_state.model, is_soft_step(state.step, config.soft_start, config.soft_share, config.seed)
            )
        num_tokens = sum(batch.num_units for batch in batches)
        is_by_token = config.optimizer.mean_over == "tokens"
        divisor = num_tokens if is_by_token else sum(len(batch) for batch in batches)
        num_parts = self._train_state.num_parts
        sums = self._train_state.differentiate(batches, divisor)
        self._pending.append(_PendingStep(state.step, sums, divisor, num_tokens))
        if self._train_state.num_parts > num_parts:
            self._warn(
                f"out of memory on {self._train_state.device} at step {state.step}: from here on each batch is "
                f"computed in {self._train_state.num_parts} parts, whose gradients add up to the same"
            )
        self._settle(1 if self._train_state.is_ahead else 0)
        factor = rate_factor(config.optimizer.schedule, state.step, config.max_steps, self._passed, self._share())
        state.learning_rate = config.optimizer.learning_rate * factor
        self._train_state.update(state.step, state.learning_rate)
        state.epoch, state.batch = self._sampler.position
        self._passed = self._epochs()
        state.num_target_tokens += num_tokens
        duration = self._time.seconds
        state.seconds += duration
        state.update_seconds += duration
        state.recent_tokens += num_tokens
        state.recent_seconds += duration

    def _settle(self, num_left: int = 0) -> None:
        """Read the losses of steps that were launched, but for the newest ones.

        Args:
            num_left: number of steps whose losses are not read yet.

        Raises:
            NonFiniteError: one of them is not finite; no step from it on is kept.
        """
        while len(self._pending) > num_left:
            step = self._pending.pop(0)
            total, norm = step.sums.read()
            if not math.isfinite(total) or not math.isfinite(norm):
                raise NonFiniteError(
                    f"step {step.number}: the loss is {total} and its gradient's norm {norm}; nothing of this step "
                    "was kept; try a lower training.optimizer.learning_rate or training.precision=float32"
                )
            self._window.loss += total * step.divisor
            self._window.num_tokens += step.num_tokens
            self._state.recent_loss += total * step.divisor

    def _validate_now(self, stop: StopRequest) -> int:
        """Validate, select the best model and save, unless a signal ends the validation at once.

        Returns:
            The signal that arrived at any process; 0 = none.
        """
        state = self._state
        self._settle()
        # Averaged over all steps since the last validation, so that the log does not depend on when reports are due.
        loss = state.recent_loss / max(1, state.recent_tokens)
        speed = state.recent_tokens / max(1e-9, state.recent_seconds)
        progress = replace(self._progress(), loss=loss, tokens_per_second=speed)
        self._time.restart()
        weights = self._train_state.averaged()
        validations: list[Validation] = []

        def measure() -> list[float]:
            try:
                with self._train_state.evaluation_weights(weights) as model, stop.interruptible():
                    validations.append(self._validate(model))
            except Interrupted:
                return [0.0, 0.0, self._time.seconds, stop.signal_number]
            scores = validations[0].scores
            return [self._sign * scores[self._config.select_by], scores.get("loss", 0.0), self._time.seconds, 0]

        score, valid_loss, duration, number = self._ranks.first(measure)
        state.seconds += duration
        if number:
            self._save()
            return int(number)
        self._validation_seconds = duration
        state.recent_loss, state.recent_tokens, state.recent_seconds = 0.0, 0, 0.0
        is_best = (score, -valid_loss) > (state.best, -state.best_loss)
        state.num_without_better = 0 if score > state.best else state.num_without_better + 1
        if is_best:
            state.best, state.best_loss, state.best_step = score, valid_loss, state.step
            self._storage.hold(Best(score, state.step, weights))
        if not state.finished and state.num_without_better >= self._config.patience:
            state.finished = f"no better {self._config.select_by} in {self._config.patience} validations"
        if validations:
            shown = vars(progress).items()
            facts: dict[str, Any] = {key: value for key, value in shown if key not in ("validation", "ends")}
            facts |= {"is_best": is_best, "scores": dict(validations[0].scores), "sample": validations[0].sample}
            self._storage.metrics.add(facts | ({"samples": validations[0].samples} if validations[0].samples else {}))
        self._times.mark("validation")
        number, _ = self._agree(stop.signal_number)
        # A step more would need another validation, so the time may be up before it.
        state.finished = state.finished or self._limit_reached()
        self._save()
        if validations:
            self._watch(replace(progress, validation=validations[0], is_best=is_best))
        self._window = Window()
        return number

    @property
    def recording_problem(self) -> str:
        """Reason why steps on a device that records are launched operation by operation; empty = they are not."""
        return self._train_state.recording_problem

    @property
    def saved_step(self) -> int:
        """Step of the newest checkpoint; 0 = none."""
        return self._storage.saved_step

    @property
    def _minutes(self) -> str:
        return f"{self._config.max_minutes:g} minute{'' if self._config.max_minutes == 1 else 's'}"

    def _limit_reached(self) -> str:
        state, config = self._state, self._config
        if config.max_steps and state.step >= config.max_steps:
            return f"{config.max_steps} steps"
        if config.max_epochs and self._passed >= config.max_epochs:
            return f"{config.max_epochs} epochs"
        if config.max_target_tokens and state.num_target_tokens >= config.max_target_tokens:
            return f"{config.max_target_tokens} target tokens"
        if config.max_minutes and state.seconds + self._remaining_work >= 60.0 * config.max_minutes:
            return self._minutes
        return ""

    def _estimated_work(self) -> float:
        """Estimated seconds from the last step to the end: a last validation, and the work after training."""
        state = self._state
        num_validations = state.step // self._config.validate_every
        # After a resume, only the mean over all validations is known.
        mean = (state.seconds - state.update_seconds) / num_validations if num_validations else 0.0
        validation = self._validation_seconds or mean
        return validation + self._seconds_after(validation)

    def _epochs(self) -> float:
        """Number of epochs so far, with fractions."""
        return self._state.epoch + self._state.batch / max(1, self._sampler.num_batches(self._state.epoch))

    def _share(self) -> float:
        """Part of the training that is done; the work after the last step counts, so that it ends at 1."""
        state, seconds = self._state, self._state.seconds + self._remaining_work
        return self._config.share_done(state.step, self._passed, state.num_target_tokens, seconds)

    def _progress(self) -> Progress:
        state, window = self._state, self._window
        return Progress(
            step=state.step,
            epoch=self._passed,
            loss=window.loss / max(1, window.num_tokens),
            tokens_per_second=window.num_tokens / max(1e-9, time.monotonic() - window.started),
            learning_rate=state.learning_rate or self._train_state.rate,
            seconds=state.seconds,
            done=self._share(),
            unit=self._sampler.unit,
            ends=Ends(self._config.max_epochs, state.num_without_better, self._config.patience),
        )

    def _report(self) -> None:
        if self._ranks.is_first and time.monotonic() - self._window.started >= REPORT_SECONDS:
            self._watch(self._progress())
            self._window = Window()

    def _save(self) -> None:
        self._settle()
        checkpoint = Checkpoint(self._state.step, self._train_state.tensors(), vars(self._state))

        def write() -> list[float]:
            self._storage.save(checkpoint)
            return []

        self._ranks.first(write)
        self._saved_at = time.monotonic()
        self._times.mark("checkpoints")

    def _ensure(self, ending: str) -> None:
        def check() -> list[float]:
            self._storage.ensure(ending)
            return []

        self._ranks.first(check)

    def resume(self) -> int:
        """Restore the newest checkpoint of the folder, unless that is done already.

        Returns:
            The step of the newest undamaged checkpoint; 0 = none.

        Raises:
            FileRefused: there are checkpoints but all are damaged, or not every process sees them, or a newer heedful
                saved them.
        """
        if self._is_ready:
            return self._state.step
        self._is_ready = True
        checkpoint = self._storage.load(self._train_state.parameter_order)
        steps = self._ranks.gather(checkpoint.step if checkpoint else 0)
        if len(set(steps)) > 1:
            raise FileRefused(
                f"{self._folder}: the processes read different checkpoints; give all of them access to one folder"
            )
        if self._ranks.is_first:
            self._storage.cut()
        if checkpoint is None:
            return 0
        self._train_state.restore(checkpoint.tensors)
        self._state = read_state(
            TrainerState, checkpoint.state, self._folder / "checkpoints" / f"{checkpoint.step:06d}"
        )
        self._sampler.position = Position(self._state.epoch, self._state.batch)
        self._passed = self._epochs()
        self._remaining_work = self._ranks.gather(self._estimated_work())[0][0]
        # The limit that ended the run may have been raised meanwhile. One of time ended it before the time was up.
        if self._state.finished != self._minutes:
            self._state.finished = self._limit_reached() if self._state.finished else ""
        if self._state.num_without_better >= self._config.patience:
            self._state.finished = f"no better {self._config.select_by} in {self._config.patience} validations"
        return self._state.step
