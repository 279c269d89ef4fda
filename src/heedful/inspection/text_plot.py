"""Figures of texts: words coloured by attention weight, with the total weight of each sentence at its start."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from heedful.errors import ResourceError
from heedful.inspection.fonts import Fonts, choose_fonts
from heedful.inspection.plot import FAINT_INK, INK, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

WIDTH_INCHES: Final = 9.0
LINE_INCHES: Final = 0.3
MARGIN_INCHES: Final = 0.6
"""Room for the weight of a sentence."""
SPACE_INCHES: Final = 0.06
_SIZE: Final = 11.0
_DARK: Final = 0.55
"""Share of the largest weight from which words are written in white."""


class _Placed(NamedTuple):
    """Word on a line of the figure, in inches."""

    left: float
    line: int
    width: float
    word: str
    share: float
    """Weight, as a share of the largest one of the text."""


def save_weighted_text(path: Path, sentences: Sequence[Sequence[tuple[str, float]]], title: str = "") -> str:
    """Draw a text with the weights of its words into a file, each sentence on lines of its own.

    Larger weights have a darker blue background; the largest of the text is darkest. The sum of the weights of a
    sentence is written at its start, on orange. Matplotlib's global state is kept.

    Args:
        path: the file; its suffix determines the format.
        sentences: words of each sentence with their weights in [0, 1]; a space before a word belongs to it.
        title: title above the text; empty = none.

    Returns:
        A note that names a font to install, where no installed font has some of the characters. Empty where no
        character is missing.

    Raises:
        MissingExtra: Matplotlib is not installed.
        ResourceError: the file cannot be written.
    """
    fonts = choose_fonts([title, *(word for words in sentences for word, _ in words)])
    figure = new_figure(WIDTH_INCHES, LINE_INCHES)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0.0, WIDTH_INCHES)
    placed, first_lines = _placed(axes, sentences, fonts)
    top = 1 if title else 0
    num_lines = top + max((each.line for each in placed), default=0) + 1
    figure.set_size_inches(WIDTH_INCHES, num_lines * LINE_INCHES)
    axes.set_ylim(num_lines, 0.0)
    if title:
        _write(axes, 0.0, 0, title, fonts, INK)
    for words, line in zip(sentences, first_lines, strict=True):
        weight = min(1.0, sum(weight for _, weight in words))
        _shade(axes, 0.0, top + line, MARGIN_INCHES - 0.15, "Oranges", 0.7 * weight)
        _write(axes, 0.07, top + line, f"{weight:.2f}", fonts, INK if weight >= 0.1 else FAINT_INK)
    for each in placed:
        _shade(axes, each.left - 0.02, top + each.line, each.width + 0.04, "Blues", each.share)
        _write(axes, each.left, top + each.line, each.word, fonts, "white" if each.share > _DARK else INK)
    try:
        figure.savefig(path, dpi=200, bbox_inches="tight", pad_inches=0.1)
    except OSError as error:
        raise ResourceError(f"{path}: not written: {error.strerror or error}") from None
    return fonts.note


def _placed(
    axes: "Axes", sentences: Sequence[Sequence[tuple[str, float]]], fonts: Fonts
) -> tuple[list[_Placed], list[int]]:
    """Words with their places, and the first line of each sentence."""
    largest = max((weight for words in sentences for _, weight in words), default=0.0) or 1.0
    placed: list[_Placed] = []
    first_lines: list[int] = []
    line = 0
    for words in sentences:
        first_lines.append(line)
        left, before = MARGIN_INCHES, ""
        for word, weight in words:
            core = "".join("…" if character in fonts.missing else character for character in word.strip())
            width = _width(axes, core, fonts)
            has_space = left > MARGIN_INCHES and (word[:1].isspace() or before[-1:].isspace())
            before = word or before
            if not core:
                continue
            gap = SPACE_INCHES if has_space else 0.0
            if left + gap + width > WIDTH_INCHES and left > MARGIN_INCHES:
                line, left, gap = line + 1, MARGIN_INCHES, 0.0
            placed.append(_Placed(left + gap, line, width, core, weight / largest))
            left += gap + width
        line += 1
    return placed, first_lines


def _width(axes: "Axes", word: str, fonts: Fonts) -> float:
    text = _write(axes, 0.0, 0, word, fonts, INK)
    box = text.get_window_extent()
    text.remove()
    return float(box.width) / axes.figure.dpi


def _write(axes: "Axes", left: float, line: int, word: str, fonts: Fonts, colour: str) -> "Text":
    text = axes.text(left, line + 0.5, word, color=colour, fontsize=_SIZE, va="center_baseline", parse_math=False)
    text.set_fontfamily(list(fonts.families))
    return text


def _shade(axes: "Axes", left: float, line: int, width: float, colours: str, share: float) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    if share >= 0.02:
        axes.add_patch(
            Rectangle((left, line + 0.08), width, 0.84, color=colormaps[colours](min(1.0, share)), linewidth=0)
        )
