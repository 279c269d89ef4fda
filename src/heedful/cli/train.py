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
"""

import json
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
    Test,
    Threads,
    choose_device,
    parse_columns,
    parse_languages,
    prepare_training,
)
from heedful.errors import EndedElsewhere, ResourceError
from heedful.text.durations import duration
from heedful.text.text_files import begin_fingerprints
from heedful.training.rank import place

if TYPE_CHECKING:
    from heedful.runs.train import Started
    from heedful.tasks.interface import Recipe
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
    columns: ColumnsText = "1,2",
    languages: Languages = "",
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
    profile: Profile = False,
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a model."""
    prepare_training(threads)
    is_first = place().rank == 0
    messages = Messages(quiet or not is_first)
    _begin_reading((*data, *(dev or ()), *(test or ())), messages, is_first)
    from heedful.tasks.interface import Recipe

    recipe = Recipe(
        data=tuple(data),
        out=out,
        dev=tuple(dev or ()),
        test=tuple(test or ()),
        columns=parse_columns(columns),
        languages=parse_languages(languages),
        task=task,
        preset=preset,
        config=config,
        settings=(*changed_settings(seed, 0 if monolingual else minutes, links, mix), *(settings or ())),
        origin=origin,
        device=choose_device(device),
    )
    if monolingual:
        from heedful.cli.back_translation import with_back_translation

        train = partial(train_and_watch, messages=messages)
        recipe = with_back_translation(recipe, monolingual, minutes, messages, train)
    started, outcome = train_and_watch(recipe, messages, profile)
    print_results(started, outcome, recipe.device, messages)


def print_results(started: "Started", outcome: "Outcome", device: str, messages: Messages) -> None:
    """Print how a training ended, its test scores, and what to do next; makes the model ready for use.

    Args:
        started: facts before the first step.
        outcome: end of the training.
        device: PyTorch's device.
        messages: printer of what is not a result.
    """
    from heedful.runs.finish import compare_with_origin, judge, make_ready, score_test
    from heedful.tasks.table import find_task

    print(ending(started, outcome))
    print(score_test(started, outcome, device, messages.say), end="")
    for line in (compare_with_origin(started, device), judge(started, outcome)):
        if line:
            print(line)
    make_ready(started, messages.say)
    print(f"model: {started.folder}\npage:  {_write_page(started.folder)}")
    if not messages.is_quiet:
        print(f"next:  heedful {find_task(started.experiment.task).command} {shlex.quote(str(started.folder))}")


def _begin_reading(paths: tuple[Path, ...], messages: Messages, is_first: bool) -> None:
    messages.say(f"reading {', '.join(map(str, paths))}")
    begin_fingerprints(paths if is_first else ())


def changed_settings(
    seed: int | None, minutes: float, links: Path | None = None, mix: list[Path] | None = None
) -> list[str]:
    """Turn options into settings.

    Args:
        seed: value of --seed.
        minutes: value of --minutes.
        links: value of --links.
        mix: values of --mix.

    Returns:
        Settings as --set takes them; none for an option that was not given.
    """
    changes = [f"training.seed={seed}"] if seed is not None else []
    changes += [f"training.links={json.dumps(str(links), ensure_ascii=False)}"] if links else []
    changes += [f"training.mix={json.dumps([str(path) for path in mix], ensure_ascii=False)}"] if mix else []
    return [*changes, *([f"training.max_minutes={minutes}"] if minutes else [])]


def train_and_watch(recipe: "Recipe", messages: Messages, is_profiled: bool = False) -> "tuple[Started, Outcome]":
    """Train, and show the progress on standard error.

    Args:
        recipe: data and settings.
        messages: printer of the progress.
        is_profiled: whether to print the times of a step's parts.

    Returns:
        The facts at the start, and the outcome.

    Raises:
        EndedElsewhere: this process is not the first of its training, which reports the outcome.
    """
    from heedful.cli.progress import followed
    from heedful.runs.train import train
    from heedful.training.step_times import StepTimes

    known: list[Started] = []

    def started(facts: "Started") -> None:
        known.append(facts)
        for line in describe(facts, recipe.preset):
            messages.say(line)

    with followed(messages) as watch:
        outcome = train(recipe, watch, started, messages.warn, StepTimes(messages.say if is_profiled else None))
    if not known:
        raise EndedElsewhere(0)
    return known[0], outcome


def describe(started: "Started", preset: str) -> list[str]:
    """Describe data and model before training.

    Args:
        started: facts before the first step.
        preset: value of --preset.

    Returns:
        Lines for a person.
    """
    model = started.experiment.model
    lines = [
        *started.data.report,
        f"model: {model.kind}{f', preset {preset}' if preset else ''}, {started.num_parameters:,} parameters",
        f"vocabulary: {started.data.vocabulary}",
        f"folder: {started.folder}",
    ]
    return [*lines, f"resuming at step {started.step:,}"] if started.step else [*lines, *started.advice]


def ending(started: "Started", outcome: "Outcome") -> str:
    """Describe how a training ended.

    Args:
        started: facts before the first step.
        outcome: end of the training.

    Returns:
        Two lines.
    """
    from heedful.evaluation.metrics.table import score_text

    was_done = started.step > 0 and outcome.step == started.step
    status = "already finished" if was_done else "finished"
    metric = started.experiment.training.select_by
    text = f"{status}: {outcome.reason} (step {outcome.step:,}, {duration(outcome.seconds)})"
    return (
        f"{text}\nbest:  {score_text(metric, outcome.best)} on validation, at step {outcome.best_step:,}"
        if outcome.best_step
        else text
    )


def _write_page(folder: Path) -> Path:
    """Write the page of the training again, now with test scores and attention."""
    from heedful.pages.training import PAGE
    from heedful.predictors.training_page import write_page

    page = folder / "run" / PAGE
    with suppress(ResourceError):  # training has warned
        write_page(folder, page)
    return page
