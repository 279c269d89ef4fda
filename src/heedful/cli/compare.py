"""Train a grid of variants on one corpus and print a table of results; for any task.

GRID is a TOML file: "base" has the settings that all rows share, "rows" the name and changes of each row, and every
combination of "axes" is a row too; see examples/compare_attention.toml. Every row sees the same pairs, seeds and
budget. The result of each run is a file in --out; run the same command again to continue where it stopped, even within
a training. A row that cannot run is reported, and the others run.

With --gold, or with "links" in the grid's table "gold", the table has a column AER: every row whose model has attention
aligns the test pairs, or those of --gold-pairs, and its links are compared with the manual ones. FILE is as for heedful
align --gold. AER can be added later without training again.

Examples:
  heedful compare grid.toml pairs.tsv --minutes-per-run 10
  heedful compare grid.toml pairs.tsv --gold-pairs links.tsv --gold links.txt
  heedful compare grid.toml train.de train.en --test test.de --test test.en
  heedful compare grid.toml pairs.tsv --seeds 1,2,3
  heedful compare grid.toml reviews.tsv --task classification
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from heedful.cli.completion import completed, tasks
from heedful.cli.messages import Messages
from heedful.cli.options import (
    FILES,
    MOST_MINUTES,
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
from heedful.errors import UsageError

_TRAINING: Final = "Training"
_GOLD: Final = "Alignments against manual links"
GoldPath = Annotated[
    Path | None,
    typer.Option(
        "--gold", metavar="FILE", help="Manual links of the test pairs; adds the column AER.", rich_help_panel=_GOLD
    ),
]
GoldPairs = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Pairs of these links, if not the test pairs; twice for two aligned files.",
        rich_help_panel=_GOLD,
    ),
]
OneBased = Annotated[bool, typer.Option("--one-based", help="FILE counts words from 1.", rich_help_panel=_GOLD)]
Turned = Annotated[bool, typer.Option("--turned", help="FILE gives links as target-source.", rich_help_panel=_GOLD)]
Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder for runs and tables.", show_default="GRID.compare", rich_help_panel=FILES),
]
MinutesPerRun = Annotated[
    float,
    typer.Option(
        min=0,
        max=MOST_MINUTES,
        metavar="FLOAT",
        help="Longest training time per run; 0 = as the grid says.",
        rich_help_panel=_TRAINING,
    ),
]
TaskName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Task of all rows; see: heedful list tasks.",
        show_default="the grid's, or translation",
        rich_help_panel=_TRAINING,
        autocompletion=completed(tasks),
    ),
]
Seeds = Annotated[
    str,
    typer.Option(
        metavar="A,B,...",
        help="Seeds; each row is trained once with each.",
        show_default="the grid's",
        rich_help_panel=_TRAINING,
    ),
]
Baseline = Annotated[
    str,
    typer.Option(
        metavar="ROW",
        help="Row that all others are compared with; may be changed without training again.",
        show_default="the grid's, or the first",
        rich_help_panel=_TRAINING,
    ),
]


def run(
    grid: Annotated[Path, typer.Argument(metavar="GRID", help="TOML file with the grid.", show_default=False)],
    data: DataPaths,
    task: TaskName = "",
    dev: Dev = None,
    test: Test = None,
    columns: ColumnsText = "",
    languages: Languages = "",
    out: Out = None,
    minutes_per_run: MinutesPerRun = 0,
    seeds: Seeds = "",
    baseline: Baseline = "",
    gold: GoldPath = None,
    gold_pairs: GoldPairs = None,
    one_based: OneBased = False,
    turned: Turned = False,
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train and compare all rows of a grid."""
    prepare_training(threads)
    messages = Messages(quiet)
    from heedful.cli.train import train_and_watch
    from heedful.comparison.compare import compare_grid
    from heedful.comparison.run import Runner

    table = compare_grid(
        grid,
        *data,
        out=out or "",
        task=task,
        dev=dev or (),
        test=test or (),
        columns=parse_columns(columns),
        languages=parse_languages(languages),
        minutes_per_run=minutes_per_run,
        seeds=parse_seeds(seeds),
        baseline=baseline,
        gold=_gold_settings(gold, gold_pairs or (), one_based, turned),
        device=choose_device(device),
        runner=Runner(lambda request: train_and_watch(request, messages), messages.say, messages.warn),
    )
    print(table, end="")
    print(f"\ntables: {table.out / 'table.md'}, {table.out / 'table.json'}\nreport: {table.out / 'report.html'}")


def _gold_settings(gold: Path | None, pairs: Sequence[Path], one_based: bool, turned: bool) -> dict[str, Any]:
    """Settings of manual alignments: the options, then the grid's for the rest."""
    settings = {"links": str(gold or ""), "pairs": [str(path) for path in pairs]}
    flags = {"is_one_based": one_based, "is_turned": turned}
    return {key: value for key, value in {**settings, **flags}.items() if value}


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parse numbers separated by commas.

    Args:
        text: such as "1,2,3"; may be empty.

    Returns:
        Distinct numbers, each at least 0.

    Raises:
        UsageError: the text is not such a list.

    Example:
        >>> parse_seeds("1,2,3")
        (1, 2, 3)
    """
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(part.isdecimal() and len(part) < 10 for part in parts) or len({*parts}) < len(parts):
        raise UsageError(f"--seeds {text[:80]!r}: expected distinct numbers separated by commas, such as 1,2,3")
    return tuple(int(part) for part in parts)
