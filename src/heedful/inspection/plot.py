"""Heat maps of attention weights, as a figure or in a terminal; rows are target tokens, columns source tokens."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.cells import cell_len

from heedful.errors import ResourceError, ShapeError, UsageError
from heedful.inspection.fonts import BASE_FAMILY, Fonts, choose_fonts
from heedful.text.token_labels import pad, readable_labels, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure
    from matplotlib.text import Text

FORMATS: Final = (".png", ".pdf", ".svg")
CELL_INCHES: Final = (0.1, 0.3)
"""Smallest and largest side of a cell, in inches; the first also sets the distance of labels in crowded maps."""
LONG_SIDE_INCHES: Final = 18.0
"""Side of a figure, in inches, above which cells shrink to their smallest side; the limit is twice as long."""
LABEL_COLUMNS: Final = 18
"""Longest label of a figure by default, in terminal columns; longer labels are cut."""
INK: Final = "#222222"
FAINT_INK: Final = "#767676"

SHADES: Final = " ░▒▓█"
ASCII_SHADES: Final = " .:+#"
SHADE_FROM: Final = (0.05, 0.25, 0.5, 0.75)
"""Least weight of each shade after the first, which is blank."""
TERMINAL_LABEL_COLUMNS: Final = 12


def save_heat_map(
    path: Path,
    source_pieces: Sequence[str],
    target_pieces: Sequence[str],
    weights: ArrayLike,
    title: str = "",
    label_columns: int = LABEL_COLUMNS,
    tree: Collection[tuple[int, int]] = (),
) -> str:
    """Draw attention weights into a file.

    White is 0 and dark blue 1 in every figure, so that figures can be compared. Matplotlib's global state is kept.

    Args:
        path: the file; its suffix, one of `FORMATS`, determines the format.
        source_pieces: tokens of the source, as a tokenizer names them.
        target_pieces: tokens of the target.
        weights: [target, source] in [0, 1].
        title: title above the map; empty = none.
        label_columns: width in terminal columns above which labels are cut.
        tree: cells (target, source) of the arcs of the tree with the largest sum of weights, which are framed.

    Returns:
        A note that names a font to install, where no installed font has some of the characters; the figure then shows
        numbers for their tokens. Empty where no character is missing.

    Raises:
        ShapeError: weights do not fit the tokens, or there are no tokens.
        UsageError: the suffix is none of `FORMATS`.
        MissingExtra: Matplotlib is not installed.
        ResourceError: the file cannot be written.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     save_heat_map(Path(folder) / "map.png", ["a", "b"], ["c"], [[0.9, 0.1]])
        ''
    """
    values = _checked(source_pieces, target_pieces, weights)
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: cannot draw a {path.suffix or 'file without suffix'}; use {', '.join(FORMATS)}")
    drawing = _Drawing.of(source_pieces, target_pieces, title, label_columns)
    num_rows, num_columns = values.shape
    cell = float(np.clip(LONG_SIDE_INCHES / max(values.shape), *CELL_INCHES))
    # A map of very many tokens is at most twice as long: cells shrink further, and only some are labelled.
    cell = min(cell, 2 * LONG_SIDE_INCHES / max(values.shape))
    figure = new_figure(num_columns * cell, num_rows * cell)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    lines = min(0.75, 2.5 * cell)
    mesh = axes.pcolormesh(values, cmap="Blues", vmin=0.0, vmax=1.0, edgecolors="white", linewidth=lines)
    _frame_tree(axes, tree, cell)
    _label_axes(axes, drawing, cell)
    _add_title(axes, drawing, num_columns * cell)
    _add_colour_bar(figure, mesh)
    try:
        # The figure covers the cells alone; the tight bounding box adds labels, title and colour bar.
        figure.savefig(path, dpi=200, bbox_inches="tight", pad_inches=0.1)
    except OSError as error:
        raise ResourceError(f"{path}: not written: {error.strerror or error}") from None
    return drawing.fonts.note


def text_heat_map(
    source_pieces: Sequence[str],
    target_pieces: Sequence[str],
    weights: ArrayLike,
    width: int = 100,
    encoding: str = "utf-8",
) -> str:
    """Draw attention weights with characters.

    Args:
        source_pieces: tokens of the source.
        target_pieces: tokens of the target.
        weights: [target, source] in [0, 1].
        width: width in terminal columns; a source that needs more continues in further blocks below, each without the
            target tokens that attend to nothing in it.
        encoding: encoding of the terminal; without shaded blocks, as in "ascii", shades are ASCII characters, and any
            other character that the encoding lacks is written as ``?``.

    Returns:
        Lines of at most `width` columns, unless a single source token needs more; long labels are cut.

    Raises:
        ShapeError: weights do not fit the tokens, or there are no tokens.

    Example:
        >>> print(text_heat_map(["▁the", "▁cat"], ["▁die", "▁Katze"], [[0.9, 0.1], [0.3, 0.6]]))
              the cat
        die   ███ ░░░
        Katze ▒▒▒ ▓▓▓
        <BLANKLINE>
        weight  ░ 0.05+  ▒ 0.25+  ▓ 0.5+  █ 0.75+
    """
    values = _checked(source_pieces, target_pieces, weights)
    has_blocks = _can_write(SHADES, encoding)
    shades, cut = (SHADES, "…") if has_blocks else (ASCII_SHADES, "~")
    if not _can_write(cut, encoding):
        cut = "~"
    columns, rows = (
        [shorten(_written(label, encoding), TERMINAL_LABEL_COLUMNS, cut) for label in readable_labels(pieces)]
        for pieces in (source_pieces, target_pieces)
    )
    margin = max(map(cell_len, rows))
    # Single characters are set without gaps, as in text; longer tokens need a gap.
    gap = 1 if max(map(cell_len, columns)) > 2 else 0
    widths = [max(1, cell_len(label)) for label in columns]
    levels = np.searchsorted(SHADE_FROM, np.nan_to_num(values), side="right")
    lines: list[str] = []
    for start, stop in _blocks(widths, gap, width - margin - 1):
        part = range(start, stop)
        lines.append(_line("", margin, [pad(columns[j], widths[j]) for j in part], gap))
        for label, row in zip(rows, levels, strict=True):
            if len(part) == len(columns) or row[start:stop].any():
                lines.append(_line(label, margin, [shades[row[j]] * widths[j] for j in part], gap))
        lines.append("")
    legend = (f"{shade} {least:g}+" for shade, least in zip(shades[1:], SHADE_FROM, strict=True))
    return "\n".join([*lines, "  ".join(["weight", *legend])])


@dataclass(frozen=True)
class _Drawing:
    """Labels and title of a figure, in installed fonts."""

    columns: list[str]
    rows: list[str]
    title: str
    fonts: Fonts

    @classmethod
    def of(
        cls, source_pieces: Sequence[str], target_pieces: Sequence[str], title: str, label_columns: int
    ) -> "_Drawing":
        columns, rows = readable_labels(source_pieces), readable_labels(target_pieces)
        fonts = choose_fonts([*columns, *rows, title])
        missing = fonts.missing

        def drawable(labels: list[str]) -> list[str]:
            return [
                shorten(label, label_columns) if missing.isdisjoint(label) else f"#{number}"
                for number, label in enumerate(labels, start=1)
            ]

        # In the title, characters that the fonts lack become an ellipsis; they would be drawn as boxes.
        known = "".join("…" if character in missing else character for character in title)
        while "……" in known:
            known = known.replace("……", "…")
        return cls(drawable(columns), drawable(rows), known, fonts)


def new_figure(width: float, height: float) -> "Figure":
    """Make a figure that does not touch the caller's Matplotlib state.

    Returns:
        An empty figure on white, drawn without a display.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def _frame_tree(axes: "Axes", tree: Collection[tuple[int, int]], cell: float) -> None:
    from matplotlib.patches import Rectangle

    for row, column in tree:
        frame = Rectangle((column, row), 1, 1, fill=False, edgecolor=INK, linewidth=min(1.2, 4 * cell), clip_on=False)
        axes.add_patch(frame)
    if tree:
        words = "framed: the tree with the largest sum of weights"
        axes.set_xlabel(words, loc="left", labelpad=8, color=FAINT_INK, fontsize=8)


