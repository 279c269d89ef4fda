"""Training from Python: `heedful.train`."""

import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

import torch

from heedful.config.plugins import allow_code, named_code
from heedful.data.in_memory import PAIR_KEYS, SIDES, example_files
from heedful.data.rows import Columns
from heedful.errors import EndedElsewhere, UsageError
from heedful.predictors.interface import Predictor
from heedful.predictors.table import PredictorT, load, predictor_of
from heedful.predictors.translator import Translator
from heedful.runs.facts import request_task
from heedful.runs.finish import compare_with_pretrained, ending, export_and_calibrate, judge, remember, score_test
from heedful.runs.progress_display import followed
from heedful.runs.python_terms import in_python, speaking_python
from heedful.runs.request import TrainRequest, merged_settings
from heedful.runs.together import file_scores, with_joined_files
from heedful.runs.train import Console, RunInfo, train
from heedful.training.progress import Outcome, Progress, Watcher

Paths = str | Path | Sequence[str | Path]
Data = Any
"""Path of a file, or examples in memory as `heedful.data.in_memory.write_examples` takes them."""


class TrainOptions(TypedDict, total=False):
    """Keyword arguments of `train_model` that do not affect the type of its result."""

    out: str | Path | None
    dev: Data
    test: Data
    columns: Columns
    languages: tuple[str, str]
    preset: str
    config: str | Path | None
    settings: Mapping[str, object] | None
    origin: str | Path | None
    minutes: float
    device: str
    threads: int
    watch: Watcher | None
    quiet: bool
    together: bool


@overload
def train_model(*data: Data, kind: type[PredictorT], task: str = "", **options: Unpack[TrainOptions]) -> PredictorT: ...


@overload
def train_model(*data: Data, task: Literal["", "translation"] = "", **options: Unpack[TrainOptions]) -> Translator: ...


@overload
def train_model(*data: Data, task: str, **options: Unpack[TrainOptions]) -> Predictor: ...


