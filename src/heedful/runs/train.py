"""Training run from data to model: prepare data, resolve settings, train, save the best model in its folder."""

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, final

import torch
from torch import nn

from heedful.config.base import merge, read_toml, to_toml, validate
from heedful.cpu.contention import watching_contention
from heedful.data.batch import Sampler
from heedful.data.in_memory import in_rows
from heedful.data.same_data import EXPERIMENT
from heedful.data.split import validated_on
from heedful.engines.folder import CONFIG, MANIFEST, open_folder
from heedful.errors import (
    ConfigError,
    EndedElsewhere,
    NewerFormat,
    NonFiniteError,
    ResourceError,
    Stopped,
    UsageError,
)
from heedful.evaluation.metrics.table import score_text
from heedful.evaluation.shown import Shown
from heedful.files.atomic_write import atomic_write
from heedful.models.store import save_model, store_settings
from heedful.pages.record import TEST
from heedful.pages.training import PAGE, write_training_page
from heedful.runs.facts import RunFacts, find_files, model_folder, read_facts, request_task
from heedful.runs.pretrained import PretrainedModel, with_pretrained
from heedful.runs.request import TrainRequest
from heedful.runs.settings import SettingsLayers
from heedful.runs.throughput_measurement import measure_throughput
from heedful.runs.training_device import TrainingDevice, describe_device, faster_device, settled_device
from heedful.tasks.advice import named_sections
from heedful.tasks.experiment import Experiment, upgraded
from heedful.tasks.interface import Prepared, Task
from heedful.tasks.throughput import Throughput
from heedful.text.durations import duration
from heedful.text.text_files import language_names
from heedful.training.config import TrainingConfig
from heedful.training.distributed import Ranks, process_group
from heedful.training.frozen import freeze
from heedful.training.history import History
from heedful.training.loop import Trainer
from heedful.training.loss import TrainingStep
from heedful.training.precision import resolve_precision
from heedful.training.progress import Outcome, Validation, Watcher
from heedful.training.step_times import NOT_TIMED, StepTimes
from heedful.training.tensorboard import shown_in_tensorboard
from heedful.version import __version__

VALIDATIONS_OF_TEST: Final = 4.0
"""Time of a test in validations of as many items, since it searches with a beam."""
MOST_TEST_SHARE: Final = 0.1
"""Largest share of a limit of time that training leaves for the test."""


@dataclass(frozen=True)
class RunInfo:
    """Facts about a run whose data and model are ready, before its first step."""

    folder: Path
    experiment: Experiment
    num_parameters: int
    data: Prepared
    step: int
    """Step of the newest complete checkpoint, from which training continues; 0 = from the start."""
    advice: tuple[str, ...] = ()
    """Lines about the reasons for chosen settings, and about what can be expected."""
    pretrained: PretrainedModel | None = None
    """Trained model that this training goes on from."""
    device: str = "cpu"
    """PyTorch's device that trains."""
    device_lines: tuple[str, ...] = ()
    """Lines about the reason for a device that the user did not name, if one is needed, and about device, number
    format, batch and time."""


@final
@dataclass(frozen=True)
class TrainResult(Shown):
    """Result of a training.

    Example:
        >>> TrainResult(Outcome(200, 75.0, 31.25, 150, "no better", 9000, 120.0), None)
        <TrainResult: best 31.25 at step 150 of 200, 1 min 15 s>
    """

    outcome: Outcome
    """Steps, time and best score of the training."""
    info: RunInfo | None
    """Facts about the run; None on every process but the first."""

    def __repr__(self) -> str:
        name = f" {str(self.info.folder)!r}" if self.info else ""
        done = self.outcome
        best = f"best {done.best:.4g} at step {done.best_step:,} of {done.step:,}"
        return f"<TrainResult{name}: {best}, {duration(done.seconds)}>"

    def to_text(self) -> str:
        done = self.outcome
        rows = [("model", str(self.info.folder))] if self.info else []
        rows += [("best", f"{done.best:.4g} at step {done.best_step:,} of {done.step:,}")]
        rows += [("time", duration(done.seconds)), ("end", done.reason)]
        return "".join(f"{name:<5}  {value}\n" for name, value in rows)


