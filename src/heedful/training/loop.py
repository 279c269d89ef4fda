"""The training loop: steps, validation, the best model, checkpoints, early stopping."""

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Protocol, final

import torch
from torch import Tensor, nn

from heedful.errors import NonFiniteError, Stopped
from heedful.models.interface import Seq2Seq
from heedful.text.batching import Batch, BatchSampler, Position
from heedful.text.encoded import EncodedCorpus
from heedful.text.files import written_whole
from heedful.training.average import PolynomialAverage
from heedful.training.checkpoint import Checkpoint, CheckpointFolder
from heedful.training.config import TrainingConfig
from heedful.training.loss import LossSum, TrainingStep
from heedful.training.optimizer import make_optimizer, restore_optimizer, store_optimizer
from heedful.training.precision import autocast
from heedful.training.schedule import rate_factor
from heedful.training.signals import StopRequest
from heedful.training.step_times import NOT_TIMED, StepTimes


@dataclass(frozen=True)
class Validation:
    """What validating a model gave."""

    scores: Mapping[str, float]
    """By metric name; "loss" is the mean negative log likelihood of a gold token, in nats."""
    sample: tuple[str, str, str] = ("", "", "")
    """Source, reference and the model's output of one fixed sentence."""
    samples: tuple[tuple[str, str, str], ...] = ()
    """The same of a few fixed sentences, short to long."""


@dataclass(frozen=True)
class Progress:
    """What a person watching wants to know."""

    step: int
    epoch: float
    loss: float
    """Mean smoothed loss of a token since the last report, in nats."""
    tokens_per_second: float
    """Real target tokens trained on, since the last report."""
    learning_rate: float
    seconds: float
    """Trained so far, over all resumes."""
    done: float
    """Share of the tightest limit that is used up, in [0, 1]; 0 where there is no limit."""
    validation: Validation | None = None
    is_best: bool = False


class Watcher(Protocol):
    """Whoever follows the training: a progress bar, a log."""

    def __call__(self, progress: Progress) -> None:
        """Take a report.

        Args:
            progress: where training is.
        """
        ...


