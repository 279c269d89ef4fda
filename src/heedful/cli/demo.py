"""Demonstrate heedful in a minute and a half: make data, train, evaluate, look inside.

Generates dates and numbers as people write them, in English and Chinese, and trains a model that converts them to a
standard form (Mar 5th, 2021 becomes 2021-03-05). The model stays, to be used like any other, with a picture of its
attention. With --task, another task is shown on data of its own.

Examples:
  heedful demo
  heedful demo --task answering
  heedful demo --task readings
  heedful demo --out /tmp/dates.model --seed 2
"""

import importlib
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from heedful.cli.completion import completed
from heedful.cli.folder_names import beside
from heedful.cli.messages import Messages, aligned
from heedful.cli.options import (
    MOST_MINUTES,
    MOST_SEED,
    Debug,
    Device,
    Quiet,
    Threads,
    choose_device,
    prepare_training,
)
from heedful.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from heedful.predictors.translator import Translator
    from heedful.synthetic.grammar import Split

OTHERS: Final = {
    "answering": ("heedful.cli.demo_answering", "demonstrate"),
    "captioning": ("heedful.cli.demo_captioning", "demonstrate"),
    "classification": ("heedful.cli.demo_classification", "demonstrate"),
    "printed-text": ("heedful.cli.demo_printed_text", "demonstrate"),
    "readings": ("heedful.cli.demo_readings", "demonstrate"),
    "readings-zh": ("heedful.cli.demo_readings", "demonstrate_chinese"),
}
"""Modules and functions of demonstrations of other tasks, imported when they run."""
NUM_PAIRS: Final = 75_000
NUM_VALIDATION: Final = 300
NUM_HELD_OUT: Final = 1_000
SETTINGS: Final = (
    "text.source_units=characters",
    "text.target_units=characters",
    "model.kind=rnnsearch",
    "model.embedding_size=64",
    "model.hidden_size=128",
    "model.alignment_size=128",
    "model.maxout_size=64",
    "model.dropout=0.0",
    "training.label_smoothing=0.0",
    "training.average=0.0",
    "training.precision=float32",
    "training.batch_tokens=768",
    "training.optimizer.learning_rate=0.006",
    "training.optimizer.schedule.kind=linear",
    "training.optimizer.schedule.warmup_steps=100",
    "training.max_steps=1700",
    "training.validate_every=170",
    "training.patience=100",
    "training.select_by=exact_match",
)
"""Settings that learn this task well within 90 seconds on two cores."""
SAMPLES: Final = {
    "25th of December 2019": "2019-12-25",
    "Friday, April 1st, 2022": "2022-04-01",
    "two hundred and thirty-seven": "237",
    "二〇二一年十一月九日": "2021-11-09",
    "2024年5月1日": "2024-05-01",
    "二百九十二": "292",
}
"""Samples shown at the end, with their meanings; none of these values is in the training data."""


def run(
    task: Annotated[
        str,
        typer.Option(metavar="NAME", help="Task to show.", autocompletion=completed(lambda: ("translation", *OTHERS))),
    ] = "translation",
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The model's folder.", show_default="dates.model, or by task"),
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0, max=MOST_MINUTES, metavar="FLOAT", help="Longest training time; 0 = no limit.")
    ] = 0,
    seed: Annotated[
        int, typer.Option(min=0, max=MOST_SEED, metavar="INTEGER", help="Seed of data, weights and order.")
    ] = 1,
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run the demonstration.

    Raises:
        UsageError: the task has no demonstration.
    """
    if task not in ("translation", *OTHERS):
        raise UsageError(f"--task {task}: no such demonstration{did_you_mean(task, ('translation', *OTHERS))}")
    prepare_training(threads)
    messages = Messages(quiet)
    importlib.import_module("torch")  # whoever lacks it learns so before anything is written
    if task in OTHERS:
        module, name = OTHERS[task]
        return getattr(importlib.import_module(module), name)(out, minutes, seed, choose_device(device), messages)
    out = out or Path("dates.model")
    messages.say(f"making {NUM_PAIRS:,} pairs of dates and numbers, in English and Chinese")
    train, validation = _write_pairs(out, seed)
    from heedful.cli.train import train_and_watch
    from heedful.predictors.table import load
    from heedful.predictors.translator import Translator
    from heedful.runs.finish import ending, export_engines
    from heedful.runs.request import TrainRequest, merged_settings

    limits = (f"training.seed={seed}", *([f"training.max_minutes={minutes}"] if minutes else []))
    where = choose_device(device)
    settings = merged_settings(overrides=(*SETTINGS, *limits))
    request = TrainRequest(data=(train,), out=out, dev=(validation,), settings=settings, device=where)
    info, outcome = train_and_watch(request, messages)
    print(ending(info, outcome))
    translator = load(out, where, kind=Translator)
    print(_exact_match(translator, seed))
    print(_conversions(translator))
    print(_attention(translator, out, messages))
    export_engines(info, messages.say, messages.warn)
    print(f"\nmodel: {out}{_page(out, messages)}")
    print(f"next:  heedful translate {shlex.quote(str(out))} '{next(iter(SAMPLES))}'")


def _page(out: Path, messages: Messages) -> str:
    """Write the page with the model inside, where the runtime for browsers is installed."""
    from heedful.cli.web_export import export_web
    from heedful.export.web_runtime import has_runtime
    from heedful.predictors.table import load
    from heedful.predictors.translator import Translator

    if not has_runtime():
        return ""
    translator = load(out, kind=Translator)  # with the engines that were exported
    return f"\npage:  {export_web(translator, 'html', messages, examples=[*SAMPLES])}"


def _write_pairs(out: Path, seed: int) -> tuple[Path, Path]:
    """Write training and validation pairs into the run's folder, unless they are there already."""
    from heedful.cli.demo_files import write_examples
    from heedful.synthetic.corpus import generate

    counts: dict[Split, tuple[str, int]] = {
        "train": ("dates.tsv", NUM_PAIRS),
        "dev": ("dates-validation.tsv", NUM_VALIDATION),
    }
    texts = {
        name: "".join(f"{source}\t{target}\n" for source, target in generate(count, seed, split))
        for split, (name, count) in counts.items()
    }
    train, validation = write_examples(out, texts, "pairs")
    return train, validation


def _exact_match(translator: "Translator", seed: int) -> str:
    from heedful.data.prepare import EvaluationSet
    from heedful.predictors.cached_test_scores import keep_evaluation
    from heedful.synthetic.corpus import generate

    pairs = [*generate(NUM_HELD_OUT, seed, "test", kind="date")]
    measured = translator.measure(EvaluationSet([source for source, _ in pairs], [[target] for _, target in pairs]))
    keep_evaluation(translator.folder, measured)
    share = measured.report["exact_match"].score
    return (
        f"\nexact match {share:.1f} % on {len(pairs):,} held-out dates: none of them, however written, was trained on\n"
    )


def _conversions(translator: "Translator") -> str:
    outputs = translator.translate([*SAMPLES])
    rows = [
        (output.text, source, "" if output.text == target else f"(should be {target})")
        for output, (source, target) in zip(outputs, SAMPLES.items(), strict=True)
    ]
    # Chinese characters are two columns wide, so text that may contain them follows the aligned columns.
    return "\n".join(f"  {line}" for line in aligned([("model says", "for", ""), *rows]).split("\n"))


def _attention(translator: "Translator", out: Path, messages: Messages) -> str:
    """Draw the attention of the first sample, as a file and for the terminal."""
    from heedful.inspection.plot import save_heat_map, text_heat_map

    (output,) = translator.translate([next(iter(SAMPLES))], attention=True)
    if output.attention is None:
        return ""
    picture = beside(out, "-attention.png")
    note = save_heat_map(picture, output.source_pieces, output.target_pieces, output.attention, output.source)
    if note:
        messages.say(note)
    width = shutil.get_terminal_size().columns
    encoding = sys.stdout.encoding or "utf-8"
    drawn = text_heat_map(output.source_pieces, output.target_pieces, output.attention, width, encoding)
    return f"\nwhat each output character came from, also in {picture}:\n\n{drawn}"
