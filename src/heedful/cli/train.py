"""Train a model from pairs of texts; run the same command again to resume.

DATA is one file of pairs, or two aligned files; any may be gzipped. Without --dev and --test, some pairs are held out
for validation and testing.

Examples:
  heedful train pairs.tsv
  heedful train pairs.csv --columns english,german --minutes 30
  heedful train train.de train.en --dev dev.de --dev dev.en --preset base
  heedful train new.tsv --from pairs.model
  heedful train pairs.tsv --monolingual news.en
  heedful train reviews.tsv --task classification
  heedful train stories.jsonl --task answering
  heedful train words.tsv --set text.target_units=characters
  heedful train words.tsv --seeds 5
  heedful train ita.tsv rum.tsv ell.tsv --together
"""

import shlex
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from heedful.cli.completion import PRESETS, completed, tasks
from heedful.cli.messages import Messages
from heedful.cli.options import (
    FILES,
    MOST_MINUTES,
    MOST_SEED,
    ColumnsText,
    DataPaths,
    Debug,
    Dev,
    Device,
    Languages,
    Quiet,
    Separator,
    Test,
    Threads,
    choose_training_device,
    parse_columns,
    parse_languages,
    prepare_training,
)
from heedful.cli.seeds import MOST_SEEDS, train_seeds
from heedful.errors import EndedElsewhere, ResourceError, UsageError
from heedful.text.text_files import begin_fingerprints
from heedful.training.rank import rank_info

if TYPE_CHECKING:
    from heedful.runs.request import TrainRequest
    from heedful.runs.train import RunInfo
    from heedful.training.progress import Outcome

_TRAINING: Final = "Model and training"

Minutes = Annotated[
    float,
    typer.Option(
        min=0,
        max=MOST_MINUTES,
        metavar="FLOAT",
        help="Longest time of training, validation and test; 0 = until validation stops improving.",
        rich_help_panel=_TRAINING,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=MOST_SEED,
        metavar="INTEGER",
        help="Seed of weights, order and dropout.",
        show_default="1",
        rich_help_panel=_TRAINING,
    ),
]
Seeds = Annotated[
    int,
    typer.Option(
        min=1,
        max=MOST_SEEDS,
        metavar="INTEGER",
        help="Number of seeds, trained side by side and combined to an ensemble in one model folder.",
        rich_help_panel=_TRAINING,
    ),
]
Preset = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Preset of model and training; see: heedful list presets.",
        show_default="small",
        rich_help_panel=_TRAINING,
        autocompletion=completed(lambda: PRESETS),
    ),
]
SettingsFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="TOML file of settings.", rich_help_panel=_TRAINING)
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="One setting, such as model.dropout=0.3; may be repeated.",
        rich_help_panel=_TRAINING,
    ),
]
ModelFolder = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The model's folder.", show_default="DATA.model", rich_help_panel=FILES),
]
CorrectedLinksFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Word links corrected on the page, or boxes of words in pictures, for guided alignment: training.links.",
        rich_help_panel=FILES,
    ),
]
OriginFolder = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="MODEL",
        help="Trained model to go on from, with its tokenizers, sizes and weights.",
        rich_help_panel=_TRAINING,
    ),
]
MixedFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--mix",
        metavar="FILE",
        help="Older pairs mixed into each epoch, against forgetting; twice for two aligned files.",
        rich_help_panel=FILES,
    ),
]
MonolingualTexts = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Text of the target side alone, which a model of the other direction translates back; may be repeated.",
        rich_help_panel=FILES,
    ),
]
TaskName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Task to learn; see: heedful list tasks.",
        show_default="translation",
        rich_help_panel=_TRAINING,
        autocompletion=completed(tasks),
    ),
]
Together = Annotated[
    bool,
    typer.Option(
        "--together",
        help="Train one model for several files of pairs; --dev and --test then take one file for each.",
        rich_help_panel=FILES,
    ),
]
Profile = Annotated[
    bool,
    typer.Option(
        "--profile",
        help="Print the time of each part of a training step beside its lower bound.",
        rich_help_panel=_TRAINING,
    ),
]


def run(
    data: DataPaths,
    dev: Dev = None,
    test: Test = None,
    columns: ColumnsText = "",
    separator: Separator = "",
    languages: Languages = "",
    together: Together = False,
    links: CorrectedLinksFile = None,
    preset: Preset = "",
    config: SettingsFile = None,
    settings: Settings = None,
    origin: OriginFolder = None,
    mix: MixedFiles = None,
    monolingual: MonolingualTexts = None,
    minutes: Minutes = 0,
    out: ModelFolder = None,
    task: TaskName = "",
    seed: Seed = None,
    seeds: Seeds = 1,
    profile: Profile = False,
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a model."""
    prepare_training(threads)
    messages = _begin_reading((*data, *(dev or ()), *(test or ())), quiet)
    from heedful.runs.request import TrainRequest, merged_settings

    options = chosen_settings(seed, 0 if monolingual else minutes, links, mix)
    request = TrainRequest(
        data=tuple(data),
        out=out,
        dev=tuple(dev or ()),
        test=tuple(test or ()),
        columns=parse_columns(columns),
        separator=separator,
        languages=parse_languages(languages),
        task=task,
        preset=preset,
        settings=merged_settings(config, settings or (), options),
        pretrained=origin,
        device=choose_training_device(device),
    )
    request = _joined(request, together, monolingual, messages)
    if seeds > 1:
        return train_seeds(request, seeds, threads, messages, is_plain=not (monolingual or profile))
    request = _with_monolingual(request, monolingual, minutes, messages)
    print_results(*train_and_watch(request, messages, profile), messages, together)


def _with_monolingual(
    request: "TrainRequest", monolingual: list[Path] | None, minutes: float, messages: Messages
) -> "TrainRequest":
    """The request, with translations of text of the target side alone, if there is any."""
    if not monolingual:
        return request
    from heedful.cli.back_translation import with_back_translation

    train = partial(train_and_watch, messages=messages)
    return with_back_translation(request, monolingual, minutes, messages, train)


def _joined(
    request: "TrainRequest", together: bool, monolingual: list[Path] | None, messages: Messages
) -> "TrainRequest":
    """The request, with its files joined to one if that is wanted.

    Raises:
        UsageError: there are texts for back-translation too.
    """
    if not together:
        return request
    from heedful.runs.together import with_joined_files

    if monolingual:
        raise UsageError("--together: joins files of pairs; leave out --monolingual")
    return with_joined_files(request, messages.say)


def print_results(info: "RunInfo", outcome: "Outcome", messages: Messages, by_file: bool = False) -> None:
    """Print how a training ended, its test scores, and what to do next; makes the model ready for use.

    Args:
        messages: printer of what is not a result.
        by_file: whether the data are several files, each of which is scored too.
    """
    from heedful.runs.finish import (
        compare_with_pretrained,
        ending,
        export_and_calibrate,
        judge,
        remember,
        score_test,
    )
    from heedful.tasks.table import find_task

    print(ending(info, outcome))
    remember(info, messages.say)
    print(score_test(info, outcome, info.device, messages.say), end="")
    if by_file:
        from heedful.runs.together import file_scores

        print(*file_scores(info, info.device), sep="\n")
    for line in (compare_with_pretrained(info, info.device), judge(info, outcome)):
        if line:
            print(line)
    export_and_calibrate(info, messages.say, messages.warn)
    print(f"model: {info.folder}\npage:  {_write_page(info.folder)}")
    if not messages.is_quiet:
        print(f"next:  heedful {find_task(info.experiment.task).command} {shlex.quote(str(info.folder))}")


def _begin_reading(paths: tuple[Path, ...], quiet: bool) -> Messages:
    """Begin to read files on the first process; returns the printer, which is silent on all others."""
    is_first = rank_info().rank == 0
    messages = Messages(quiet or not is_first)
    messages.say(f"reading {', '.join(map(str, paths))}")
    begin_fingerprints(paths if is_first else ())
    return messages


def chosen_settings(
    seed: int | None, minutes: float, links: Path | None = None, mix: list[Path] | None = None
) -> dict[str, object]:
    """Turn options into settings.

    Args:
        minutes: value of --minutes.

    Returns:
        Values by dotted key; none for an option that was not given.
    """
    values = {
        "seed": seed,
        "links": str(links) if links else None,
        "mix": [str(path) for path in mix] if mix else None,
        "max_minutes": float(minutes) or None,
    }
    return {f"training.{name}": value for name, value in values.items() if value is not None}


def train_and_watch(
    request: "TrainRequest", messages: Messages, is_profiled: bool = False
) -> "tuple[RunInfo, Outcome]":
    """Train, and show the progress on standard error.

    Args:
        is_profiled: whether to print the times of a step's parts.

    Raises:
        EndedElsewhere: this process is not the first of its training, which reports the outcome.
    """
    from heedful.runs.progress_display import followed
    from heedful.runs.train import Console, train
    from heedful.training.step_times import StepTimes

    def started(info: "RunInfo") -> None:
        for line in describe(info, request.preset):
            messages.say(line)

    with followed(messages.say, messages.is_quiet) as watch:
        console = Console(watch, started, messages.warn)
        result = train(request, console, StepTimes(messages.say if is_profiled else None))
    if result.info is None:
        raise EndedElsewhere(0)
    return result.info, result.outcome


def describe(info: "RunInfo", preset: str) -> list[str]:
    """Describe data and model before training."""
    model = info.experiment.model
    lines = [
        *info.data.report,
        f"model: {model.kind}{f', preset {preset}' if preset else ''}, {info.num_parameters:,} parameters",
        f"vocabulary: {info.data.vocabulary}",
        f"folder: {info.folder}",
        *info.device_lines,
    ]
    return [*lines, f"resuming at step {info.step:,}"] if info.step else [*lines, *info.advice]


def _write_page(folder: Path) -> Path:
    """Write the page of the training again, now with test scores and attention."""
    from heedful.pages.training import PAGE
    from heedful.predictors.training_page import write_page

    page = folder / "run" / PAGE
    with suppress(ResourceError):  # training has warned
        write_page(folder, page)
    return page