@dataclass
class _Course:
    """What changes while training, beside the tensors; all of it goes into checkpoints."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    num_target_tokens: int = 0
    update_seconds: float = 0.0
    """Of `seconds`, what updates took; the rest was validation."""
    recent_loss: float = 0.0
    """Since the last validation, like the two below: summed over tokens, in nats."""
    recent_tokens: int = 0
    recent_seconds: float = 0.0
    """Of updates."""
    best: float = -math.inf
    best_step: int = 0
    num_without_better: int = 0
    finished: str = ""


@dataclass(frozen=True)
class Outcome:
    """How training ended."""

    step: int
    seconds: float
    best: float
    best_step: int
    reason: str
    num_target_tokens: int
    """Trained on, in all epochs together."""
    tokens_per_second: float
    """Real target tokens per second of updates, validation left out; over all resumes."""


@dataclass
class _Window:
    """Sums since the last report."""

    started: float = field(default_factory=time.monotonic)
    loss: float = 0.0
    num_tokens: int = 0


REPORT_SECONDS: Final = 1.0
CHECKPOINT_SECONDS: Final = 300.0


@final
class Trainer:
    """Trains a model on an encoded corpus, and goes on where it stopped."""

    def __init__(
        self,
        model: Seq2Seq,
        config: TrainingConfig,
        corpus: EncodedCorpus,
        folder: Path,
        validate: Callable[[Seq2Seq], Validation],
        keep: Callable[[Mapping[str, Tensor]], None],
        watch: Watcher,
        warn: Callable[[str], None] = print,
        times: StepTimes = NOT_TIMED,
    ) -> None:
        """Put the parts together.

        Args:
            model: trained in place.
            config: how; `batch_tokens`, `validate_every` and `select_by` resolved.
            corpus: training pairs.
            folder: for checkpoints and metrics.jsonl.
            validate: given a model in evaluation mode.
            keep: given the weights of each new best model.
            watch: given reports.
            warn: told what a person should know.
            times: takes the time of every phase.
        """
        self._times: Final = times
        self._config: Final = config
        self._module: Final = TrainingStep(model, config.label_smoothing)
        self._device = next(model.parameters()).device
        self._optimizer: Final = make_optimizer(model, config.optimizer)
        self._average: Final = PolynomialAverage(model, config.average)
        self._sampler: Final = BatchSampler(corpus, config.batch_tokens, config.seed)
        self._checkpoints: Final = CheckpointFolder(folder / "checkpoints", warn=warn)
        self._metrics: Final = folder / "metrics.jsonl"
        self._validate: Final = validate
        self._keep: Final = keep
        self._watch: Final = watch
        self._course = _Course()
        self._window = _Window()

    def run(self) -> Outcome:
        """Train until a limit or until validation stops improving.

        Returns:
            How it ended.

        Raises:
            Stopped: SIGINT or SIGTERM; everything is saved.
            NonFiniteError: the loss or a gradient is not finite; nothing of it reached the weights.
        """
        self._resume()
        course = self._course
        batches = iter(self._sampler)
        saved_at = time.monotonic()
        with StopRequest() as stop:
            self._times.start()
            while not course.finished:
                drawn = [next(batches) for _ in range(self._config.accumulate)]
                self._times.mark("batch preparation")
                with self._times.step(sum(batch.num_target_tokens for batch in drawn), self._device):
                    self._update(drawn)
                now = time.monotonic()
                course.finished = self._limit_reached()
                # The last step is validated too: a run shorter than an epoch leaves a model all the same.
                is_due = bool(course.finished) or course.step % self._config.validate_every == 0
                if is_due:
                    self._validate_now()
                    self._times.mark("validation")
                elif now - self._window.started >= REPORT_SECONDS:
                    self._report()
                if is_due or stop.signal_number or now - saved_at >= CHECKPOINT_SECONDS:
                    saved_at = self._save()
                    self._times.mark("checkpoints")
                if stop.signal_number and not course.finished:
                    raise Stopped(f"stopped at step {course.step}; the same command goes on", stop.signal_number)
        self._times.end()
        speed = course.num_target_tokens / max(1e-9, course.update_seconds)
        found = (course.step, course.seconds, course.best, course.best_step, course.finished)
        return Outcome(*found, course.num_target_tokens, speed)

    def _update(self, batches: list[Batch]) -> None:
        course, config = self._course, self._config
        started = time.monotonic()
        course.step += 1
        # Dropout is a function of (seed, step): no generator has to be saved.
        torch.manual_seed((config.seed << 32) + course.step)
        self._module.train()
        num_tokens = sum(batch.num_target_tokens for batch in batches)
        total = 0.0
        for batch in batches:
            with autocast(config.precision, self._device):
                sums: LossSum = self._module(*self._tensors(batch))
            loss = sums.total / num_tokens
            total += float(loss.detach())
            self._times.mark("forward")
            loss.backward()
            self._times.mark("backward")
        norm = nn.utils.clip_grad_norm_(self._module.parameters(), config.clip_norm or math.inf, foreach=True)
        if not math.isfinite(total) or not bool(torch.isfinite(norm)):
            raise NonFiniteError(
                f"step {course.step}: the loss is {total} and its gradient's norm {float(norm)}; nothing of this step "
                "was kept; try a lower training.optimizer.learning_rate or training.precision=float32"
            )
        factor = rate_factor(config.optimizer.schedule, course.step, config.max_steps)
        for group in self._optimizer.param_groups:
            group["lr"] = config.optimizer.learning_rate * factor
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self._average.update(course.step)
        self._times.mark("optimizer")
        course.epoch, course.batch = self._sampler.position
        self._window.loss += total * num_tokens
        self._window.num_tokens += num_tokens
        course.num_target_tokens += num_tokens
        taken = time.monotonic() - started
        course.seconds += taken
        course.update_seconds += taken
        course.recent_loss += total * num_tokens
        course.recent_tokens += num_tokens
        course.recent_seconds += taken

    def _tensors(self, batch: Batch) -> list[Tensor]:
        arrays = (batch.source, batch.source_lengths, batch.target_in, batch.target_out)
        return [torch.from_numpy(array).to(self._device, non_blocking=True) for array in arrays]

    def _validate_now(self) -> None:
        course = self._course
        # Of all steps since the last validation: what is logged must not hang on when a report fell due.
        loss, speed = course.recent_loss / max(1, course.recent_tokens), course.recent_tokens / course.recent_seconds
        progress = replace(self._progress(), loss=loss, tokens_per_second=speed)
        course.recent_loss, course.recent_tokens, course.recent_seconds = 0.0, 0, 0.0
        started = time.monotonic()
        self._module.eval()
        with self._average.swapped_in(), torch.inference_mode():
            validation = self._validate(self._module.model)
            score = validation.scores[self._metric]
            score = -score if self._metric in ("loss", "token_error_rate") else score
            is_best = score > course.best
            if is_best:
                course.best, course.best_step, course.num_without_better = score, course.step, 0
                self._keep(dict(self._module.model.named_parameters()))  # tied ones once
            else:
                course.num_without_better += 1
        if not course.finished and course.num_without_better >= self._config.patience:
            course.finished = f"no better {self._metric} in {self._config.patience} validations"
        course.seconds += time.monotonic() - started
        self._log(progress, validation, is_best)
        self._watch(replace(progress, validation=validation, is_best=is_best))
        self._window = _Window()

    @property
    def _metric(self) -> str:
        return self._config.select_by

    def _limit_reached(self) -> str:
        course, config = self._course, self._config
        if config.max_steps and course.step >= config.max_steps:
            return f"{config.max_steps} steps"
        if config.max_epochs and course.epoch + self._epoch_share() >= config.max_epochs:
            return f"{config.max_epochs} epochs"
        if config.max_target_tokens and course.num_target_tokens >= config.max_target_tokens:
            return f"{config.max_target_tokens} target tokens"
        if config.max_minutes and course.seconds >= 60.0 * config.max_minutes:
            return f"{config.max_minutes:g} minutes"
        return ""

    def _epoch_share(self) -> float:
        return self._course.batch / max(1, len(self._sampler.plan(self._course.epoch)))

    def _progress(self) -> Progress:
        course, config, window = self._course, self._config, self._window
        epoch = course.epoch + self._epoch_share()
        shares = [
            course.step / config.max_steps if config.max_steps else 0.0,
            epoch / config.max_epochs if config.max_epochs else 0.0,
            course.num_target_tokens / config.max_target_tokens if config.max_target_tokens else 0.0,
            course.seconds / (60.0 * config.max_minutes) if config.max_minutes else 0.0,
        ]
        return Progress(
            step=course.step,
            epoch=epoch,
            loss=window.loss / max(1, window.num_tokens),
            tokens_per_second=window.num_tokens / max(1e-9, time.monotonic() - window.started),
            learning_rate=float(self._optimizer.param_groups[0]["lr"]),
            seconds=course.seconds,
            done=min(1.0, max(shares)),
        )

    def _report(self) -> None:
        self._watch(self._progress())
        self._window = _Window()

    def _log(self, progress: Progress, validation: Validation, is_best: bool) -> None:
        facts: dict[str, Any] = {key: value for key, value in vars(progress).items() if key != "validation"}
        facts |= {"is_best": is_best, "scores": dict(validation.scores), "sample": validation.sample}
        facts |= {"samples": validation.samples} if validation.samples else {}
        self._metrics.parent.mkdir(parents=True, exist_ok=True)
        with self._metrics.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(facts, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _save(self) -> float:
        model = self._module.model
        tensors = {
            "model": dict(model.named_parameters()),
            "average": self._average.tensors(),
            "optimizer": store_optimizer(self._optimizer),
        }
        held = {name: {key: tensor.detach() for key, tensor in group.items()} for name, group in tensors.items()}
        self._checkpoints.save(Checkpoint(self._course.step, held, vars(self._course)))
        return time.monotonic()

    def _cut_metrics(self, step: int) -> None:
        """Forget what was logged after a checkpoint, half a line too: it will be logged again."""
        if not self._metrics.is_file():
            return
        lines = self._metrics.read_bytes().split(b"\n")[:-1]
        kept = list(takewhile(lambda line: _logged_step(line) <= step, lines))
        if len(b"\n".join([*kept, b""])) != self._metrics.stat().st_size:
            with written_whole(self._metrics) as file:
                file.writelines(line.decode() + "\n" for line in kept)

    def _resume(self) -> None:
        checkpoint = self._checkpoints.load_newest()
        self._cut_metrics(checkpoint.step if checkpoint else 0)
        if checkpoint is None:
            return
        with torch.no_grad():
            for name, parameter in self._module.model.named_parameters():
                parameter.copy_(checkpoint.tensors["model"][name])
        self._average.restore(checkpoint.tensors["average"])
        restore_optimizer(self._optimizer, checkpoint.tensors["optimizer"])
        self._course = _Course(**checkpoint.state)
        # A limit that ended the run may have been raised since.
        self._course.finished = self._limit_reached() if self._course.finished else ""
        if self._course.num_without_better >= self._config.patience:
            self._course.finished = f"no better {self._metric} in {self._config.patience} validations"
        self._sampler.position = Position(self._course.epoch, self._course.batch)


def _logged_step(line: bytes) -> float:
    """The step of a line of metrics.jsonl; one that nobody could write is later than all."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf
