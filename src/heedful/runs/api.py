"""Training from Python: `heedful.train`."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict, Unpack, cast, overload

from heedful.config.base import parse_overrides
from heedful.config.plugins import allow_code, named_code
from heedful.data.rows import Columns
from heedful.errors import UsageError
from heedful.evaluation.metrics.table import score_text
from heedful.predictors.interface import Predictor
from heedful.predictors.table import PREDICTORS, PredictorT
from heedful.predictors.translator import Translator
from heedful.runs.finish import compare_with_origin, judge, make_ready, score_test
from heedful.runs.resolution import files_of, folder_of, task_of
from heedful.runs.train import Started, train
from heedful.tasks.interface import Recipe
from heedful.training.progress import Outcome, Progress

Paths = str | Path | Sequence[str | Path]


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
        settings=tuple(_assignments({**(settings or {}), **limits})),
        origin=None if origin is None else Path(origin),
        device=device,
    )
    learned = task_of(recipe)
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
        make_ready(runs[0], say)
    return learned.open(folder_of(recipe, files_of(learned, recipe)), device)


def _results(run: Started, outcome: Outcome, device: str, say: Callable[[str], None]) -> list[str]:
    """Lines about the result of a training."""
    texts = score_test(run, outcome, device, say), compare_with_origin(run, device), judge(run, outcome)
    return [text.rstrip() for text in texts if text]


def _paths(paths: Paths) -> tuple[Path, ...]:
    return tuple(Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths))


def _assignments(settings: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """Settings as the command line writes them; a mapping is a table of settings."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _assignments(cast("Mapping[str, object]", value), f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}={json.dumps(value, ensure_ascii=False)}"
