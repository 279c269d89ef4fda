"""Distil a model into a smaller one: train it on the outputs of its teacher.

DATA is one file of pairs, or two aligned files; only the sources are used, and the teacher translates them. Without
--dev, one source in twenty is held out with its references. The teacher's outputs stay in OUT.distilled; run the same
command again to resume.

Examples:
  heedful distil pairs.model pairs.tsv --preset tiny
  heedful distil pairs.model pairs.tsv --preset tiny --more news.de --minutes 20
  heedful distil marian.model train.de train.en --preset rnnsearch --dev dev.de --dev dev.en --out small.model
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.lines import text_lines
from heedful.cli.messages import Messages
from heedful.cli.options import (
    FILES,
    ColumnsText,
    DataPaths,
    Debug,
    Dev,
    Device,
    Engine,
    Quiet,
    Threads,
    choose_device,
    parse_columns,
    prepare_training,
)
from heedful.cli.train import (
    Minutes,
    Preset,
    Seed,
    Settings,
    SettingsFile,
    chosen_settings,
    print_results,
    train_and_watch,
)
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.data.rows import Columns
    from heedful.predictors.translator import Translator

MoreSources = Annotated[
    list[Path] | None,
    typer.Option(
        "--more",
        metavar="FILE",
        help="Text with further sources, one a line, without translations; may be repeated.",
        rich_help_panel=FILES,
    ),
]
TeacherPath = Annotated[Path, typer.Argument(metavar="TEACHER", help="A model folder.", show_default=False)]
StudentFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="The student's folder.", show_default="TEACHER-student.model", rich_help_panel=FILES
    ),
]


def run(
    teacher: TeacherPath,
    data: DataPaths,
    dev: Dev = None,
    more: MoreSources = None,
    columns: ColumnsText = "",
    preset: Preset = "",
    config: SettingsFile = None,
    settings: Settings = None,
    minutes: Minutes = 0,
    out: StudentFolder = None,
    seed: Seed = None,
    engine: Engine = "auto",
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Distil a model."""
    prepare_training(threads)
    messages = Messages(quiet)
    from heedful.cli.scoring import load_to_run
    from heedful.data.corpus import find_pairs
    from heedful.predictors.distillation import as_items, compared, doubt, read_sources, write_pairs
    from heedful.predictors.translator import Translator
    from heedful.runs.request import TrainRequest, merged_settings

    model = load_to_run(teacher, engine, device, kind=Translator)
    student = _student(out, teacher)
    chosen = parse_columns(columns)
    languages = _languages(model, data, chosen)
    messages.say((pairs := find_pairs(data, chosen)).describe())
    sources = read_sources(pairs, text_lines(more or []), find_pairs(dev, chosen) if dev else None)
    if doubts := doubt(model, sources.dev):
        messages.warn(doubts)
    folder = student.with_name(f"{student.name}.distilled")
    train_file, dev_file = write_pairs(model, sources, folder, messages.say)
    request = TrainRequest(
        data=(train_file,),
        out=student,
        dev=(dev_file,),
        languages=languages,
        preset=preset,
        settings=merged_settings(config, settings or (), chosen_settings(seed, minutes)),
        device=choose_device(device),
    )
    info, outcome = train_and_watch(request, messages)
    print_results(info, outcome, messages)
    items = as_items(find_pairs(request.dev))
    print(compared(model, load_to_run(student, engine, device, kind=Translator), items), end="")


def _student(out: Path | None, teacher: Path) -> Path:
    """Folder of the student.

    Raises:
        UsageError: it is the teacher's, or has no name.
    """
    named = teacher if teacher.name else teacher.resolve()
    student = out or named.with_name(f"{named.name.removesuffix('.model')}-student.model")
    if not student.name:
        raise UsageError(f"distil: --out {student}: names no folder of its own; give the student a new one")
    if student.resolve() == teacher.resolve():
        raise UsageError(f"distil: {student} is the teacher; name another folder with --out")
    return student


def _languages(teacher: "Translator", data: list[Path], columns: "Columns") -> tuple[str, str]:
    """Languages of the teacher, or those of the data where the teacher's are unknown.

    Raises:
        UsageError: names of two aligned files say others, or the teacher reads several columns.
    """
    from heedful.text.text_files import UNNAMED, language_names

    if teacher.text.source_columns:
        name = teacher.folder.path
        raise UsageError(f"distil: {name} reads several columns; only models of single texts are teachers so far")
    source, target = teacher.folder.facts.get("languages", UNNAMED)
    named = language_names(data, columns)
    pairs = zip((source, target), named, UNNAMED, strict=True)
    if any(one != other and unnamed not in (one, other) for one, other, unnamed in pairs):
        raise UsageError(
            f"distil: {teacher.folder.path} translates {source} to {target}, but the data are {' and '.join(named)}"
        )
    languages = (
        own if own not in ("", unnamed) else other
        for own, other, unnamed in zip((source, target), named, UNNAMED, strict=True)
    )
    first, second = map(str, languages)
    return first, second
