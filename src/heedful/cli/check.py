"""Check data files for problems that would stop or spoil training.

DATA is as for `heedful train`. Errors stop training, warnings harm the model or its scores, notes are for information.
The exit code is 2 if there are errors, or, with --strict, warnings.

Examples:
  heedful check pairs.tsv
  heedful check train.de train.en --test test.de --test test.en --strict
  heedful check reviews.csv --task classification
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from heedful.cli.options import (
    FILES,
    ColumnsText,
    DataPaths,
    Debug,
    Dev,
    IdleDevice,
    IdleThreads,
    Quiet,
    ReportFormat,
    Separator,
    Test,
    parse_columns,
)
from heedful.errors import DataError
from heedful.text.counts import counted
from heedful.text.quoting import harmless

if TYPE_CHECKING:
    from heedful.data.findings import CheckReport, FileFacts
    from heedful.data.rows import Columns

FAILED: Final = 2
CheckedTask = Annotated[
    Literal["translation", "classification", "answering", "captioning"],
    typer.Option(
        "--task",
        metavar="translation|classification|answering|captioning",
        help="Task that the data are for.",
        rich_help_panel=FILES,
    ),
]
_STYLES: Final = {"error": "bold red", "warning": "yellow", "note": "dim"}


def run(
    data: DataPaths,
    dev: Dev = None,
    test: Test = None,
    columns: ColumnsText = "",
    separator: Separator = "",
    task: CheckedTask = "translation",
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 2 on warnings, too.", rich_help_panel=FILES)
    ] = False,
    output_format: ReportFormat = "text",
    device: IdleDevice = "auto",
    threads: IdleThreads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Check data.

    Raises:
        Exit: with code 2, if the data fail the check.
    """
    from heedful.data.folders import folder_parts

    parts = folder_parts(data[0]) if len(data) == 1 else {}
    data = [parts.get("train", data[0]), *data[1:]]
    own = {name: (path,) for name, path in parts.items()}
    held_out = tuple(dev or own.get("dev", ())), tuple(test or own.get("test", ()))
    chosen = parse_columns(columns)
    if task == "translation":
        from heedful.data.check import check_corpus

        report = check_corpus(data, *held_out, chosen, *_text_limits(data, chosen))
    else:
        from heedful.data.task_check import check_task

        report = check_task(task, data, *held_out, chosen, separator)
    if output_format == "json":
        print(json.dumps(report.to_json(), ensure_ascii=False, indent=1))
    elif sys.stdout.isatty():
        _draw(report)
    else:
        for line in [*map(_about, report.files), *map(str, report.findings), report.summary()]:
            print(harmless(line))
    if report.count("error") or (strict and report.count("warning")):
        raise typer.Exit(FAILED)


def _text_limits(data: Sequence[Path], columns: "Columns") -> tuple[int, bool]:
    """Longest text that training takes, in characters, and whether the data are summaries, whose sources it cuts."""
    from heedful.data.corpus import find_pairs
    from heedful.data.prepare import choose_units
    from heedful.evaluation.summaries import SUMMARISED_CHARACTERS, longest_summary
    from heedful.text.tokenizer import TextConfig

    usual = TextConfig().max_characters
    try:
        file = find_pairs(data, columns, leaves_out_faults=True)
        if choose_units(file, usual) == "pieces" and longest_summary(file):
            return SUMMARISED_CHARACTERS, True
    except DataError:
        pass  # a finding of the check
    return usual, False


def _about(facts: "FileFacts") -> str:
    rows = counted(facts.num_rows, "row")
    form = f"{facts.form}; " if facts.form else ""
    usable = f"{facts.role}: {', '.join(facts.files)}: {form}{facts.num_usable:,} of {rows} usable"
    if not facts.num_usable:
        return usable
    lengths = " and ".join(f"{mean:.0f}" for mean in facts.mean_characters)
    scripts = " and ".join(max(side, key=lambda name: side[name], default="") or "no letters" for side in facts.scripts)
    return f"{usable}, {lengths} characters on average, {scripts}"


def _draw(report: "CheckReport") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for facts in report.files:
        console.print(Text(harmless(_about(facts))))
    if report.findings:
        table = Table(show_edge=False, pad_edge=False)
        for heading in ("", "where", "what", "what to do"):
            table.add_column(heading)
        for finding in report.findings:
            # Text, not str: rich would interpret brackets in file names as markup.
            cells = (finding.where, finding.message, finding.advice)
            table.add_row(Text(finding.level, style=_STYLES[finding.level]), *(Text(harmless(cell)) for cell in cells))
        console.print(table)
    console.print(Text(harmless(report.summary())))
