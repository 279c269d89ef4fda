"""Plot of risk by coverage: how many outputs are wrong if only the most confident ones are given."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from heedful.errors import ResourceError, ShapeError, UsageError
from heedful.inspection.plot import FAINT_INK, FORMATS, INK, new_figure

_LINE = "#2166ac"


def save_risk_plot(path: Path, risks: Sequence[float], title: str = "") -> None:
    """Draw risk by coverage into a file.

    Args:
        path: a .png, .pdf or .svg file.
        risks: share of wrong outputs among the 1, 2, 3 ... most confident ones.
        title: title above the curve; empty = none.

    Raises:
        ShapeError: there is no output.
        UsageError: the suffix is none of `FORMATS`.
        MissingExtra: Matplotlib is not installed.
        ResourceError: the file cannot be written.
    """
    if not risks:
        raise ShapeError("risk plot: nothing to draw; give at least one output")
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: cannot draw a {path.suffix or 'file without suffix'}; use {', '.join(FORMATS)}")
    figure = new_figure(4.2, 2.8)
    axes = figure.add_subplot()
    coverage = np.arange(1, len(risks) + 1) * 100 / len(risks)
    shares = 100 * np.array(risks)
    first = len(risks) // 50  # the share of a few outputs jumps up and down
    axes.plot(coverage[first:], shares[first:], color=_LINE, linewidth=1.6)
    axes.axhline(shares[-1], color=FAINT_INK, linewidth=0.8, linestyle=(0, (3, 3)))
    axes.annotate(
        f"all: {shares[-1]:.1f} %", (2, shares[-1]), xytext=(0, 3), textcoords="offset points", fontsize=8,
        color=FAINT_INK,
    )  # fmt: skip
    axes.set_xlim(0, 100)
    axes.set_ylim(0, max(1.0, 1.12 * shares[first:].max()))
    axes.set_xlabel("answered, most confident first, %", fontsize=9, color=INK)
    axes.set_ylabel("wrong, %", fontsize=9, color=INK)
    axes.tick_params(length=0, labelsize=8, labelcolor=FAINT_INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, loc="left", fontsize=9, color=INK).set_parse_math(False)
    figure.tight_layout()
    try:
        figure.savefig(path, dpi=160)
    except OSError as error:
        raise ResourceError(f"{path}: not written: {error.strerror or error}") from None