@dataclass(frozen=True)
class Console:
    """Callbacks of a training, called on the first process only."""

    watch: Watcher
    """Receives the progress."""
    started: Callable[[RunInfo], None]
    """Receives the facts about the run before its first step."""
    warn: Callable[[str], None]
    """Receives warnings."""


def train(request: TrainRequest, console: Console, times: StepTimes = NOT_TIMED) -> TrainResult:
    """Train, or resume training, and save the best model in its folder.

    Under `torchrun`, every process calls this function with the same request.

    Raises:
        DataError: the data are unusable.
        ConfigError: a setting is invalid, or the folder holds another run.
        UsageError: another training is running in the folder, or the folder holds other files.
        ResourceError: the folder cannot be written, or another process of this training was lost.
        NewerFormat: a newer heedful trained in the folder, which is left unchanged.
        Stopped: a signal arrived; everything is saved, and the same call resumes.
        EndedElsewhere: training ended on another process; raised on every process but the first.
    """
    settled = settled_device(request.device)
    request = replace(request, device=settled.name)
    with process_group(request.device) as ranks, watching_contention(torch.get_num_threads()), ExitStack() as resources:
        task = request_task(request)
        if not ranks.is_first:
            sizes = ranks.first(list[float])
            return TrainResult(_follow(request, task, tuple(int(size) for size in sizes), ranks), None)
        ready: list[_Run] = []

        def begin() -> list[float]:
            facts = resources.enter_context(read_facts(request, task))
            ready.append(_prepare(request, facts, console.warn, ranks.place.size, settled))
            return [float(size) for size in ready[0].data.sizes]

        ranks.first(begin)  # an error of the first process ends the others, too
        (run,) = ready
        is_wanted = run.experiment.training.tensorboard
        shown = shown_in_tensorboard(console.watch, run.facts.folder, is_wanted, console.warn)
        return _lead(run, ranks, replace(console, watch=resources.enter_context(shown)), times)


@dataclass(frozen=True)
class _Run:
    """Run with prepared data and resolved settings."""

    facts: RunFacts
    data: Prepared
    experiment: Experiment
    model: nn.Module
    """The model with fresh parameters."""
    advice: tuple[str, ...]
    """Lines about the reasons for chosen settings, and about what can be expected."""
    test_seconds: Callable[[float], float]
    """Estimate of the time of the test from that of a validation."""
    device: TrainingDevice


def _prepare(
    request: TrainRequest, facts: RunFacts, warn: Callable[[str], None], num_processes: int, settled: TrainingDevice
) -> _Run:
    """Prepare the data, resolve the settings, which are stored, and build the model.

    Raises:
        ConfigError: a setting is invalid, or would change the model of the training that is resumed.
    """
    task, folder, pretrained = facts.task, facts.folder, facts.pretrained
    layers = SettingsLayers(task, request, facts.earlier)
    is_new, has_plan = not layers.kept, not layers.kept and not request.is_compared
    if pretrained:
        file_defaults = pretrained.settings()
        request = replace(request, languages=request.languages if any(request.languages) else pretrained.languages)
        pretrained.copy_tokenizers(folder)
    else:
        file_defaults = task.file_defaults(facts.files, layers.resolve) if is_new else {}
    text_stage = layers.resolve(file_defaults)
    if pretrained:
        pretrained.check(text_stage)
    elif text_stage.training.start_share:
        raise ConfigError("training.start_share: only a training that goes on from a model has it; give --from MODEL")
    layers.check_resumable(folder, text_stage, "text.")  # before incompatible tokenizers are read
    if has_plan:
        for line in task.warnings(request, text_stage):
            warn(line)
    data = task.prepare(facts.files, text_stage, folder, request)
    facts.watch.check()
    chosen = merge(
        file_defaults, task.data_defaults(data, _unlimited(text_stage) if request.is_compared else text_stage)
    )
    experiment = layers.resolve(with_pretrained(chosen, pretrained))
    layers.check_resumable(folder, experiment)
    data = task.completed(data, experiment, folder)
    if pretrained and is_new:
        for line in pretrained.warnings(language_names(request.data, request.columns), task.encoded_sides(data)):
            warn(line)

    def measure(device: str) -> Throughput:
        return measure_throughput(task, experiment, folder, data, device)

    def replan(pace: Throughput) -> Experiment:
        planned = task.time_limited_defaults(data, experiment, pace, bool(request.preset))
        chosen = merge(file_defaults, merge({"training": {"has_few_shapes": bool(pace.step_seconds)}}, planned))
        return layers.resolve(with_pretrained(chosen, pretrained, bool(pace.seconds)))

    device = faster_device(settled, experiment, data.num_examples, measure, replan)
    if has_plan and (experiment.training.max_minutes or device.name != "cpu"):
        pace = device.pace or measure(device.name)
        pace = pace.shared_by(num_processes) if pace.step_seconds else pace
        device, experiment = replace(device, pace=pace), replan(pace)
    model = task.build_model(experiment, data.sizes)  # before the settings of a model that cannot be built are saved
    with atomic_write(folder / EXPERIMENT, is_internal=True) as stream:
        stream.write(to_toml(experiment))
    advice = _advice(task, request, data, experiment)
    test_seconds = (lambda seconds: 0.0) if request.is_compared else _test_seconds(experiment, data)
    return _Run(facts, data, experiment, model, advice, test_seconds, device)


