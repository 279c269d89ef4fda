"""Boxes and arrows, for the lessons' pictures of models."""

from typing import Any, Final

_EDGE: Final = "#757a82"
_FILL: Final = "#eaf1fa"


def canvas(axis: Any, width: float, height: float) -> None:
    """Make an axis of matplotlib a sheet without scales.

    Args:
        axis: to draw upon.
        width: of the sheet; boxes and arrows have the same unit.
        height: of the sheet.

    Example:
        >>> from matplotlib.figure import Figure
        >>> axis = Figure().add_subplot()
        >>> canvas(axis, 20, 10)
        >>> axis.get_xlim() == (0, 20)
        True
    """
    axis.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    axis.axis("off")


def box(
    axis: Any, x: float, y: float, text: str = "", width: float = 10.0, height: float = 3.0, colour: str = _FILL
) -> None:
    """Draw a box.

    Args:
        axis: to draw upon.
        x: of its centre.
        y: of its centre.
        text: in the middle.
        width: from side to side.
        height: from bottom to top.
        colour: of its inside; "none" for a frame.

    Example:
        >>> from matplotlib.figure import Figure
        >>> axis = Figure().add_subplot()
        >>> box(axis, 5, 5, "softmax")
        >>> axis.texts[0].get_text()
        'softmax'
    """
    from matplotlib.patches import FancyBboxPatch

    corner = (x - width / 2, y - height / 2)
    style = "round,pad=0,rounding_size=0.6"
    axis.add_patch(FancyBboxPatch(corner, width, height, boxstyle=style, fc=colour, ec=_EDGE, lw=0.8))
    axis.text(x, y, text, ha="center", va="center", fontsize=8)


def arrow(axis: Any, *points: tuple[float, float], colour: str = _EDGE, is_dashed: bool = False) -> None:
    """Draw an arrow along points.

    Args:
        axis: to draw upon.
        *points: two or more, (x, y); the head is at the last.
        colour: of the line.
        is_dashed: whether the line is.

    Example:
        >>> from matplotlib.figure import Figure
        >>> axis = Figure().add_subplot()
        >>> arrow(axis, (0, 0), (0, 5), (5, 5))
        >>> len(axis.lines)
        1
    """
    line = {"color": colour, "lw": 1.0, "ls": "--" if is_dashed else "-"}
    axis.plot(*zip(*points[:-1], strict=True), solid_joinstyle="round", **line)
    head = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, "mutation_scale": 8, **line}
    axis.annotate("", xy=points[-1], xytext=points[-2], arrowprops=head)
