"""Small SVG pictures: the same bytes everywhere, legible on a light and on a dark page.

There is no background. Lines and letters have colours of middling lightness, and a shade is a colour the more
transparent the less there is, so that nothing looks like the page, be it white or black.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, final
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

INK: Final = "#757a82"
BLUE: Final = "#2f7fd1"
ORANGE: Final = "#c26410"
GREEN: Final = "#168f55"
COLOURS: Final = (INK, BLUE, ORANGE, GREEN)
"""All there are: each at least 4 to 1 against white and against GitHub's black."""

SHADES: Final = 20
"""Steps of transparency of a shaded cell."""

OFF_TIES: Final = 1e-4
"""Added before rounding: plain fractions lie halfway between two steps, where a last bit would decide."""

SANS: Final = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"
MONO: Final = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"

Points = Iterable[tuple[float, float]]


def number(value: float) -> str:
    """Write a coordinate, to a tenth of a pixel.

    Args:
        value: finite.

    Returns:
        As short as it goes.
    """
    text = f"{value + OFF_TIES:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _with_indices(words: str, size: float) -> str:
    """Lower what follows a letter and a line, and raise the rest again."""
    first, *pairs = re.split(r"(?<=\b[A-Za-z])_(\w+)", words)
    drop = number(size / 4)
    lowered = (f'<tspan dy="{drop}" font-size="75%">{index}</tspan>' for index in pairs[::2])
    raised = (f'<tspan dy="-{drop}">{rest}</tspan>' if rest else "" for rest in pairs[1::2])
    return first + "".join(index + rest for index, rest in zip(lowered, raised, strict=True))


@final
class Picture:
    """Shapes in the order in which they are drawn; coordinates are pixels from the upper left corner."""

    def __init__(self, width: float, height: float) -> None:
        """Begin with nothing.

        Args:
            width: of the picture.
            height: of the picture.
        """
        self.width = width
        self.height = height
        self._shapes: list[str] = []

    def line(self, points: Points, colour: str = INK, width: float = 1.0, dashes: str = "", opacity: float = 1) -> None:
        """Draw straight from point to point.

        Args:
            points: (x, y).
            colour: of the line.
            width: of the line.
            dashes: lengths of strokes and gaps; none where empty.
            opacity: from 0 to 1.
        """
        path = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        more = f' stroke-dasharray="{dashes}"' if dashes else ""
        more += f' opacity="{number(opacity)}"' if opacity < 1 else ""
        self._shapes.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{number(width)}"{more}/>'
        )

    def box(self, x: float, y: float, width: float, height: float, colour: str = INK, opacity: float = 1) -> None:
        """Draw a filled rectangle.

        Args:
            x: of its left side.
            y: of its upper side.
            width: at least 0.
            height: at least 0.
            colour: of the inside.
            opacity: from 0 to 1.
        """
        place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        more = f' opacity="{round(opacity, 2):g}"' if opacity < 1 else ""
        self._shapes.append(f'<rect {place} fill="{colour}"{more}/>')

    def dots(self, points: Points, colour: str = INK, radius: float = 2.0) -> None:
        """Draw filled circles.

        Args:
            points: (x, y) of their centres.
            colour: of all.
            radius: of each.
        """
        circles = "".join(f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>' for x, y in points)
        self._shapes.append(f'<g fill="{colour}">{circles}</g>')

    def text(
        self,
        x: float,
        y: float,
        words: str,
        anchor: str = "middle",
        size: float = 13.0,
        colour: str = INK,
        is_code: bool = False,
    ) -> None:
        """Write a line.

        Args:
            x: where it is anchored.
            y: its base line.
            words: the line; `P_w` has an index, unless it is code.
            anchor: start, middle or end.
            size: of the letters.
            colour: of the letters.
            is_code: whether in letters of one width.
        """
        family = f' font-family="{MONO}"' if is_code else ""
        self._shapes.append(
            f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" font-size="{number(size)}" '
            f'fill="{colour}"{family}>{escape(words) if is_code else _with_indices(escape(words), size)}</text>'
        )

    def cells(self, shares: ArrayLike, x: float, y: float, width: float, height: float, gap: float = 0.0) -> None:
        """Shade the cells of a matrix: blue above 0, orange below, transparent at 0; with a border around all.

        Args:
            shares: [row, column] from -1 to 1.
            x: of the left side.
            y: of the upper side.
            width: of all columns.
            height: of all rows.
            gap: share of a cell left free between neighbours.
        """
        levels = np.rint(np.asarray(shares, dtype=np.float64) * SHADES + OFF_TIES).astype(int)
        rows, columns = levels.shape
        for level in sorted({*levels.flatten().tolist()} - {0}):
            path = "".join(_runs(levels == level, gap))
            colour, opacity = BLUE if level > 0 else ORANGE, abs(level) / SHADES
            place = f"translate({number(x)} {number(y)}) scale({width / columns:.4g} {height / rows:.4g})"
            self._shapes.append(
                f'<path transform="{place}" fill="{colour}" fill-opacity="{opacity:g}" shape-rendering="crispEdges" '
                f'd="{path}"/>'
            )
        self._shapes.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" fill="none" '
            f'stroke="{INK}" stroke-width="0.7"/>'
        )

    def to_svg(self) -> str:
        """Write it out.

        Returns:
            The text of an SVG file.
        """
        size = f"{number(self.width)} {number(self.height)}"
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" font-family="{SANS}">'
        return "\n".join([head, *self._shapes, "</svg>", ""])


