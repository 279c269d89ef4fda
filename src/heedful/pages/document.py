"""Shared layout of offline pages: one HTML file in light and dark colours, without external resources."""

from collections.abc import Sequence
from html import escape
from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c1c1c; --faint: #646464; --line: #d9d9d9; --paper: #fff; --tint: #f4f6f9;
  --first: #2166ac; --second: #b2501c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --faint: #a6a6a6; --line: #444; --paper: #1b1c1e; --tint: #25282c;
    --first: #7db4e6; --second: #e8a06b; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin-top: 2rem; } h3 { font-size: 1rem; margin: 0 0 .3rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; font-weight: normal; }
th.text, td.text { text-align: start; white-space: normal; min-width: 6rem; }
thead th { color: var(--faint); font-weight: 600; vertical-align: bottom; white-space: normal; }
tr.marked > * { background: var(--tint); }
table.texts { width: 100%; margin-bottom: 1.2rem; }
table.texts th, table.texts td { text-align: start; white-space: normal; overflow-wrap: anywhere; vertical-align: top; }
table.texts th { width: 6rem; white-space: nowrap; color: var(--faint); font-weight: normal; }
img { max-width: 100%; background: #fff; }
@media (prefers-color-scheme: dark) {
  /* Pictures are drawn on white. */
  img { filter: invert(1) hue-rotate(180deg); mix-blend-mode: lighten; }
}
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(21rem, 100%), 1fr)); gap: 1.5rem 2rem; }
figure { margin: 0; } svg { display: block; width: 100%; height: auto; }
svg text { font-size: 12px; fill: var(--faint); } svg.map { margin-bottom: 1rem; }
.document { margin-bottom: 1.5rem; } .document p { margin: 0; }
.sentence { display: flex; gap: .8rem; margin: .15rem 0; }
.bar { flex: 0 0 4rem; height: .5rem; margin-top: .55rem; background: var(--tint); }
.bar span { display: block; height: 100%; background: var(--first); }
mark { color: inherit; border-radius: 2px; }
.looks { display: grid; grid-template-columns: repeat(auto-fill, minmax(7rem, 1fr)); gap: .7rem;
  margin-bottom: 1.5rem; }
figcaption { text-align: center; font-size: .85rem; color: var(--faint); overflow-wrap: anywhere; }
.key { font-size: .85rem; font-weight: normal; white-space: nowrap; padding-left: .6rem; }
pre { background: var(--tint); padding: .7rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem; }
summary { cursor: pointer; } li, .faint { color: var(--faint); }
li { overflow-wrap: anywhere; }
"""


def document(title: str, parts: Sequence[str]) -> str:
    """Make a page.

    Args:
        parts: HTML below the title.
    """
    head = [
        f'<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{escape(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{STYLE}</style>",
        f"<h1>{escape(title)}</h1>",
    ]
    return "\n".join([*head, *parts]) + "\n</html>\n"


def table(rows: Sequence[Sequence[str]], marked: str = "", text_columns: Sequence[int] = ()) -> str:
    """Make a table; the first row and the first column are headings.

    Args:
        marked: first cell of the rows to highlight; empty = none.
        text_columns: columns of text, which begin at their left; others are numbers.
    """
    head = "".join(
        f'<th scope="col"{" class=text" if column in text_columns else ""}>{escape(cell)}</th>'
        for column, cell in enumerate(rows[0])
    )
    lines: list[str] = []
    for name, *cells in rows[1:]:
        tag = ' class="marked"' if marked and name == marked else ""
        below = "".join(
            f'<td class="text" dir="auto">{escape(cell)}</td>' if column in text_columns else f"<td>{escape(cell)}</td>"
            for column, cell in enumerate(cells, start=1)
        )
        lines.append(f'<tr{tag}><th scope="row">{escape(name)}</th>{below}</tr>')
    body = "\n".join(lines)
    return f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'


def texts(rows: Sequence[tuple[str, str]], marked: str = "") -> str:
    """Make a table of labelled texts in any script.

    Args:
        rows: pairs of label and text, both plain.
        marked: label of the rows to highlight; empty = none.
    """
    lines: list[str] = []
    for label, text in rows:
        tag = ' class="marked"' if marked and label == marked else ""
        lines.append(f'<tr{tag}><th scope="row">{escape(label)}</th><td dir="auto">{escape(text)}</td></tr>')
    return '<table class="texts">\n' + "\n".join(lines) + "\n</table>"


def listed(lines: Sequence[str]) -> str:
    """Make a list.

    Returns:
        HTML; empty where there are no lines.
    """
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>" if lines else ""


def folded(summary: str, content: str) -> str:
    """Make a section that is closed until the reader opens it.

    Args:
        summary: plain text that is always visible.
    """
    return f"<details><summary>{escape(summary)}</summary>\n{content}\n</details>"
