"""Compare variants of a model, from Python or from a command: a grid and data go in, the table comes back."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from heedful.comparison.gold import read_gold_pairs
from heedful.comparison.grid import GoldSettings, read_grid, rows_of
from heedful.comparison.plan import Plan, shell_command
from heedful.comparison.run import Runner, run_grid
from heedful.comparison.summary import Comparison, RowSummary
from heedful.comparison.tables import length_rows, remarks, score_rows, to_markdown, to_text
from heedful.config import merge, validate
from heedful.data.rows import Columns
from heedful.errors import UsageError
from heedful.pages.document import listed, table
from heedful.recipe import Started, train
from heedful.tasks.interface import Recipe
from heedful.training.loop import Outcome

Paths = str | Path | Sequence[str | Path]


@final
@dataclass(frozen=True)
class ComparisonResult:
    """What a comparison found: printed, it is the table; in a notebook, the table as HTML.

    Attributes:
        found: every figure.
        out: the folder of tables, report, findings and models.
        command: that does the same, or goes on with it.
    """

    found: Comparison
    out: Path
    command: str

    @property
    def rows(self) -> tuple[RowSummary, ...]:
        """Those with a run, in the grid's order; `missing` of `found` says why others have none."""
        return self.found.rows

    def __getitem__(self, name: str) -> RowSummary:
        """Return the row of a name.

        Args:
            name: as in the grid.

        Returns:
            Its figures.

        Raises:
            KeyError: there is none, or it has no run.
        """
        return {row.name: row for row in self.rows}[name]

    def __str__(self) -> str:
        """Return what `heedful compare` prints."""
        return self.to_text()

    def to_text(self) -> str:
        """Return the tables for a terminal; lines end in a newline."""
        return to_text(self.found)

    def to_markdown(self) -> str:
        """Return the tables as a page in Markdown."""
        return to_markdown(self.found, self.command)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold."""
        return {"command": self.command, **self.found.to_dict()}

    def _repr_html_(self) -> str:
        tables = [
            table(rows, self.found.baseline) for rows in (score_rows(self.found), length_rows(self.found)) if rows
        ]
        return "\n".join([*tables, listed(remarks(self.found))])


def compare_grid(
    grid: str | Path,
    *data: str | Path,
    out: str | Path = "",
    dev: Paths = (),
    test: Paths = (),
    columns: Columns = (1, 2),
    languages: tuple[str, str] = ("", ""),
    minutes_per_run: float = 0.0,
    seeds: Sequence[int] = (),
    gold: str | Path | Mapping[str, Any] = "",
    device: str = "cpu",
    quiet: bool = False,
    runner: Runner | None = None,
) -> ComparisonResult:
    """Train a grid of variants on one corpus and make the table that papers print; `heedful compare` calls this.

    What one run found is a file, and the same call goes on where an earlier one stopped.

    Args:
        grid: a TOML file, see `heedful.comparison.grid.Grid`.
        data: one TSV or JSONL file of pairs, or two aligned files.
        out: the folder for runs and tables; empty = named after the grid.
        dev: files to validate on.
        test: files to measure on.
        columns: 1-based columns of source and target.
        languages: codes of source and target; empty = from file names.
        minutes_per_run: train each for at most so long; 0 = what the grid says.
        seeds: train each with each; empty = the grid's.
        gold: links made by hand for the test pairs, or a mapping of what the grid's [gold] shall hold.
        device: where PyTorch computes.
        quiet: whether to print nothing but warnings.
        runner: trains, and is told how it goes; None = lines on standard error.

    Returns:
        The table and all figures in it.

    Raises:
        UsageError: no data, not one row can be run, or the folder holds a comparison of other data.
        ConfigError: the grid is wrong.
        DataError: the data or the links cannot be used.
        ResourceError: the folder cannot be written.
        MissingExtra: a package is not installed.
        Stopped: a signal; what was found is kept, and the same call goes on.

    Example:
        >>> table = compare_grid("grid.toml", "pairs.tsv", minutes_per_run=5)  # doctest: +SKIP
        >>> {row.name: row.scores["bleu"].mean for row in table.rows}  # doctest: +SKIP
        {'no attention': 9.8, 'global (general)': 21.7}
    """
    if not data:
        raise UsageError("compare: no data given; give one file of pairs, or two aligned files")
    settings = read_grid(Path(grid))
    recipe = Recipe(
        data=_paths(data),
        out=Path(out or f"{Path(grid).stem}.compare"),
        dev=_paths(dev),
        test=_paths(test),
        columns=columns,
        languages=languages,
        settings=(f"training.max_minutes={float(minutes_per_run)}",) if minutes_per_run else (),
        device=device,
    )
    asked = dict(gold) if isinstance(gold, Mapping) else {"links": str(gold)} if gold else {}
    by_hand = validate(GoldSettings, merge(settings.gold.model_dump(mode="json"), asked), "gold")
    options = ["--out", str(out)] if out else []
    options += ["--minutes-per-run", f"{minutes_per_run:g}"] if minutes_per_run else []
    options += ["--seeds", ",".join(map(str, seeds))] if seeds else []
    plan = Plan(
        grid=settings,
        rows=rows_of(settings, seeds),
        recipe=recipe,
        command=shell_command(("compare", str(grid)), recipe, [*options, *_gold_options(asked)]),
        gold=read_gold_pairs(by_hand, recipe.test, columns),
    )
    return ComparisonResult(run_grid(plan, runner or _printing(quiet)), plan.out, plan.command)


def _paths(given: Paths) -> tuple[Path, ...]:
    return tuple(Path(path) for path in ([given] if isinstance(given, str | Path) else given))


def _gold_options(asked: Mapping[str, Any]) -> list[str]:
    """Write settings of gold links as the command takes them."""
    pairs = [word for path in asked.get("pairs", ()) for word in ("--gold-pairs", str(path))]
    links = ["--gold", str(asked["links"])] if asked.get("links") else []
    flags = {"is_one_based": "--one-based", "is_turned": "--turned"}
    return [*links, *pairs, *(flag for key, flag in flags.items() if asked.get(key))]


def _printing(quiet: bool) -> Runner:
    """Train without a display, and print a line for each run."""

    def say(text: str) -> None:
        if not quiet:
            print(text, file=sys.stderr)

    def warn(text: str) -> None:
        print(f"warning: {text}", file=sys.stderr)

    def watch(progress: object) -> None: ...

    def train_quietly(recipe: Recipe) -> tuple[Started, Outcome]:
        known: list[Started] = []
        outcome = train(recipe, watch, known.append, warn)
        say(f"{outcome.reason}: step {outcome.step:,}, {outcome.seconds:,.0f} seconds")
        return known[0], outcome

    return Runner(train_quietly, say, warn)
