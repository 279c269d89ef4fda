"""Train a grid of variants on one corpus and print the table that papers print.

GRID is a TOML file: "base" holds what all rows share, "rows" what each of them changes, with a name, and every
combination of "axes" is a row too; examples/compare_attention.toml is one. Every row sees the same pairs, seeds and
budget. What one run found is a file in --out, and the same command again goes on where it stopped, in the middle of a
training too. A row that cannot be run is named, and the others are run all the same.

Examples:
  heedful compare grid.toml pairs.tsv --minutes-per-run 10
  heedful compare grid.toml train.de train.en --dev val.de --dev val.en --test test.de --test test.en --seeds 1,2,3
"""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.messages import Messages
from heedful.cli.options import (
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
    use_threads,
)
from heedful.errors import UsageError


def run(
    grid: Annotated[Path, typer.Argument(metavar="GRID", help="A TOML file of rows.", show_default=False)],
    data: DataPaths,
    dev: Dev = None,
    test: Test = None,
    columns: ColumnsText = "1,2",
    languages: Languages = "",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="For runs and tables.", show_default="GRID.compare")
    ] = None,
    minutes_per_run: Annotated[
        float, typer.Option(min=0, help="Train each for at most so long; 0 = what the grid says.")
    ] = 0,
    seeds: Annotated[str, typer.Option(metavar="A,B,...", help="Train with each.", show_default="the grid's")] = "",
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train and compare all rows of a grid."""
    use_threads(threads)
    messages = Messages(quiet)
    from heedful.cli.comparing import Plan, compare, shell_command
    from heedful.comparison.grid import read_grid, rows_of
    from heedful.comparison.tables import to_text
    from heedful.recipe import Recipe

    settings = read_grid(grid)
    recipe = Recipe(
        data=tuple(data),
        out=out or Path(f"{grid.stem}.compare"),
        dev=tuple(dev or ()),
        test=tuple(test or ()),
        columns=parse_columns(columns),
        languages=parse_languages(languages),
        settings=(f"training.max_minutes={minutes_per_run}",) if minutes_per_run else (),
        device=choose_device(device),
    )
    options = ["--out", str(out)] if out else []
    options += ["--minutes-per-run", f"{minutes_per_run:g}"] if minutes_per_run else []
    options += ["--seeds", seeds] if seeds else []
    command = shell_command(("compare", str(grid)), recipe, options)
    plan = Plan(settings, rows_of(settings), parse_seeds(seeds) or settings.seeds, recipe, command)
    found = compare(plan, messages)
    print(to_text(found), end="")
    print(f"\ntables: {plan.out / 'table.md'}, {plan.out / 'table.json'}\nreport: {plan.out / 'report.html'}")


def parse_seeds(text: str) -> tuple[int, ...]:
    """Read numbers with commas between them.

    Args:
        text: such as "1,2,3"; may be empty.

    Returns:
        Different numbers of at least 0.

    Raises:
        UsageError: it is anything else.

    Example:
        >>> parse_seeds("1,2,3")
        (1, 2, 3)
    """
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(part.isdecimal() for part in parts) or len({*parts}) < len(parts):
        raise UsageError(f"--seeds {text!r}: expected different numbers with commas between, such as 1,2,3")
    return tuple(int(part) for part in parts)
