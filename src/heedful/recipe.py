"""Training run from data to model: prepare data, resolve settings, train, save the best model in its folder."""

import json
import math
import signal
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypedDict, Unpack, overload

import torch
from torch import nn

from heedful.config import Tree, merge, parse_overrides, read_toml, to_toml, validate
from heedful.custom_code import allow_code, is_custom, named_code
from heedful.data.batch import Sampler
from heedful.data.corpus import find_pairs
from heedful.data.corrected_links import CorrectedLinks
from heedful.data.rows import Columns
from heedful.data.same_data import EXPERIMENT, DataWatch, WatchedFile, claim_data
from heedful.errors import (
    ConfigError,
    EndedElsewhere,
    NewerFormat,
    NonFiniteError,
    ResourceError,
    Stopped,
    UsageError,
    did_you_mean,
)
from heedful.evaluation.metrics.table import score_text
from heedful.experiment import Experiment, check_resumable, earlier_settings, load_experiment
from heedful.files import written_whole
from heedful.inspection.tensorboard import shown_in_tensorboard
from heedful.models.store import DEFAULT_TASK, save_model
from heedful.pages.training import PAGE, write_training_page
from heedful.predictors.interface import Predictor
from heedful.predictors.kept_scores import kept_scores
from heedful.predictors.table import PREDICTORS, PredictorT
from heedful.predictors.translator import Translator
from heedful.runtime.company import following
from heedful.runtime.exported import find_exported
from heedful.runtime.folder import claim
from heedful.tasks.advice import named_sections, verdict
from heedful.tasks.interface import DataFile, Prepared, Recipe, Task
from heedful.tasks.origin import Origin, with_origin
from heedful.tasks.pace_measurement import measure_pace
from heedful.tasks.table import find_task
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
from heedful.training.progress import Outcome, Progress, Validation, Watcher
from heedful.training.step_times import NOT_TIMED, StepTimes
from heedful.version import __version__

VALIDATIONS_OF_TEST: Final = 4.0
"""Time of a test in validations of as many items, since it searches with a beam."""
MOST_TEST_SHARE: Final = 0.1
"""Largest share of a limit of time that training leaves for the test."""

LANDING: Final = ("linear", "cosine")
"""Schedules whose learning rate falls to zero at the end."""

Paths = str | Path | Sequence[str | Path]


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
        task = _task(recipe)

        def begin() -> list[float]:
            files = _files(task, recipe)
            folder = _folder(recipe, files)
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
        folder = _folder(recipe, _files(task, recipe))
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
    watch = DataWatch({**files, **_other_files(recipe), **({"model": origin} if origin else {})})
    claim_data(folder, watch.fingerprints)
    earlier = earlier_settings(folder / EXPERIMENT, task.name)
    if origin:
        suited = merge(origin.settings(), earlier)
        recipe = replace(recipe, languages=recipe.languages if any(recipe.languages) else origin.languages)
        origin.copy_tokenizers(folder)
    else:
        suited = earlier or task.suited(files, lambda adapted: _resolve(task, recipe, adapted))
    first = _resolve(task, recipe, suited)
    if origin:
        origin.check(first)
    check_resumable(folder, folder / EXPERIMENT, first, "text.")  # before incompatible tokenizers are read
    if not earlier and not recipe.is_compared:
        for line in task.warnings(recipe, first):
            warn(line)
    data = task.prepare(files, first, folder, recipe)
    watch.check()
    adapted = with_origin(merge(suited, task.adapted(data, first)), origin)
    experiment = _resolve(task, recipe, merge(adapted, earlier))
    check_resumable(folder, folder / EXPERIMENT, experiment)
    data = task.completed(data, experiment, folder)
    if origin and isinstance(data, TranslationData) and not earlier:
        for line in origin.warnings(language_names(recipe.data), data.pairs.train, data.vocabulary_sizes):
            warn(line)
    if experiment.training.max_minutes and not earlier and not recipe.is_compared:
        pace = measure_pace(task, experiment, folder, data, recipe.device)
        planned = with_origin(merge(suited, task.planned(data, experiment, pace)), origin)
        experiment = _resolve(task, recipe, planned)
    model = task.build_model(experiment, data.sizes)  # before the settings of a model that cannot be built are saved
    with written_whole(folder / EXPERIMENT, is_internal=True) as stream:
        stream.write(to_toml(experiment))
    advice = _advice(task, recipe, data, experiment)
    seconds_after = (lambda seconds: 0.0) if recipe.is_compared else _seconds_after(experiment, data)
    return _Run(task, folder, data, experiment, model, advice, seconds_after, origin)


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
    named = named_sections(_user_settings(recipe), recipe.preset)
    reasons = [line for section, line in task.reasons(data, experiment).items() if section not in named]
    expectation = task.expectation(data, experiment)
    return (*reasons, *([expectation] if expectation else []))


