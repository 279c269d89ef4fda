"""Comparison of the model variants of a grid on one corpus; behind `heedful compare`."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from heedful.comparison.gold import read_gold_pairs
from heedful.comparison.grid import GoldSettings, Grid, read_grid, rows_of
from heedful.comparison.plan import ComparisonPlan, shell_command
from heedful.comparison.run import Runner, run_grid
from heedful.comparison.summary import Comparison, RowSummary
from heedful.comparison.tables import length_rows, remarks, score_rows, to_markdown, to_text
from heedful.config.base import merge, validate
from heedful.config.plugins import allow_code
from heedful.data.rows import Columns
from heedful.errors import EndedElsewhere, UsageError
from heedful.models.store import DEFAULT_TASK
from heedful.pages.document import listed, table
from heedful.runs.request import TrainRequest
from heedful.runs.train import Console, RunInfo, train
from heedful.training.progress import Outcome

Paths = str | Path | Sequence[str | Path]


@final
@dataclass(frozen=True)
class ComparisonResult:
    """Result of a comparison; prints as the table, and as an HTML table in a notebook.

    Attributes:
        comparison: all figures.
        out: folder of the tables, the report, the run results and the models.
        command: shell command that repeats the comparison, or resumes it if it was interrupted.

    Example:
        >>> table = heedful.compare("grid.toml", "de-en.tsv", minutes_per_run=5)  # doctest: +SKIP
        >>> table["global (general)"].seeds, [*table.to_dict()][0]  # doctest: +SKIP
        ((1,), 'command')
    """

    comparison: Comparison
    out: Path
    command: str

    @property
    def rows(self) -> tuple[RowSummary, ...]:
        """Rows with at least one run, in the grid's order; `comparison.missing` has the reasons for the others."""
        return self.comparison.rows

    def __getitem__(self, name: str) -> RowSummary:
        """Return the summary of a row.

        Args:
            name: name of the row in the grid.

        Raises:
            KeyError: the grid has no such row, or the row has no run.
        """
        return {row.name: row for row in self.rows}[name]

    def __str__(self) -> str:
        """Return what `heedful compare` prints."""
        return self.to_text()

    def to_text(self) -> str:
        """Return the tables for a terminal; lines end in a newline."""
        return to_text(self.comparison)

    def to_markdown(self) -> str:
        """Return the tables as a page in Markdown."""
        return to_markdown(self.comparison, self.command)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold."""
        return {"command": self.command, **self.comparison.to_dict()}

    def _repr_html_(self) -> str:
        tables = [
            table(rows, self.comparison.baseline)
            for rows in (score_rows(self.comparison), length_rows(self.comparison))
            if rows
        ]
        return "\n".join([*tables, listed(remarks(self.comparison))])


def compare_grid(
    grid: str | Path,
    *data: str | Path,
    out: str | Path = "",
    task: str = "",
    dev: Paths = (),
    test: Paths = (),
    columns: Columns = (1, 2),
    languages: tuple[str, str] = ("", ""),
    minutes_per_run: float = 0.0,
    seeds: Sequence[int] = (),
    baseline: str = "",
    gold: str | Path | Mapping[str, Any] = "",
    device: str = "cpu",
    code: Sequence[str] = (),
    quiet: bool = False,
    runner: Runner | None = None,
) -> ComparisonResult:
    """Train and evaluate a grid of model variants on one corpus; `heedful compare` calls this function.

    Each run's result is stored in a file, so that repeating an interrupted call resumes it.

    Args:
        grid: a TOML file, see `heedful.comparison.grid.Grid`.
        data: one file of pairs, of any format that `find_pairs` reads, or two aligned files.
        out: the folder for runs and tables; empty = named after the grid.
        task: name of the task; empty = the grid's.
        dev: files of validation examples; none = some examples are held out.
        test: files of test examples; none = some examples are held out, unless there are validation files.
        columns: 1-based columns of source and target.
        languages: language codes of source and target; empty = taken from the file names.
        minutes_per_run: longest training of a run in minutes; 0 = the grid's setting.
        seeds: seeds of every row; empty = the grid's.
        baseline: row that all others are compared with; empty = the grid's.
        gold: file of manual alignments of the test pairs, or a mapping of the fields of the grid's [gold] section.
        device: PyTorch device.
        code: parts outside the package that rows may name, each ``module:Class`` or ``module:function``.
        quiet: whether to print warnings only.
        runner: callbacks for training and messages; None = train without a display, print messages to standard error.

    Raises:
        UsageError: no data is given, no row of the grid can be run, or the folder holds a comparison of other data.
        ConfigError: the grid is invalid.
        DataError: the data or the manual alignments are unusable.
        ResourceError: the folder cannot be written.
        MissingExtra: a package is not installed.
        Stopped: a signal arrived; finished runs are stored, and the same call resumes the comparison.

    Example:
        >>> table = heedful.compare("grid.toml", "de-en.tsv", minutes_per_run=5)  # doctest: +SKIP
        >>> {row.name: row.scores["bleu"].mean for row in table.rows}  # doctest: +SKIP
        {'no attention': 9.8, 'global (general)': 21.7}
    """
    if not data:
        raise UsageError("compare: no data given; give one file of pairs, or two aligned files")
    settings = _grid(Path(grid), baseline, code)
    request = TrainRequest(
        is_compared=True,
        data=_paths(data),
        out=Path(out or f"{Path(grid).stem}.compare"),
        dev=_paths(dev),
        test=_paths(test),
        columns=columns,
        languages=languages,
        task=task or settings.task,
        device=device,
    )
    gold_settings = dict(gold) if isinstance(gold, Mapping) else {"links": str(gold)} if gold else {}
    by_hand = validate(GoldSettings, merge(settings.gold.model_dump(mode="json"), gold_settings), "gold")
    if request.task not in ("", DEFAULT_TASK) and by_hand.links:
        raise UsageError(f"compare: {request.task} has no word alignments: leave out the manual links")
    options = [*(["--out", str(out)] if out else []), *(["--task", task] if task else [])]
    options += ["--minutes-per-run", f"{minutes_per_run:g}"] if minutes_per_run else []
    options += ["--seeds", ",".join(map(str, seeds))] if seeds else []
    options += ["--baseline", baseline] if baseline else []
    plan = ComparisonPlan(
        grid=settings,
        rows=rows_of(settings, seeds),
        request=request,
        budget=(f"training.max_minutes={float(minutes_per_run)}",) if minutes_per_run else (),
        command=shell_command(("compare", str(grid)), request, [*options, *_gold_options(gold_settings)]),
        gold=read_gold_pairs(by_hand, request.test, columns),
    )
    return ComparisonResult(run_grid(plan, runner or _printing(quiet)), plan.out, plan.command)


def _grid(path: Path, baseline: str, code: Sequence[str]) -> Grid:
    """Read a grid, whose rows may name this code, and replace its baseline unless the other one is empty."""
    allow_code(code)
    grid = read_grid(path)
    return validate(Grid, {**grid.model_dump(mode="json"), "baseline": baseline}) if baseline else grid


def _paths(paths: Paths) -> tuple[Path, ...]:
    return tuple(Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths))


def _gold_options(settings: Mapping[str, Any]) -> list[str]:
    """Write the settings of manual alignments as command-line options."""
    pairs = [word for path in settings.get("pairs", ()) for word in ("--gold-pairs", str(path))]
    links = ["--gold", str(settings["links"])] if settings.get("links") else []
    flags = {"is_one_based": "--one-based", "is_turned": "--turned"}
    return [*links, *pairs, *(flag for key, flag in flags.items() if settings.get(key))]


def _printing(quiet: bool) -> Runner:
    """Return callbacks that train without a display and print messages to standard error."""

    def say(text: str) -> None:
        if not quiet:
            print(text, file=sys.stderr)

    def warn(text: str) -> None:
        print(f"warning: {text}", file=sys.stderr)

    def ignore(progress: object) -> None: ...

    def train_quietly(request: TrainRequest) -> tuple[RunInfo, Outcome]:
        result = train(request, Console(ignore, ignore, warn))
        if result.info is None:
            raise EndedElsewhere(0)
        outcome = result.outcome
        say(f"{outcome.reason}: step {outcome.step:,}, {outcome.seconds:,.0f} seconds")
        return result.info, outcome

    return Runner(train_quietly, say, warn)
