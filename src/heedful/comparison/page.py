"""The comparison as one HTML file that needs no network: tables, picture, configurations, commands."""

import base64
import difflib
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from heedful.comparison.finding import Finding
from heedful.comparison.summary import Comparison
from heedful.comparison.tables import length_rows, remarks, score_rows

STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c1c1c; --faint: #646464; --line: #d9d9d9; --paper: #fff; --tint: #f4f6f9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --faint: #a6a6a6; --line: #444; --paper: #1b1c1e; --tint: #25282c; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; font-weight: normal; }
thead th { color: var(--faint); font-weight: 600; vertical-align: bottom; white-space: normal; }
tr.baseline > * { background: var(--tint); }
img { max-width: 100%; background: #fff; }
pre { background: var(--tint); padding: .7rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem; }
summary { cursor: pointer; } li, .faint { color: var(--faint); }
"""


def report_page(
    found: Comparison, findings: Mapping[str, Sequence[Finding]], command: str, picture: bytes, context: Sequence[str]
) -> str:
    """Write the page.

    Args:
        found: what is known of the grid.
        findings: by name of the row; commands and configurations are theirs.
        command: that made the comparison.
        picture: a PNG of scores by source length; none where empty.
        context: lines about data, budget and machine.

    Returns:
        HTML with everything in it.
    """
    title = escape(found.title or "Comparison")
    parts = [
        f'<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{STYLE}</style>",
        f"<h1>{title}</h1>",
        f"<pre>{escape(command)}</pre>",
        "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in context) + "</ul>",
        f"<h2>{escape(found.metric.name)} and other figures</h2>",
        _table(score_rows(found), found.baseline),
        "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in remarks(found)) + "</ul>",
    ]
    if rows := length_rows(found):
        parts.append(
            f"<h2>By source length</h2>\n<p>{escape(found.metric.name)} with 95 % intervals, by the number of "
            f"{escape(found.length_unit)} in the source; in brackets the number of sources.</p>"
        )
        if picture:
            data = base64.b64encode(picture).decode("ascii")
            words = f"{found.metric.name} by source length, one panel for each row; the table below has the figures"
            parts.append(f'<p><img alt="{escape(words)}" src="data:image/png;base64,{data}"></p>')
        parts.append(_table(rows, found.baseline))
    parts.append("<h2>Runs</h2>\n<p>Each command trains one row alone; each configuration is complete.</p>")
    baseline = next(iter(findings.get(found.baseline, ())), None)
    parts += [_runs(name, runs, baseline) for name, runs in findings.items() if runs]
    return "\n".join(parts) + "\n</html>\n"


def _table(rows: Sequence[Sequence[str]], baseline: str) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in rows[0])
    lines: list[str] = []
    for name, *cells in rows[1:]:
        tag = ' class="baseline"' if name == baseline else ""
        below = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        lines.append(f'<tr{tag}><th scope="row">{escape(name)}</th>{below}</tr>')
    body = "\n".join(lines)
    return f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'


def _runs(name: str, runs: Sequence[Finding], baseline: Finding | None) -> str:
    first = runs[0]
    facts = "".join(
        f"<li>seed {run.seed}: {escape(run.ended)}; step {run.step:,}, kept the model of step {run.best_step:,}; "
        f"{run.num_target_tokens:,} target tokens in {run.seconds:,.0f} s; {escape(run.device)}, "
        f"{escape(run.versions)}</li>"
        for run in runs
    )
    commands = escape("\n".join(run.command for run in runs))
    parts = [f"<details><summary>{escape(name)}</summary>", f"<ul>{facts}</ul>", f"<pre>{commands}</pre>"]
    if baseline is not None and first.row != baseline.row and (changes := _changes(baseline.settings, first.settings)):
        parts.append(f'<p class="faint">Against {escape(baseline.row)}:</p><pre>{escape(changes)}</pre>')
    parts.append(f"<pre>{escape(first.settings.strip())}</pre></details>")
    return "\n".join(parts)


def _changes(before: str, after: str) -> str:
    """The lines that differ, - of the baseline and + of the row."""
    lines = difflib.ndiff(before.split("\n"), after.split("\n"))
    return "\n".join(line for line in lines if line[:2] in ("- ", "+ ") and line[2:].strip())
