"""Plot of scores by length: one panel for each system, all others faint behind it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from heedful.errors import ResourceError, ShapeError
from heedful.inspection.fonts import choose_fonts
from heedful.inspection.plot import FAINT_INK, INK, new_figure
from heedful.text.token_labels import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL_INCHES: Final = (2.6, 2.0)
MOST_COLUMNS: Final = 4
LINE: Final = "#2166ac"
OTHERS: Final = "#d4d4d4"
NAME_COLUMNS: Final = 34


@final
@dataclass(frozen=True)
class Curve:
    """Scores of one system in each range of lengths.

    Attributes:
        name: name of the system.
        scores: a score for each range.
        lows: lower ends of the intervals.
        highs: upper ends of the intervals.
    """

    name: str
    scores: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]


def save_length_plot(
    path: Path,
    curves: Sequence[Curve],
    ranges: Sequence[str],
    baseline: str,
    score: str,
    lengths: str,
    side: str = "source",
) -> None:
    """Draw scores by length into a file; all panels share their axes.

    Args:
        path: a .png, .pdf or .svg file.
        curves: curves of at least one system; each has a panel.
        baseline: name of the curve that every other panel shows dashed; empty = none.
        lengths: unit of the lengths, such as words.
        side: what has these lengths, such as source or reference.

    Raises:
        ShapeError: there is no curve or no range, or a curve does not have one score for each range.
        MissingExtra: Matplotlib is not installed.
        ResourceError: the file cannot be written.
    """
    for curve in curves:
        if not len(curve.scores) == len(curve.lows) == len(curve.highs) == len(ranges):
            raise ShapeError(f"length plot: {curve.name} has {len(curve.scores)} scores for {len(ranges)} ranges")
    if not curves or not ranges:
        raise ShapeError("length plot: nothing to draw; give at least one curve and one range")
    num_columns = min(MOST_COLUMNS, len(curves))
    num_rows = math.ceil(len(curves) / num_columns)
    fonts = choose_fonts([*(curve.name for curve in curves), score, lengths])
    width, height = PANEL_INCHES
    figure = new_figure(num_columns * width + 0.6, num_rows * height + 0.6)
    grid = figure.subplots(num_rows, num_columns, sharex=True, sharey=True, squeeze=False)
    for index, axes in enumerate(grid.flat):
        if index >= len(curves):
            axes.set_axis_off()
            continue
        _draw(axes, curves, curves[index], baseline)
        # The lowest panel of a column has the column's tick labels.
        is_lowest = index + num_columns >= len(curves)
        axes.set_xticks(range(len(ranges)), ranges)
        axes.tick_params(length=0, labelsize=7, labelcolor=FAINT_INK, labelbottom=is_lowest)
        name = shorten(curves[index].name, NAME_COLUMNS)
        title = axes.set_title(name, loc="left", fontsize=8, color=INK, pad=4)
        title.set_parse_math(False)
        title.set_fontfamily(list(fonts.families))
    _, top = grid[0, 0].get_ylim()
    grid[0, 0].set_ylim(0.0, top)
    dashed = f"; dashed: {baseline}" if baseline else ""
    grey = "; grey: the other rows" if len(curves) > 1 + bool(baseline) else ""
    labels = (
        figure.supylabel(score, fontsize=9, color=INK),
        figure.supxlabel(f"{side} length in {lengths}; band: 95 % interval{grey}{dashed}", fontsize=9, color=INK),
    )
    for label in labels:
        label.set_parse_math(False)
        label.set_fontfamily(list(fonts.families))
    figure.tight_layout()
    try:
        figure.savefig(path, dpi=160)
    except OSError as error:
        raise ResourceError(f"{path}: not written: {error.strerror or error}") from None


def _draw(axes: "Axes", curves: Sequence[Curve], shown: Curve, baseline: str) -> None:
    positions = range(len(shown.scores))
    for curve in curves:
        if curve is not shown and curve.name != baseline:
            axes.plot(positions, curve.scores, color=OTHERS, linewidth=0.8)
    for curve in curves:
        if curve is not shown and curve.name == baseline:
            axes.plot(positions, curve.scores, color=INK, linewidth=0.9, linestyle=(0, (3, 2)))
    axes.fill_between(positions, shown.lows, shown.highs, color=LINE, alpha=0.18, linewidth=0)
    axes.plot(positions, shown.scores, color=LINE, linewidth=1.6, marker="o", markersize=3)
    axes.grid(axis="y", color="#eeeeee", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#bbbbbb")