def _resolve(task: Task[Any, Any], recipe: Recipe, adapted: Tree) -> Experiment:
    """Resolved configuration, whose model kind and selection score belong to the task.

    Raises:
        ConfigError: a setting is invalid, or belongs to another task.
    """
    settings = (*recipe.settings, f"task={json.dumps(task.name)}")
    experiment = load_experiment(recipe.preset, recipe.config, settings, adapted, task.default_preset)
    if experiment.model.kind not in task.kinds and not is_custom(experiment.model.kind):
        known = ", ".join(sorted(task.kinds))
        raise ConfigError(f"model.kind: {experiment.model.kind} is not a model for {task.name}; known: {known}")
    if experiment.training.mix and task.name != DEFAULT_TASK:
        raise ConfigError(f"training.mix: older pairs can be mixed into {DEFAULT_TASK} only, not into {task.name}")
    chosen = experiment.training.select_by
    if chosen != "auto" and chosen not in task.higher_is_better:
        hint = did_you_mean(chosen, task.higher_is_better)
        raise ConfigError(f"training.select_by: no score {chosen!r} in {task.name}{hint}")
    return experiment


def check_buildable(recipe: Recipe) -> None:
    """Refuse settings that no model can be built with, before any data are read.

    Args:
        recipe: preset and settings.

    Raises:
        ConfigError: a setting is invalid, or belongs to another task.
        UsageError: the task is unknown.
        ValueError: sizes do not fit together.
    """
    task = _task(recipe)
    experiment = _resolve(task, recipe, {})
    with torch.device("meta"):
        task.build_model(experiment, task.trial_sizes(experiment))


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
    return outcomes[0]


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


def _task(recipe: Recipe) -> Task[Any, Any]:
    """Task named by a recipe or by its settings.

    Raises:
        UsageError: the task is unknown.
    """
    return find_task(recipe.task or str(_user_settings(recipe).get("task", DEFAULT_TASK)))


def _user_settings(recipe: Recipe) -> Tree:
    return merge(read_toml(recipe.config) if recipe.config else {}, parse_overrides(recipe.settings))


def _files(task: Task[Any, Any], recipe: Recipe) -> dict[str, DataFile]:
    """Data files of a recipe, inspected.

    Raises:
        UsageError: there are no data files.
    """
    if not recipe.data:
        raise UsageError("train: no data given; give one file of pairs, or two aligned files")
    return task.find(recipe)


def _other_files(recipe: Recipe) -> dict[str, WatchedFile]:
    """Files that the settings name and a training depends on like its data: corrected links, older pairs.

    Raises:
        DataError: a file does not exist.
    """
    training = _user_settings(recipe).get("training")
    links, mix = (training.get(key) if isinstance(training, dict) else None for key in ("links", "mix"))
    files: dict[str, WatchedFile] = {}
    if links and isinstance(links, str):
        files["links"] = CorrectedLinks(Path(links))
    if mix and isinstance(mix, list):
        files["mix"] = find_pairs([Path(str(path)) for path in mix], recipe.columns)
    return files


def _folder(recipe: Recipe, files: Mapping[str, DataFile]) -> Path:
    return recipe.out or Path(f"{files['train'].name}.model")