def _label_axes(axes: "Axes", drawing: _Drawing, cell: float) -> None:
    """Label the cells: source on top, target to the left, first token in the upper left corner."""
    axes.set_aspect("auto")
    axes.invert_yaxis()
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=4, labelcolor=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)
    every = max(1, round(CELL_INCHES[0] / cell))
    size = min(10.0, max(5.0, 72 * cell * every * 0.55))
    widths = [cell_len(label) for label in drawing.columns]
    # Labels of single characters stay upright, except longer ones such as EOS; labels of words are all turned.
    upright = 2 if np.median(widths) <= 2 else 0
    for axis, labels in ((axes.xaxis, drawing.columns), (axes.yaxis, drawing.rows)):
        indices = range(0, len(labels), every)
        axis.set_ticks([index + 0.5 for index in indices], [labels[index] for index in indices])
    for text, width in zip(axes.get_xticklabels(), widths[::every], strict=True):
        if width > upright:
            text.set(rotation=45, ha="left", va="baseline", rotation_mode="anchor")
        _style(text, drawing.fonts, size)
    for text in axes.get_yticklabels():
        _style(text, drawing.fonts, size)


def _add_colour_bar(figure: "Figure", mesh: "QuadMesh") -> None:
    width, height = figure.get_size_inches()
    bar_height = min(height, 2.4)
    axes = figure.add_axes((1 + 0.15 / width, 1 - bar_height / height, 0.1 / width, bar_height / height))
    bar = figure.colorbar(mesh, cax=axes, ticks=(0.0, 0.5, 1.0) if bar_height > 0.5 else (0.0, 1.0))
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]  # typed as the method of another class
    axes.tick_params(labelsize=8, length=0, labelcolor=FAINT_INK, labelfontfamily=BASE_FAMILY)
    if bar_height > 1.2:
        axes.set_ylabel("attention weight", fontsize=8, color=FAINT_INK, fontfamily=BASE_FAMILY)