def _runs(chosen: NDArray[np.bool_], gap: float) -> Iterable[str]:
    """Rectangles of cells that are next to each other in a row; single cells where there are gaps."""
    size = f"{1 - gap:g}"
    for row, columns in enumerate(chosen):
        places = np.flatnonzero(columns)
        if gap:
            yield from (f"M{place + gap / 2:g} {row + gap / 2:g}h{size}v{size}h-{size}z" for place in places)
            continue
        for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1):
            if len(run):
                yield f"M{run[0]} {row}h{len(run)}v1h-{len(run)}z"


@final
class Panel:
    """A part of a picture with a scale of its own."""

    def __init__(
        self,
        picture: Picture,
        left: float,
        top: float,
        width: float,
        height: float,
        x: tuple[float, float],
        y: tuple[float, float],
    ) -> None:
        """Choose a place and scales.

        Args:
            picture: it is part of.
            left: side.
            top: side.
            width: in pixels.
            height: in pixels.
            x: what the left and the right side stand for.
            y: what the lower and the upper side stand for.
        """
        self.picture = picture
        self.left, self.top, self.width, self.height = left, top, width, height
        self._x, self._y = x, y

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Find a place.

        Args:
            x: on its scale.
            y: on its scale.

        Returns:
            Pixels.
        """
        across = (x - self._x[0]) / (self._x[1] - self._x[0])
        up = (y - self._y[0]) / (self._y[1] - self._y[0])
        return self.left + across * self.width, self.top + (1 - up) * self.height

    def title(self, words: str, is_code: bool = False) -> None:
        """Write above it.

        Args:
            words: one line.
            is_code: whether in letters of one width.
        """
        # Letters of one width are 0.6 of their size wide; a long title may stand out a little on both sides.
        size = min(12.0, (self.width + 16) / (0.61 * len(words))) if is_code else 13.0
        self.picture.text(self.left + self.width / 2, self.top - 8, words, size=size, is_code=is_code)

    def axes(self, x_ticks: Sequence[float] = (), y_ticks: Sequence[float] = ()) -> None:
        """Draw the lower side, and numbers along the lower and the left side.

        Args:
            x_ticks: where along the lower side.
            y_ticks: where along the left side, each with a faint line across.
        """
        bottom = self.top + self.height
        for tick in y_ticks:
            _, y = self.at(0, tick)
            self.picture.line([(self.left, y), (self.left + self.width, y)], opacity=0.3)
            self.picture.text(self.left - 5, y + 4, f"{tick:g}", anchor="end", size=11)
        for tick in x_ticks:
            x, _ = self.at(tick, 0)
            self.picture.line([(x, bottom), (x, bottom + 4)])
            self.picture.text(x, bottom + 15, f"{tick:g}", size=11)
        self.picture.line([(self.left, bottom), (self.left + self.width, bottom)])

    def curve(self, x: ArrayLike, y: ArrayLike, colour: str = BLUE, width: float = 2.0, dashes: str = "") -> None:
        """Draw y over x.

        Args:
            x: [point].
            y: [point].
            colour: of the line.
            width: of the line.
            dashes: as for `Picture.line`.
        """
        points = zip(np.asarray(x).tolist(), np.asarray(y).tolist(), strict=True)
        self.picture.line([self.at(*point) for point in points], colour, width, dashes)

    def scatter(self, x: ArrayLike, y: ArrayLike, colour: str = INK, radius: float = 2.0) -> None:
        """Draw a dot for each point.

        Args:
            x: [point].
            y: [point].
            colour: of all.
            radius: in pixels.
        """
        points = zip(np.asarray(x).tolist(), np.asarray(y).tolist(), strict=True)
        self.picture.dots([self.at(*point) for point in points], colour, radius)

    def bars(self, heights: ArrayLike, colour: str = BLUE, opacity: float = 1.0, share: float = 0.7) -> None:
        """Draw a bar at 0, 1, 2 ... from 0 up or down.

        Args:
            heights: [bar] on the scale of y.
            colour: of all.
            opacity: from 0 to 1.
            share: of the room of each that it takes.
        """
        for place, height in enumerate(np.asarray(heights).tolist()):
            left, one = self.at(place - share / 2, max(height, 0.0))
            right, other = self.at(place + share / 2, min(height, 0.0))
            if other - one >= 0.05:
                self.picture.box(left, one, right - left, other - one, colour, opacity)
