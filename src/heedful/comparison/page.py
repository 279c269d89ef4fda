"""Page of a comparison: one offline HTML file with tables, picture, configurations and commands."""

import base64
import difflib
from collections.abc import Mapping, Sequence
from html import escape

from heedful.comparison.run_result import RunResult
from heedful.comparison.summary import Comparison
from heedful.comparison.tables import length_rows, remarks, score_rows
from heedful.pages.document import document, folded, listed, table


def report_page(
    comparison: Comparison,
    results: Mapping[str, Sequence[RunResult]],
    command: str,
    picture: bytes,
    context: Sequence[str],
) -> str:
    """Return the HTML page of a comparison.

    Args:
        results: run results by row name, with their commands and configurations.
        picture: PNG plot of scores by source length; empty = no plot.
        context: lines about data, seeds and budget.
    """
    parts = [
        f"<pre>{escape(command)}</pre>",
        listed(context),
        f"<h2>{escape(comparison.metric.name)} and other figures</h2>",
        table(score_rows(comparison), comparison.baseline),
        listed(remarks(comparison)),
    ]
    if rows := length_rows(comparison):
        parts.append(
            f"<h2>By {comparison.measured_side} length</h2>\n<p>{escape(comparison.metric.name)} with 95 % intervals, "
            f"by the number of {escape(comparison.length_unit)} in the {comparison.measured_side}; in brackets the "
            "number of sources.</p>"
        )
        if picture:
            data = base64.b64encode(picture).decode("ascii")
            words = (
                f"{comparison.metric.name} by {comparison.measured_side} length, one panel for each row; the table "
                "below has the figures"
            )
            parts.append(f'<p><img alt="{escape(words)}" src="data:image/png;base64,{data}"></p>')
        parts.append(table(rows, comparison.baseline))
    parts += _attention(results)
    parts.append(
        "<h2>Runs</h2>\n<p>Each command trains one row alone; with a limit of time it also chooses settings that suit "
        "the time, which a comparison does not. Each configuration is complete.</p>"
    )
    baseline = next(iter(results.get(comparison.baseline, ())), None)
    parts += [_runs(name, runs, baseline, comparison.trained_unit) for name, runs in results.items() if runs]
    return document(comparison.title or "Comparison", parts)


def _attention(results: Mapping[str, Sequence[RunResult]]) -> list[str]:
    """Attention of each row to the same sources; nothing where no row has any."""
    drawn = {name: runs[0].attention for name, runs in results.items() if runs and runs[0].attention}
    if not drawn:
        return []
    explanations = dict.fromkeys(view.explanation for views in drawn.values() for view in views)
    parts = [
        f'<h2>Attention</h2>\n<p class="faint">First seed of each row. {escape(". ".join(explanations))}; the pointer '
        "shows the number.</p>"
    ]
    for name, views in drawn.items():
        parts.append(f"<h3>{escape(name)}</h3>")
        parts += [f"<p>{escape(view.title)}</p>\n{view.html}" for view in views]
    return parts


def _runs(name: str, runs: Sequence[RunResult], baseline: RunResult | None, unit: str) -> str:
    first = runs[0]
    facts = [
        f"seed {run.seed}: {run.ended}; step {run.step:,}, kept the model of step {run.best_step:,}; "
        f"{run.num_target_tokens:,} {unit} in {run.seconds:,.0f} s; {run.device}, {run.versions}"
        for run in runs
    ]
    commands = escape("\n".join(run.command for run in runs))
    parts = [listed(facts), f"<pre>{commands}</pre>"]
    if baseline is not None and first.row != baseline.row and (changes := _changes(baseline.settings, first.settings)):
        parts.append(f'<p class="faint">Against {escape(baseline.row)}:</p><pre>{escape(changes)}</pre>')
    parts.append(f"<pre>{escape(first.settings.strip())}</pre>")
    return folded(name, "\n".join(parts))


def _changes(before: str, after: str) -> str:
    """Lines that differ between two configurations, marked - for the baseline's and + for the row's."""
    lines = difflib.ndiff(before.split("\n"), after.split("\n"))
    return "\n".join(line for line in lines if line[:2] in ("- ", "+ ") and line[2:].strip())