def _unlimited(experiment: Experiment) -> Experiment:
    """The same settings without a limit of time, by which the rows of a comparison must not be chosen."""
    training = experiment.training.model_copy(update={"max_minutes": 0.0})
    return experiment.model_copy(update={"training": training})


def _advice(task: Task[Any, Any], request: TrainRequest, data: Prepared, experiment: Experiment) -> tuple[str, ...]:
    if request.pretrained:  # its sizes and tokens were not chosen, and other models say nothing about its scores
        return ()
    named = named_sections(request.settings, request.preset)
    reasons = [line for section, line in task.reasons(data, experiment).items() if section not in named]
    expectation = task.expectation(data, experiment)
    return (*reasons, *([expectation] if expectation else []))


def _lead(run: _Run, ranks: Ranks, console: Console, times: StepTimes) -> TrainResult:
    task, folder, pretrained, device = run.facts.task, run.facts.folder, run.facts.pretrained, run.device.name
    data, experiment, model = run.data, run.experiment, run.model
    validator = task.validator(data, experiment)
    task.initialize(model, data)
    if pretrained:
        pretrained.copy_weights(model)
    freeze(model, experiment.training.train)
    model.to(ranks.device(device))
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    about = {"kind": experiment.model.kind, "num_parameters": num_parameters, "device": device}
    versions = f"heedful {__version__}, PyTorch {torch.__version__}"
    history = History(folder / "run", 0, {**about, "versions": versions, "report": [*map(in_rows, data.report)]})
    console = replace(console, watch=history.watched(console.watch))
    step, sampler = task.step(experiment, model), task.sampler(experiment, folder, data)
    trainer = _trainer(
        task, experiment, step, sampler, folder, data.facts, validator, console, ranks, times, run.test_seconds
    )
    with _recorded(history, trainer, folder, console.warn) as outcomes:
        history.step = trainer.resume()
        advice = run.advice
        if pretrained and not history.step:
            score = score_text(key := experiment.training.select_by, trainer.scores()[key])
            advice = (*advice, f"before: {score} on {validated_on(data.report)}, with the weights of {pretrained.path}")
        steps_per_epoch = -(-sampler.num_batches(sampler.position.epoch) // experiment.training.accumulate)
        line = describe_device(
            device, experiment, num_parameters, run.device.pace, steps_per_epoch, trainer.recording_problem
        )
        info = RunInfo(
            folder,
            experiment,
            num_parameters,
            data,
            history.step,
            advice,
            pretrained,
            device,
            tuple(filter(None, (run.device.reason, line))),
        )
        console.started(info)
        outcomes.append(trainer.run())
    if (folder / MANIFEST).exists():
        # If nothing improved, the model is an earlier one, whose files may have been damaged since.
        open_folder(folder, will_run=False)
        _update_search(folder, experiment)
        task.finish(folder, data, experiment)
    return TrainResult(outcomes[0], info)


def _update_search(folder: Path, experiment: Experiment) -> None:
    """Give a model that training did not improve the settings of the search that the command names."""
    stored = validate(Experiment, upgraded(read_toml(folder / CONFIG)))
    if stored.search != experiment.search:
        store_settings(folder, stored.model_copy(update={"search": experiment.search}))
        (folder / TEST).unlink(missing_ok=True)  # scores of the former search


def _trainer(
    task: Task[Any, Any],
    experiment: Experiment,
    step: TrainingStep,
    sampler: Sampler,
    folder: Path,
    facts: Mapping[str, Any],
    validate_model: Callable[[nn.Module], Validation],
    console: Console,
    ranks: Ranks,
    times: StepTimes = NOT_TIMED,
    test_seconds: Callable[[float], float] = lambda seconds: 0.0,
) -> Trainer:
    """Trainer before its first step; it saves the best model so far in the folder."""
    num_parameters = sum(parameter.numel() for parameter in step.parameters())
    device = next(step.parameters()).device
    precision = resolve_precision(experiment.training.precision, device, num_parameters)
    return Trainer(
        step,
        validate(TrainingConfig, experiment.training.model_dump(mode="json") | {"precision": precision}, "training"),
        sampler,
        folder / "run",
        validate_model,
        task.higher_is_better[experiment.training.select_by],
        lambda weights: save_model(folder, experiment, weights, facts),
        console.watch,
        console.warn,
        ranks,
        times,
        test_seconds,
    )


@contextmanager
def _recorded(
    history: History, trainer: Trainer, folder: Path, warn: Callable[[str], None]
) -> Generator[list[Outcome]]:
    """Record the outcome of the training, and write its report page.

    Raises:
        Stopped: passed on.
        NewerFormat: passed on.
    """
    outcomes: list[Outcome] = []
    try:
        yield outcomes
    except Stopped as error:
        history.end("stopped", trainer.saved_step, str(error))
        raise
    except NewerFormat:  # nothing was started, and nothing may be written
        raise
    except Exception as error:
        history.end("failed", trainer.saved_step, str(error))
        raise
    else:
        history.end("finished", outcomes[0].step, outcomes[0].reason)
    finally:
        try:
            write_training_page(folder, folder / "run" / PAGE)
        except (NewerFormat, ResourceError, UsageError) as error:
            warn(str(error))


def _follow(request: TrainRequest, task: Task[Any, Any], sizes: tuple[int, ...], ranks: Ranks) -> Outcome:
    """Train on a process other than the first, with the first process's prepared files and initial weights.

    Raises:
        EndedElsewhere: a signal arrived, or the loss is not finite; the first process reports it.
    """
    folder = model_folder(request, find_files(task, request))
    experiment = validate(Experiment, read_toml(folder / EXPERIMENT))
    model = task.build_model(experiment, sizes).to(ranks.device(request.device))
    freeze(model, experiment.training.train)
    step, sampler = task.step(experiment, model), task.sampler(experiment, folder, None)

    def first_does(model: nn.Module) -> Validation:
        raise UsageError("train: the first process validates")

    def say_nothing(progress: object) -> None: ...

    silent = Console(say_nothing, say_nothing, say_nothing)
    try:
        trainer = _trainer(task, experiment, step, sampler, folder, {}, first_does, silent, ranks)
        if not trainer.resume() and request.pretrained:
            trainer.scores()  # those of the model that the training goes on from
        return trainer.run()
    except (Stopped, NonFiniteError) as error:  # raised on every process, and reported by the first
        raise EndedElsewhere(error.exit_code) from None


def _test_seconds(experiment: Experiment, data: Prepared) -> Callable[[float], float]:
    """Function that estimates the time of the test from the time of one validation, both in seconds."""
    num_validated = experiment.training.validation_items or len(data.test)
    num_validations = VALIDATIONS_OF_TEST * len(data.test) / max(1, num_validated)
    most = MOST_TEST_SHARE * 60.0 * experiment.training.max_minutes
    return lambda seconds: min(most, num_validations * seconds)


def check_buildable(request: TrainRequest) -> None:
    """Refuse settings that no model can be built with, before any data are read.

    Raises:
        ConfigError: a setting is invalid, or belongs to another task.
        UsageError: the task is unknown.
        ValueError: sizes do not fit together.
    """
    task = request_task(request)
    experiment = SettingsLayers(task, request).resolve({})
    with torch.device("meta"):
        task.build_model(experiment, task.trial_sizes(experiment))
