"""The table as text for a terminal and as Markdown."""

from collections.abc import Sequence

from heedful.comparison.summary import Comparison, RowSummary, Spread
from heedful.evaluation.report import table

Rows = list[tuple[str, ...]]
NONE = "-"


def score_rows(found: Comparison) -> Rows:
    """Lay out the table of scores.

    Args:
        found: what is known of the grid.

    Returns:
        The head and a line for each row.
    """
    names = [metric.name for metric in found.metrics.values()]
    columns = found.columns()
    first, *others = names
    head = ("row", first, "95 % interval", "difference", "p", *others, *(column.title for column in columns))
    lines: Rows = [head]
    for row in found.rows:
        keys = [*found.metrics]
        cells = [row.name, _spread(row.scores[keys[0]], 2), f"[{row.interval.low:.2f}, {row.interval.high:.2f}]"]
        cells += _difference(row)
        cells += [_spread(row.scores[key], 2) for key in keys[1:]]
        cells += [_figure(row.figures.get(column.key), column.digits) for column in columns]
        lines.append(tuple(cells))
    return lines


def length_rows(found: Comparison) -> Rows:
    """Lay out the table of the first metric by source length.

    Args:
        found: what is known of the grid.

    Returns:
        The head and a line for each row; empty where there is one range only.
    """
    if not found.rows or len(found.rows[0].by_length) < 2:
        return []
    head = ("row", *(f"{bucket.label} ({bucket.num_items})" for bucket in found.rows[0].by_length))
    lines: Rows = [head]
    for row in found.rows:
        cells = [f"{b.score:.2f} [{b.interval.low:.2f}, {b.interval.high:.2f}]" for b in row.by_length]
        lines.append((row.name, *cells))
    return lines


def remarks(found: Comparison) -> list[str]:
    """Say what the tables do not: what was measured how, what was not run, and what to beware of.

    Args:
        found: what is known of the grid.

    Returns:
        Sentences without a full stop.
    """
    lines = [
        f"{found.num_items:,} sources; {metric.name}: {found.signatures[key]}" for key, metric in found.metrics.items()
    ]
    differs = [row for row in found.rows if row.difference is not None]
    if differs:
        lines.append(
            f"difference from {found.baseline} in {found.metric.name} and its p by paired bootstrap resampling of the "
            "sources, in either direction"
        )
    if any(len(row.seeds) > 1 for row in found.rows):
        lines.append("figures are the mean over seeds ± standard deviation")
    lines += [f"not run: {name}: {reason}" for name, reason in found.missing.items()]
    return [*lines, *found.notes]


def to_text(found: Comparison) -> str:
    """Write the tables for a terminal.

    Args:
        found: what is known of the grid.

    Returns:
        Lines that end in a newline.
    """
    text = f"{found.title}\n\n" if found.title else ""
    text += table(score_rows(found))
    if rows := length_rows(found):
        text += f"\n{found.metric.name} by source length in {found.length_unit} (sources)\n" + table(rows)
    return text + "\n" + "".join(f"note: {line}\n" for line in remarks(found))


def to_markdown(found: Comparison, command: str) -> str:
    """Write the tables as Markdown.

    Args:
        found: what is known of the grid.
        command: that made them.

    Returns:
        A page.
    """
    text = f"# {_escaped(found.title or 'Comparison')}\n\n```sh\n{command}\n```\n\n{_markdown(score_rows(found))}"
    if rows := length_rows(found):
        text += (
            f"\n{found.metric.name} by source length in {found.length_unit} (number of sources), 95 % intervals:\n\n"
        )
        text += _markdown(rows)
    return text + "\n" + "".join(f"- {_escaped(line)}.\n" for line in remarks(found))


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *lines = [[_escaped(cell) for cell in row] for row in rows]
    rule = ["---", *(["---:"] * (len(head) - 1))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rule, *lines))


def _escaped(text: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in text)


def _difference(row: RowSummary) -> list[str]:
    if row.difference is None:
        return [NONE, NONE]
    return [f"{row.difference.difference:+.2f}", f"{row.difference.p_value:.3f}"]


def _figure(spread: Spread | None, digits: int) -> str:
    return NONE if spread is None else _spread(spread, digits)


def _spread(spread: Spread, digits: int) -> str:
    mean = f"{spread.mean:,.{digits}f}"
    # A figure that no seed changes, such as a number of parameters, has no deviation to tell of.
    is_steady = spread.num_runs == 1 or (digits == 0 and spread.deviation < 0.5)
    return mean if is_steady else f"{mean} ± {spread.deviation:,.{digits}f}"
