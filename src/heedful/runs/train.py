"""Training run from data to model: prepare data, resolve settings, train, save the best model in its folder."""

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from heedful.config.base import merge, read_toml, to_toml, validate
from heedful.cpu.contention import following
from heedful.data.batch import Sampler
from heedful.data.learned_corrections import LearnedCorrections
from heedful.data.same_data import EXPERIMENT, DataWatch, claim_data
from heedful.engines.folder import CONFIG, MANIFEST, claim, open_folder
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
from heedful.files.atomic_write import written_whole
from heedful.models.store import save_model, store_settings
from heedful.pages.record import TEST
from heedful.pages.training import PAGE, write_training_page
from heedful.runs.pretrained import Origin, with_origin
from heedful.runs.resolution import files_of, folder_of, other_files, resolve, task_of, user_settings
from heedful.runs.throughput_measurement import measure_pace
from heedful.tasks.advice import named_sections
from heedful.tasks.experiment import Experiment, check_resumable, earlier_settings, load_experiment, upgraded
from heedful.tasks.interface import DataFile, Prepared, Recipe, Task
from heedful.tasks.translation import TranslationData
from heedful.text.text_files import language_names
from heedful.training.config import TrainingConfig
from heedful.training.distributed import Ranks, joined
from heedful.training.frozen import freeze
from heedful.training.history import History
from heedful.training.lock import locked
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
class Started:
    """Facts about a run whose data and model are ready, before its first step."""

    folder: Path
    experiment: Experiment
    num_parameters: int
    data: Prepared
    step: int
    """Step of the newest complete checkpoint, from which training continues; 0 = from the start."""
    advice: tuple[str, ...] = ()
    """Lines about the reasons for chosen settings, and about what can be expected."""
    origin: Origin | None = None
    """Trained model that this training goes on from."""


def train(
    recipe: Recipe,
    watch: Watcher,
    started: Callable[[Started], None],
    warn: Callable[[str], None],
    times: StepTimes = NOT_TIMED,
) -> Outcome:
    """Train, or resume training, and save the best model in its folder.

    Under `torchrun`, every process calls this function with the same recipe; only the first calls the callbacks.

    Args:
        recipe: data and settings.
        watch: callback for progress.
        started: callback that receives the facts about the run before its first step.
        warn: callback for warnings.
        times: timer of the phases of a step.

    Returns:
        The outcome of the training.

    Raises:
        DataError: the data are unusable.
        ConfigError: a setting is invalid, or the folder holds another run.
        UsageError: another training is running in the folder, or the folder holds other files.
        ResourceError: the folder cannot be written, or another process of this training was lost.
        NewerFormat: a newer heedful trained in the folder, which is left unchanged.
        Stopped: a signal arrived; everything is saved, and the same call resumes.
        EndedElsewhere: training ended on another process; raised on every process but the first.
    """
    with joined(recipe.device) as ranks, following(torch.get_num_threads()), ExitStack() as resources:
        runs: list[_Run] = []
        task = task_of(recipe)

        def begin() -> list[float]:
            files = files_of(task, recipe)
            folder = folder_of(recipe, files)
            load_experiment(recipe.preset)  # a wrong name is refused before anything is written
            claim(folder)
            resources.enter_context(locked(folder / "run"))
            runs.append(_begin(task, recipe, files, folder, warn))
            return [float(size) for size in runs[0].data.sizes]

        sizes = ranks.first(begin)
        if ranks.is_first:
            is_wanted = runs[0].experiment.training.tensorboard
            shown = resources.enter_context(shown_in_tensorboard(watch, runs[0].folder, is_wanted, warn))
            return _lead(runs[0], ranks, recipe.device, shown, started, warn, times)
        folder = folder_of(recipe, files_of(task, recipe))
        return _follow(task, folder, tuple(int(size) for size in sizes), ranks, recipe.device)


@dataclass(frozen=True)
class _Run:
    """Run whose folder the first process has claimed, with prepared data and resolved settings."""

    task: Task[Any, Any]
    folder: Path
    data: Prepared
    experiment: Experiment
    model: nn.Module
    """The model with fresh parameters."""
    advice: tuple[str, ...]
    """Lines about the reasons for chosen settings, and about what can be expected."""
    seconds_after: Callable[[float], float]
    """Estimate of the time of the test from that of a validation."""
    origin: Origin | None