@speaking_python()
def train_model(
    *data: Data,
    kind: type[Predictor] = Predictor,
    out: str | Path | None = None,
    dev: Data = (),
    test: Data = (),
    columns: Columns = (1, 2),
    languages: tuple[str, str] = ("", ""),
    task: str = "",
    preset: str = "",
    config: str | Path | None = None,
    settings: Mapping[str, object] | None = None,
    origin: str | Path | None = None,
    minutes: float = 0.0,
    device: str = "auto",
    threads: int = 0,
    watch: Watcher | None = None,
    quiet: bool = False,
    together: bool = False,
) -> Predictor:
    """Train a model from Python, as `heedful train` does.

    Args:
        data: one file of examples, or two aligned files; or the examples themselves: a list of pairs or dictionaries,
            sources and targets as two lists, arrays or Series of equal length, an array [pair, 2], a dictionary of
            columns, or a table of pandas, polars, PyArrow or datasets.
        kind: expected class of the result, such as `Classifier`; a task with another predictor class is refused.
        out: model folder; None = named after the data, and ``train.model`` for examples in memory.
        dev: validation files or examples; none = some examples are held out.
        test: test files or examples; none = some examples are held out, unless there are validation files.
        columns: columns of source and target, or of text and label, by 1-based number or name.
        languages: language codes of source and target; empty = derived from the file names.
        task: name of the task; empty = translation.
        preset: name of the preset; empty = chosen by task and data.
        config: a TOML file of settings.
        settings: values by dotted key, such as ``{"model.dropout": 0.3}``.
        origin: folder of a trained model to go on from, with its tokenizers and sizes; None = fresh weights.
        minutes: longest training time; 0 = until validation stops improving.
        device: PyTorch's device; "auto" = the faster one for the corpus.
        threads: number of threads; 0 = as PyTorch has it.
        watch: called with each report of the progress, such as to log it in an experiment tracker.
        quiet: whether to print nothing. Else there is a bar with the time left, on a terminal and in a notebook.
        together: whether `data` are several files of pairs for one model; `dev` and `test` then have a file for each.

    Returns:
        The trained model: a `Translator`, or the predictor of another task. Its test scores, printed unless `quiet`,
        are in `run/test.json` of its folder.

    Raises:
        UsageError: the predictor of the task is not a `kind`.
        EndedElsewhere: this process is not the first of its training, which returns the model.
        DataError: a value of examples in memory is missing or no text, with the index of its row.

    Example:
        >>> translator = heedful.train("pairs.tsv", preset="small", minutes=10)  # doctest: +SKIP
        >>> pairs = [(str(number), str(number)[::-1]) for number in range(100, 400)]  # doctest: +SKIP
        >>> heedful.train(pairs, out="reversed.model").translate(["123"])[0].text  # doctest: +SKIP
        '321'
    """
    if isinstance(languages, str) or len(languages) != 2:
        raise UsageError(f'train: languages {languages!r}: give those of source and target, such as ("de", "en")')
    options = {**(settings or {}), **({"training.max_minutes": float(minutes)} if minutes else {})}
    allow_code(named_code(merged_settings(options=options)))
    request = TrainRequest(
        data=(),
        out=None if out is None else Path(out),
        columns=columns,
        languages=languages,
        task=task,
        preset=preset,
        settings=merged_settings(None if config is None else Path(config), options=options),
        pretrained=None if origin is None else Path(origin),
        device=device,
    )
    name = request_task(request).name
    predictor, sides = predictor_of(name), SIDES.get(name, PAIR_KEYS)
    if not issubclass(predictor, kind):
        raise UsageError(f"train: {name} makes a {predictor.__name__}, not a {kind.__name__}; change kind or task")
    with ExitStack() as opened:
        examples = {"train": data, "dev": dev, "test": test}
        parts = [opened.enter_context(example_files(part, each, columns, sides)) for each, part in examples.items()]
        if len({part.columns for part in parts if part.paths}) > 1:
            raise UsageError("train: pairs in memory have no files or tables beside them; give all data as pairs")
        paths = dict(zip(("data", "dev", "test"), (part.paths for part in parts), strict=True))
        request = replace(request, **paths, columns=parts[0].columns)
        with _using(threads):
            folder = _trained(request, watch, quiet, together)
    return load(folder, device)


@contextmanager
def _using(threads: int) -> Generator[None]:
    """Compute with a number of threads; 0 = as before.

    Raises:
        UsageError: the number is negative.
    """
    if threads < 0:
        raise UsageError(f"train: threads {threads}: expected 1 or more, or 0 for as many as PyTorch has")
    if not threads:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _trained(request: TrainRequest, watch: Watcher | None, quiet: bool, together: bool = False) -> Path:
    """Folder of the model that a request trains, and tests.

    Args:
        watch: further callback for reports of the progress.
        together: whether to join several files, and to score each.

    Raises:
        EndedElsewhere: this process is not the first of its training.
    """

    def say(text: str) -> None:
        if not quiet:
            print(in_python(text))

    def started(info: RunInfo) -> None:
        for line in (*info.data.report, *info.device_lines, *(() if info.step else info.advice)):
            say(line)

    if together:
        request = with_joined_files(request, say)
    with followed(print, quiet) as show:  # scores and the user's own texts, as they are

        def report(progress: Progress) -> None:
            show(progress)
            if watch is not None:
                watch(progress)

        result = train(request, Console(report, started, say))
    if result.info is None:
        raise EndedElsewhere(0)
    for text in _results(result.info, result.outcome, result.info.device, say):
        say(text)
    if together and not quiet:
        say("\n".join(file_scores(result.info, result.info.device)))
    export_and_calibrate(result.info, say, (lambda text: warnings.warn(text, stacklevel=2)) if quiet else say)
    return result.info.folder


def _results(run: RunInfo, outcome: Outcome, device: str, say: Callable[[str], None]) -> list[str]:
    """Lines about the result of a training."""
    say(ending(run, outcome))
    remember(run, say)
    texts = score_test(run, outcome, device, say), compare_with_pretrained(run, device), judge(run, outcome)
    return [text.rstrip() for text in texts if text]