def judge(started: Started, outcome: Outcome) -> str:
    """Judge the result of a training.

    Args:
        started: facts about a completed run.
        outcome: end of its training.

    Returns:
        A line if the result is poor or was still improving: what would help most; else empty.
    """
    task, training = find_task(started.experiment.task), started.experiment.training
    if not outcome.best_step:
        return ""
    metric = training.select_by
    threshold = task.poor_scores.get(metric)
    sign = 1.0 if task.higher_is_better[metric] else -1.0
    is_poor = threshold is not None and sign * outcome.best < sign * threshold
    if not is_poor and training.optimizer.schedule.kind in LANDING:
        return ""  # a rate that falls to zero improves the score to the last, whatever more time would bring
    ending = "" if outcome.reason.startswith("no better") else outcome.reason
    share = outcome.best_step / outcome.step
    return verdict(score_text(metric, outcome.best), is_poor, share, ending, started.data.num_examples)


def _seconds_after(experiment: Experiment, data: Prepared) -> Callable[[float], float]:
    """Function that estimates the time of the test from the time of one validation, both in seconds."""
    num_validated = experiment.training.validation_items or len(data.test)
    num_validations = VALIDATIONS_OF_TEST * len(data.test) / max(1, num_validated)
    most = MOST_TEST_SHARE * 60.0 * experiment.training.max_minutes
    return lambda seconds: min(most, num_validations * seconds)


def score_test(started: Started, outcome: Outcome, device: str, say: Callable[[str], None]) -> str:
    """Score the best model on the test set; scores already stored for this model are reused.

    With a limit of time, the test takes what training has left of it, and scores as many items as fit. The same call
    for a run that was already finished scores all items.

    Args:
        started: facts about a completed run.
        outcome: end of its training.
        device: PyTorch's device.
        say: callback for a message before prediction begins, because prediction takes a while.

    Returns:
        Lines of text with the scores; empty without a test set.
    """
    if not len(started.data.test):
        return ""
    minutes, was_finished = started.experiment.training.max_minutes, started.step == outcome.step
    seconds = 60.0 * minutes - outcome.seconds if minutes and not was_finished else math.inf
    task = find_task(started.experiment.task)
    with _complete_at_signal(started.folder):
        return kept_scores(task.open(started.folder, device, "torch"), started.data.test, say, seconds)


def compare_with_origin(started: Started, device: str) -> str:
    """Score a model before and after a training that went on from it, on its own validation set.

    Args:
        started: facts about a completed run.
        device: PyTorch's device.

    Returns:
        A line of text; empty if the training began with fresh weights.
    """
    if started.origin is None:
        return ""
    with _complete_at_signal(started.folder):
        return started.origin.compare(started.folder, device)


@contextmanager
def _complete_at_signal(folder: Path) -> Generator[None]:
    """Say at Ctrl-C that the model is complete.

    Raises:
        Stopped: at Ctrl-C.
    """
    try:
        yield
    except KeyboardInterrupt:
        message = f"stopped after training: the model in {folder} is complete; run the same command for the rest"
        raise Stopped(message, signal.SIGINT) from None


def export_engines(started: Started, say: Callable[[str], None]) -> None:
    """Export the engines that run the trained model without PyTorch, unless it has them already.

    A failed export is reported in one line and costs nothing but its time: the model then runs with PyTorch.

    Args:
        started: facts about a completed run.
        say: callback for a line before the work, which takes seconds, and for the result of each export.

    Raises:
        Stopped: Ctrl-C; the model is complete.
    """
    folder, experiment = started.folder, started.experiment
    if not experiment.training.export:
        return
    task = find_task(experiment.task)
    predictor = task.open(folder, engine="torch")
    earlier = find_exported(predictor.folder, experiment.text.max_tokens)
    exports = {
        name: export for name, export in task.exports(predictor).items() if name not in earlier or earlier[name].fault
    }
    if exports:
        say(f"exporting to {' and '.join(exports)}, to run the model without PyTorch; takes a few seconds")
    for name, export in exports.items():
        try:
            with _complete_at_signal(folder):
                say(f"engine {export().summary()}")
        except Stopped:
            raise
        except Exception as error:  # whatever the exporters raise, the model is trained and saved
            reason = str(error).partition("\n")[0] or type(error).__name__
            say(f"no engine {name}, the model runs with PyTorch: {reason.removesuffix('; use --engine torch')}")


class TrainOptions(TypedDict, total=False):
    """Keyword arguments of `train_model` that do not affect the type of its result."""

    out: str | Path | None
    dev: Paths
    test: Paths
    columns: Columns
    languages: tuple[str, str]
    preset: str
    config: str | Path | None
    settings: Mapping[str, object] | None
    origin: str | Path | None
    minutes: float
    device: str
    quiet: bool


