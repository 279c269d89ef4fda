"""Output files of a comparison: Markdown, JSON, one HTML page, and a plot of scores by length."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from heedful.comparison.grid import baseline_of
from heedful.comparison.page import report_page
from heedful.comparison.plan import ComparisonPlan
from heedful.comparison.run_result import ComparedItems, RunResult
from heedful.comparison.summary import Comparison, summarise
from heedful.comparison.tables import to_markdown
from heedful.errors import MissingExtra, ResourceError
from heedful.files.atomic_write import atomic_write
from heedful.files.formats import COMPARISON_FORMAT
from heedful.inspection.length_plot import Curve, save_length_plot


def write_tables(
    plan: ComparisonPlan,
    items: ComparedItems,
    results: Mapping[str, Sequence[RunResult]],
    missing: Mapping[str, str],
    warn: Callable[[str], None],
) -> Comparison:
    """Write table.md, table.json, by-length.png and report.html from the results so far.

    Args:
        items: sources and references that all rows are evaluated on.
        results: run results by row name.
        missing: for each row that could not be run, the reason by its name.
        warn: called with a message where the plot cannot be drawn.

    Raises:
        ResourceError: a file cannot be written.
    """
    grid = plan.grid
    metrics = grid.metrics or items.default_metrics
    remarks = [plan.gold.remark()] if plan.gold else []
    comparison = summarise(
        grid.title, items, metrics, results, baseline_of(grid, plan.rows), missing, grid.length_edges, remarks=remarks
    )
    facts = COMPARISON_FORMAT.stamp({"command": plan.command, **comparison.to_dict(), "context": plan.context()})
    texts = {
        "table.md": to_markdown(comparison, plan.command),
        "table.json": json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False) + "\n",
        "report.html": report_page(
            comparison, results, plan.command, _picture(plan.out, comparison, warn), plan.context()
        ),
    }
    try:
        for name, text in texts.items():
            with atomic_write(plan.out / name, is_internal=True) as stream:
                stream.write(text)
    except OSError as error:
        raise ResourceError(f"{plan.out}: tables not written: {error.strerror or error}") from None
    return comparison


def _picture(out: Path, comparison: Comparison, warn: Callable[[str], None]) -> bytes:
    """Plot scores by length as PNG; empty where there is only one range, or Matplotlib is not installed."""
    if not comparison.rows or len(comparison.rows[0].by_length) < 2:
        return b""
    curves = [
        Curve(
            row.name,
            tuple(bucket.score for bucket in row.by_length),
            tuple(bucket.interval.low for bucket in row.by_length),
            tuple(bucket.interval.high for bucket in row.by_length),
        )
        for row in comparison.rows
    ]
    path = out / "by-length.png"
    ranges = [bucket.label for bucket in comparison.rows[0].by_length]
    score, unit, side = comparison.metric.name, comparison.length_unit, comparison.measured_side
    try:
        save_length_plot(path, curves, ranges, comparison.baseline, score, unit, side)
    except MissingExtra as error:
        warn(str(error))
        return b""
    return path.read_bytes()
