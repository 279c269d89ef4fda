"""The training loop: steps, validation, the best model, checkpoints, early stopping."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, Protocol, Self, final

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from heedful.config import Config
from heedful.errors import NonFiniteError, Stopped
from heedful.models.interface import Seq2Seq
from heedful.text.batching import Batch, BatchSampler, Position
from heedful.text.encoded import EncodedCorpus
from heedful.training.average import PolynomialAverage
from heedful.training.checkpoint import Checkpoint
from heedful.training.loss import LossSum, TrainingStep
from heedful.training.optimizer import OptimizerConfig, make_optimizer, restore_optimizer, store_optimizer
from heedful.training.precision import Precision, autocast
from heedful.training.schedule import rate_factor
from heedful.training.signals import StopRequest
from heedful.training.storage import Best, Storage

Metric = Literal["bleu", "chrf", "exact_match", "token_error_rate", "loss"]


class TrainingConfig(Config):
    """How a model is trained. Limits that are 0 do not limit."""

    seed: int = Field(default=1, ge=0, lt=1 << 31)
    batch_tokens: int = Field(default=0, ge=0)
    """Most positions of a batch on its longer side; 0 chooses from the corpus."""
    accumulate: int = Field(default=1, ge=1)
    """Batches whose gradients make one update."""
    label_smoothing: float = Field(default=0.1, ge=0.0, lt=1.0)
    clip_norm: float = Field(default=1.0, ge=0.0)
    """Gradients of a larger L2 norm are scaled down to it; 0 = never."""
    optimizer: OptimizerConfig = OptimizerConfig()
    average: float = Field(default=8.0, ge=0.0)
    """Validate and keep an average of the weights over about the last 1/average of the steps; 0 = the last weights."""
    precision: Precision = "auto"
    max_steps: int = Field(default=0, ge=0)
    max_epochs: int = Field(default=0, ge=0)
    max_target_tokens: int = Field(default=0, ge=0)
    """Real ones, end marks included, of all epochs together."""
    max_minutes: float = Field(default=0.0, ge=0.0)
    validate_every: int = Field(default=0, ge=0)
    """Steps between validations; 0 = about an epoch."""
    patience: int = Field(default=8, ge=1)
    """Validations in a row without a better score after which training ends."""
    select_by: Literal["auto", "bleu", "chrf", "exact_match", "token_error_rate", "loss"] = "auto"
    """Score that decides which model is kept; auto: BLEU of pieces, token error rate of words, chrF of characters."""

    @model_validator(mode="after")
    def _check_horizon(self) -> Self:
        kind = self.optimizer.schedule.kind
        if kind in ("linear", "cosine") and not self.max_steps:
            raise ValueError(f"the {kind} schedule falls to zero at the last step: set training.max_steps")
        return self


@dataclass(frozen=True)
class Validation:
    """What validating a model gave."""

    scores: Mapping[str, float]
    """By metric name; "loss" is the mean negative log likelihood of a gold token, in nats."""
    sample: tuple[str, str, str] = ("", "", "")
    """Source, reference and the model's output of one fixed sentence."""


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
        """
        self._config: Final = config
        self._module: Final = TrainingStep(model, config.label_smoothing)
        self._device = next(model.parameters()).device
        self._optimizer: Final = make_optimizer(model, config.optimizer)
        self._average: Final = PolynomialAverage(model, config.average)
        self._sampler: Final = BatchSampler(corpus, config.batch_tokens, config.seed)
        self._storage: Final = Storage(folder, keep, warn)
        self._validate: Final = validate
        self._watch: Final = watch
        self._course = _Course()
        self._window = _Window()
        self._is_ready = False
        self._saved_at = time.monotonic()

    def run(self) -> Outcome:
        """Train until a limit or until validation stops improving.

        Returns:
            How it ended.

        Raises:
            Stopped: SIGINT or SIGTERM; everything is saved.
            NonFiniteError: the loss or a gradient is not finite; nothing of it reached the weights.
            ResourceError: the last save failed; those before it are untouched.
        """
        self.resume()
        course = self._course
        batches = iter(self._sampler)
        self._saved_at = time.monotonic()
        with StopRequest() as stop:
            while not course.finished:
                self._update([next(batches) for _ in range(self._config.accumulate)])
                number = stop.signal_number
                course.finished = self._limit_reached()
                # The last step is validated too: a run shorter than an epoch leaves a model all the same.
                if course.finished or course.step % self._config.validate_every == 0:
                    self._validate_now()
                else:
                    self._look_after(is_stopping=number > 0)
                if number and not course.finished:
                    self._storage.ensure(f"stopped at step {course.step}")
                    raise Stopped(f"stopped at step {course.step}; the same command goes on", number)
        self._storage.ensure(f"finished at step {course.step}")
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
            loss.backward()
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
        course.epoch, course.batch = self._sampler.position
        self._window.loss += total * num_tokens
        self._window.num_tokens += num_tokens
        course.num_target_tokens += num_tokens
        taken = time.monotonic() - started
        course.seconds += taken
        course.update_seconds += taken

    def _tensors(self, batch: Batch) -> list[Tensor]:
        arrays = (batch.source, batch.source_lengths, batch.target_in, batch.target_out)
        return [torch.from_numpy(array).to(self._device, non_blocking=True) for array in arrays]

    def _validate_now(self) -> None:
        course = self._course
        progress = self._progress()
        started = time.monotonic()
        self._module.eval()
        with self._average.swapped_in(), torch.inference_mode():
            validation = self._validate(self._module.model)
        score = validation.scores[self._metric]
        score = -score if self._metric in ("loss", "token_error_rate") else score
        is_best = score > course.best
        if is_best:
            course.best, course.best_step, course.num_without_better = score, course.step, 0
            self._storage.hold(Best(score, course.step, self._averaged()))
        else:
            course.num_without_better += 1
        if not course.finished and course.num_without_better >= self._config.patience:
            course.finished = f"no better {self._metric} in {self._config.patience} validations"
        course.seconds += time.monotonic() - started
        facts: dict[str, Any] = {key: value for key, value in vars(progress).items() if key != "validation"}
        scores, sample = dict(validation.scores), validation.sample
        self._storage.metrics.add(facts | {"is_best": is_best, "scores": scores, "sample": sample})
        self._save()
        self._watch(replace(progress, validation=validation, is_best=is_best))
        self._window = _Window()

    def _averaged(self) -> dict[str, Tensor]:
        """What is validated and kept, tied weights once."""
        held = {name: parameter.detach() for name, parameter in self._module.model.named_parameters()}
        return held | self._average.tensors()

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

    def _look_after(self, is_stopping: bool) -> None:
        """Report and save between validations, where it is time."""
        now = time.monotonic()
        if now - self._window.started >= REPORT_SECONDS:
            self._watch(self._progress())
            self._window = _Window()
        if is_stopping or now - self._saved_at >= CHECKPOINT_SECONDS:
            self._save()

    def _save(self) -> None:
        tensors = {
            "model": dict(self._module.model.named_parameters()),
            "average": self._average.tensors(),
            "optimizer": store_optimizer(self._optimizer),
        }
        held = {name: {key: tensor.detach() for key, tensor in group.items()} for name, group in tensors.items()}
        self._storage.save(Checkpoint(self._course.step, held, vars(self._course)))
        self._saved_at = time.monotonic()

    def resume(self) -> int:
        """Go back to where the last training in the folder was, unless that was done.

        Returns:
            The step of the newest checkpoint that is whole; 0 where there is none.

        Raises:
            FileRefused: there are checkpoints but all are damaged.
        """
        if self._is_ready:
            return self._course.step
        self._is_ready = True
        checkpoint = self._storage.load()
        if checkpoint is None:
            return 0
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
        return self._course.step