def _begin(
    task: Task[Any, Any], recipe: Recipe, files: Mapping[str, DataFile], folder: Path, warn: Callable[[str], None]
) -> _Run:
    origin = _origin(task, recipe, folder)
    corrections = LearnedCorrections(folder, origin.path if origin else None)
    more = {**({"model": origin} if origin else {}), **({"corrections": corrections} if corrections.content else {})}
    watch = DataWatch({**files, **other_files(recipe), **more})
    claim_data(folder, watch.fingerprints)
    corrections.store()
    earlier = earlier_settings(folder / EXPERIMENT, task.name)
    if origin:
        suited = merge(origin.settings(), earlier)
        recipe = replace(recipe, languages=recipe.languages if any(recipe.languages) else origin.languages)
        origin.copy_tokenizers(folder)
    else:
        suited = earlier or task.suited(files, lambda adapted: resolve(task, recipe, adapted))
    first = resolve(task, recipe, suited)
    if origin:
        origin.check(first)
    elif first.training.start_share:
        raise ConfigError("training.start_share: only a training that goes on from a model has it; give --from MODEL")
    check_resumable(folder, folder / EXPERIMENT, first, "text.")  # before incompatible tokenizers are read
    if not earlier and not recipe.is_compared:
        for line in task.warnings(recipe, first):
            warn(line)
    data = task.prepare(files, first, folder, recipe)
    watch.check()
    adapted = with_origin(merge(suited, task.adapted(data, _unlimited(first) if recipe.is_compared else first)), origin)
    experiment = resolve(task, recipe, merge(adapted, earlier))
    check_resumable(folder, folder / EXPERIMENT, experiment)
    data = task.completed(data, experiment, folder)
    if origin and isinstance(data, TranslationData) and not earlier:
        tokenizers = data.pairs.source_tokenizer, data.pairs.target_tokenizer
        for line in origin.warnings(language_names(recipe.data, recipe.columns), data.pairs.train, tokenizers):
            warn(line)
    if experiment.training.max_minutes and not earlier and not recipe.is_compared:
        pace = measure_pace(task, experiment, folder, data, recipe.device)
        planned = with_origin(merge(suited, task.planned(data, experiment, pace, bool(recipe.preset))), origin, True)
        experiment = resolve(task, recipe, planned)
    model = task.build_model(experiment, data.sizes)  # before the settings of a model that cannot be built are saved
    with written_whole(folder / EXPERIMENT, is_internal=True) as stream:
        stream.write(to_toml(experiment))
    advice = _advice(task, recipe, data, experiment)
    seconds_after = (lambda seconds: 0.0) if recipe.is_compared else _seconds_after(experiment, data)
    return _Run(task, folder, data, experiment, model, advice, seconds_after, origin)


def _unlimited(experiment: Experiment) -> Experiment:
    """The same settings without a limit of time, by which the rows of a comparison must not be chosen."""
    training = experiment.training.model_copy(update={"max_minutes": 0.0})
    return experiment.model_copy(update={"training": training})


def _origin(task: Task[Any, Any], recipe: Recipe, folder: Path) -> Origin | None:
    """Trained model that a recipe goes on from.

    Raises:
        UsageError: it is of another task, is the model to be trained, or a preset is named too.
    """
    if recipe.origin is None:
        return None
    origin = Origin(recipe.origin)
    if task.name != origin.folder.task:
        raise UsageError(f"--from {origin.path}: a {origin.folder.task} model, not one for {task.name}")
    if recipe.preset:
        raise UsageError(
            f"--preset {recipe.preset}: the sizes are those of --from {origin.path}; leave one of them out"
        )
    if folder.exists() and folder.samefile(origin.path):
        raise UsageError(f"--from {origin.path}: the trained model would replace it; choose another --out")
    return origin


def _advice(task: Task[Any, Any], recipe: Recipe, data: Prepared, experiment: Experiment) -> tuple[str, ...]:
    if recipe.origin:  # its sizes and tokens were not chosen, and other models say nothing about its scores
        return ()
    named = named_sections(user_settings(recipe), recipe.preset)
    reasons = [line for section, line in task.reasons(data, experiment).items() if section not in named]
    expectation = task.expectation(data, experiment)
    return (*reasons, *([expectation] if expectation else []))