@overload
def train_model(
    *data: str | Path, kind: type[PredictorT], task: str = "", **options: Unpack[TrainOptions]
) -> PredictorT: ...


@overload
def train_model(
    *data: str | Path, task: Literal["", "translation"] = "", **options: Unpack[TrainOptions]
) -> Translator: ...


@overload
def train_model(*data: str | Path, task: str, **options: Unpack[TrainOptions]) -> Predictor: ...


def train_model(
    *data: str | Path,
    kind: type[Predictor] = Predictor,
    out: str | Path | None = None,
    dev: Paths = (),
    test: Paths = (),
    columns: Columns = (1, 2),
    languages: tuple[str, str] = ("", ""),
    task: str = "",
    preset: str = "",
    config: str | Path | None = None,
    settings: Mapping[str, object] | None = None,
    origin: str | Path | None = None,
    minutes: float = 0.0,
    device: str = "cpu",
    quiet: bool = False,
) -> Predictor:
    """Train a model from Python, as `heedful train` does.

    Args:
        data: one file of examples, or two aligned files.
        kind: expected class of the result, such as `Classifier`; a task with another predictor class is refused.
        out: model folder; None = named after the data.
        dev: validation files; none = some examples are held out.
        test: test files; none = some examples are held out, unless there are validation files.
        columns: columns of source and target, or of text and label, by 1-based number or name.
        languages: language codes of source and target; empty = derived from the file names.
        task: name of the task; empty = translation.
        preset: name of the preset; empty = chosen by task and data.
        config: a TOML file of settings.
        settings: values by dotted key, such as ``{"model.dropout": 0.3}``.
        origin: folder of a trained model to go on from, with its tokenizers and sizes; None = fresh weights.
        minutes: longest training time; 0 = until validation stops improving.
        device: PyTorch's device.
        quiet: whether to print nothing.

    Returns:
        The trained model: a `Translator`, or the predictor of another task. Its test scores, printed unless `quiet`,
        are in `run/test.json` of its folder.

    Raises:
        UsageError: the predictor of the task is not a `kind`.

    Example:
        >>> train_model("pairs.tsv", preset="small", minutes=10)  # doctest: +SKIP
    """
    limits = {"training.max_minutes": float(minutes)} if minutes else {}
    recipe = Recipe(
        data=_paths(data),
        out=None if out is None else Path(out),
        dev=_paths(dev),
        test=_paths(test),
        columns=columns,
        languages=languages,
        task=task,
        preset=preset,
        config=None if config is None else Path(config),
        settings=tuple(f"{key}={json.dumps(value)}" for key, value in {**(settings or {}), **limits}.items()),
        origin=None if origin is None else Path(origin),
        device=device,
    )
    learned = _task(recipe)
    if not issubclass(PREDICTORS[learned.name], kind):
        raise UsageError(
            f"train: {learned.name} makes a {PREDICTORS[learned.name].__name__}, not a {kind.__name__}; "
            "change kind or task"
        )
    runs: list[Started] = []

    def say(text: str) -> None:
        if not quiet:
            print(text)

    def begun(facts: Started) -> None:
        runs.append(facts)
        for line in (*facts.data.report, *(() if facts.step else facts.advice)):
            say(line)

    def watch(progress: Progress) -> None:
        if progress.validation is not None:
            scores = ", ".join(score_text(key, value) for key, value in progress.validation.scores.items())
            say(f"step {progress.step}: {scores}")

    allow_code(named_code(parse_overrides(recipe.settings)))
    outcome = train(recipe, watch, begun, say)
    if runs:
        for text in _results(runs[0], outcome, device, say):
            say(text)
        export_engines(runs[0], say)
    return learned.open(_folder(recipe, _files(learned, recipe)), device)


def _results(run: Started, outcome: Outcome, device: str, say: Callable[[str], None]) -> list[str]:
    """Lines about the result of a training."""
    texts = score_test(run, outcome, device, say), compare_with_origin(run, device), judge(run, outcome)
    return [text.rstrip() for text in texts if text]


def _paths(paths: Paths) -> tuple[Path, ...]:
    return tuple(Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths))
