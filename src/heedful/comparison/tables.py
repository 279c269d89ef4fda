"""Tables of a comparison as text for a terminal and as Markdown."""

from collections.abc import Sequence

from heedful.comparison.summary import Comparison, RowSummary, Spread
from heedful.evaluation.report import table

Rows = list[tuple[str, ...]]
NONE = "-"


def score_rows(comparison: Comparison) -> Rows:
    """Return the cells of the table of scores.

    Returns:
        The heading and a line for each row.
    """
    names = [metric.name for metric in comparison.metrics.values()]
    columns = comparison.columns()
    first, *others = names
    head = ("row", first, "95 % interval", "difference", "p", *others, *(column.title for column in columns))
    lines: Rows = [head]
    for row in comparison.rows:
        keys = [*comparison.metrics]
        cells = [row.name, _spread(row.scores[keys[0]], 2), f"[{row.interval.low:.2f}, {row.interval.high:.2f}]"]
        cells += _difference(row)
        cells += [_spread(row.scores[key], 2) for key in keys[1:]]
        cells += [_figure(row.figures.get(column.key), column.digits) for column in columns]
        lines.append(tuple(cells))
    return lines


def length_rows(comparison: Comparison) -> Rows:
    """Return the cells of the table of the first metric by source length.

    Returns:
        The heading and a line for each row; empty where there is one range only.
    """
    if not comparison.rows or len(comparison.rows[0].by_length) < 2:
        return []
    head = ("row", *(f"{bucket.label} ({bucket.num_items})" for bucket in comparison.rows[0].by_length))
    lines: Rows = [head]
    for row in comparison.rows:
        cells = [f"{b.score:.2f} [{b.interval.low:.2f}, {b.interval.high:.2f}]" for b in row.by_length]
        lines.append((row.name, *cells))
    return lines


def remarks(comparison: Comparison) -> list[str]:
    """Return the notes below the tables: how figures were measured, rows that were not run, caveats.

    Returns:
        Sentences without a full stop.
    """
    lines = [
        f"{comparison.num_items:,} sources; {metric.name}: {comparison.signatures[key]}"
        for key, metric in comparison.metrics.items()
    ]
    differs = [row for row in comparison.rows if row.difference is not None]
    if differs:
        lines.append(
            f"difference from {comparison.baseline} in {comparison.metric.name} and its p by paired bootstrap "
            "resampling of the sources, in either direction"
        )
    if any(len(row.seeds) > 1 for row in comparison.rows):
        lines.append("figures are the mean over seeds ± standard deviation")
    lines += [f"not run: {name}: {reason}" for name, reason in comparison.missing.items()]
    return [*lines, *comparison.notes]


def to_text(comparison: Comparison) -> str:
    """Write the tables for a terminal.

    Returns:
        Lines that end in a newline.
    """
    text = f"{comparison.title}\n\n" if comparison.title else ""
    text += table(score_rows(comparison))
    if rows := length_rows(comparison):
        text += (
            f"\n{comparison.metric.name} by {comparison.measured_side} length in {comparison.length_unit} (sources)\n"
            + table(rows)
        )
    return text + "\n" + "".join(f"note: {line}\n" for line in remarks(comparison))


def to_markdown(comparison: Comparison, command: str) -> str:
    """Write the tables as Markdown."""
    text = f"# {_escaped(comparison.title or 'Comparison')}\n\n```sh\n{command}\n```\n\n"
    text += _markdown(score_rows(comparison))
    if rows := length_rows(comparison):
        lengths = f"{comparison.measured_side} length in {comparison.length_unit}"
        text += f"\n{comparison.metric.name} by {lengths} (number of sources), 95 % intervals:\n\n"
        text += _markdown(rows)
    return text + "\n" + "".join(f"- {_escaped(line)}.\n" for line in remarks(comparison))


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
    # A figure that is the same for all seeds, such as a number of parameters, is printed without a deviation.
    is_steady = spread.num_runs == 1 or spread.deviation is None or (digits == 0 and spread.deviation < 0.5)
    return mean if is_steady else f"{mean} ± {spread.deviation:,.{digits}f}"