def _lead(
    run: _Run,
    ranks: Ranks,
    device: str,
    watch: Watcher,
    started: Callable[[Started], None],
    warn: Callable[[str], None],
    times: StepTimes,
) -> Outcome:
    task, folder, data, experiment, model = run.task, run.folder, run.data, run.experiment, run.model
    validator = task.validator(data, experiment)
    task.initialize(model, data)
    if run.origin:
        run.origin.copy_weights(model)
    freeze(model, experiment.training.train)
    model.to(ranks.device(device))
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    about = {"kind": experiment.model.kind, "num_parameters": num_parameters, "device": device}
    versions = f"heedful {__version__}, PyTorch {torch.__version__}"
    history = History(folder / "run", 0, {**about, "versions": versions, "report": data.report})
    followed, sampler = history.watched(watch), task.sampler(experiment, folder, data)
    step = task.step(experiment, model)
    after, facts = run.seconds_after, data.facts
    trainer = _trainer(task, experiment, step, sampler, folder, facts, validator, followed, warn, ranks, times, after)
    with _recorded(history, trainer, folder, warn) as outcomes:
        history.step = trainer.resume()
        advice = run.advice if history.step or not run.origin else (*run.advice, *_before(run, model, validator))
        started(Started(folder, experiment, num_parameters, data, history.step, advice, run.origin))
        outcomes.append(trainer.run())
    if (folder / MANIFEST).exists():
        # If nothing improved, the model is an earlier one, whose files may have been damaged since.
        open_folder(folder, will_run=False)
        _update_search(folder, experiment)
    return outcomes[0]


def _update_search(folder: Path, experiment: Experiment) -> None:
    """Give a model that training did not improve the settings of the search that the command names."""
    stored = validate(Experiment, upgraded(read_toml(folder / CONFIG)))
    if stored.search != experiment.search:
        store_settings(folder, stored.model_copy(update={"search": experiment.search}))
        (folder / TEST).unlink(missing_ok=True)  # scores of the former search


def _before(run: _Run, model: nn.Module, validator: Callable[[nn.Module], Validation]) -> list[str]:
    """Lines about a trained model before its first step: its score, and data that do not suit it."""
    key = run.experiment.training.select_by
    score = validator(model.eval()).scores[key]
    model.train()
    return (
        [f"before: {score_text(key, score)} on validation, with the weights of {run.origin.path}"] if run.origin else []
    )


def _trainer(
    task: Task[Any, Any],
    experiment: Experiment,
    step: TrainingStep,
    sampler: Sampler,
    folder: Path,
    facts: Mapping[str, Any],
    validate_model: Callable[[nn.Module], Validation],
    watch: Watcher,
    warn: Callable[[str], None],
    ranks: Ranks,
    times: StepTimes = NOT_TIMED,
    seconds_after: Callable[[float], float] = lambda seconds: 0.0,
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
        watch,
        warn,
        ranks,
        times,
        seconds_after,
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


def _follow(task: Task[Any, Any], folder: Path, sizes: tuple[int, ...], ranks: Ranks, device: str) -> Outcome:
    """Train on a process other than the first, with the first process's prepared files and initial weights.

    Raises:
        EndedElsewhere: a signal arrived, or the loss is not finite; the first process reports it.
    """
    experiment = validate(Experiment, read_toml(folder / EXPERIMENT))
    model = task.build_model(experiment, sizes).to(ranks.device(device))
    freeze(model, experiment.training.train)
    step, sampler = task.step(experiment, model), task.sampler(experiment, folder, None)

    def first_does(model: nn.Module) -> Validation:
        raise UsageError("train: the first process validates")

    def say_nothing(progress: object) -> None: ...

    try:
        return _trainer(task, experiment, step, sampler, folder, {}, first_does, say_nothing, say_nothing, ranks).run()
    except (Stopped, NonFiniteError) as error:  # raised on every process, and reported by the first
        raise EndedElsewhere(error.exit_code) from None


def _seconds_after(experiment: Experiment, data: Prepared) -> Callable[[float], float]:
    """Function that estimates the time of the test from the time of one validation, both in seconds."""
    num_validated = experiment.training.validation_items or len(data.test)
    num_validations = VALIDATIONS_OF_TEST * len(data.test) / max(1, num_validated)
    most = MOST_TEST_SHARE * 60.0 * experiment.training.max_minutes
    return lambda seconds: min(most, num_validations * seconds)