def _add_title(axes: "Axes", drawing: _Drawing, width: float) -> None:
    if drawing.title:
        # Characters per column: a half for Chinese, whose characters are two columns wide.
        share = len(drawing.title) / max(1, cell_len(drawing.title))
        lines = wrap(drawing.title, max(16, round(max(width, 3.0) * 12 * share)), max_lines=2, placeholder=" …")
        _style(axes.set_title("\n".join(lines), loc="left", pad=10, color=INK), drawing.fonts, 11.0)


def _style(text: "Text", fonts: Fonts, size: float) -> None:
    text.set_parse_math(False)  # a $ is a token like any other
    text.set_fontfamily(list(fonts.families))
    text.set_fontsize(size)


def _checked(source_pieces: Sequence[str], target_pieces: Sequence[str], weights: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(weights, dtype=np.float64)
    wanted = (len(target_pieces), len(source_pieces))
    if values.shape != wanted or 0 in wanted:
        raise ShapeError(
            f"heat map: weights have shape {list(values.shape)} for {wanted[0]} target and {wanted[1]} source tokens; "
            "expected [target, source], at least one token each"
        )
    return values


def _blocks(widths: Sequence[int], gap: int, room: int) -> Iterator[tuple[int, int]]:
    """Split columns into runs of at least one column that fit the width."""
    start, used = 0, 0
    for column, width in enumerate(widths):
        if column > start and used + gap + width > room:
            yield start, column
            start, used = column, width
        else:
            used += width + (gap if column > start else 0)
    yield start, len(widths)


def _line(label: str, margin: int, cells: Sequence[str], gap: int) -> str:
    return f"{pad(label, margin)} {(' ' * gap).join(cells)}".rstrip()


def _can_write(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _written(label: str, encoding: str) -> str:
    """Replace characters that the encoding lacks by ?, and the sign ␣ by _."""
    if not _can_write("␣", encoding):
        label = label.replace("␣", "_")
    return label.encode(encoding, errors="replace").decode(encoding)
