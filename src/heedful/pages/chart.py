"""Line charts over steps as inline SVG: no script, the colours of the page, values as tooltips."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, final

WIDTH: Final = 400
HEIGHT: Final = 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 10, 34
COLOURS: Final = ("var(--first)", "var(--second)")
WANTED_TICKS: Final = 4


@final
@dataclass(frozen=True)
class Series:
    """Values by step; values that are not finite leave a gap."""

    name: str
    points: Sequence[tuple[float, float]]
    """Pairs (step, value), in ascending order of steps."""


def chart(
    title: str, series: Sequence[Series], best_step: int = 0, breaks: Sequence[int] = (), from_zero: bool = False
) -> str:
    """Draw one or two curves with a common axis.

    Args:
        title: plain text above the chart.
        series: one or two series.
        best_step: step marked by a dashed line; 0 = none.
        breaks: steps at which training was resumed, marked on the axis.
        from_zero: whether the axis begins at 0.

    Returns:
        HTML; empty where no value is finite.
    """
    values = [value for one in series for _, value in one.points if math.isfinite(value)]
    if not values:
        return ""
    last = max(step for one in series for step, _ in one.points) or 1.0
    levels = ticks(min(0.0, *values) if from_zero else min(values), max(values))
    frame = _Frame(last, levels[0], levels[-1])
    right = WIDTH - _RIGHT
    shapes: list[str] = []
    for level in levels:
        y = frame.y(level)
        shapes.append(f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="var(--line)"/>')
        shapes.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number(level)}</text>')
    for step in (step for step in ticks(0.0, last) if step <= last):
        # The last label ends at the end of the axis.
        anchor = "end" if frame.x(step) > right - 14 else "middle"
        shapes.append(f'<text x="{frame.x(step):.1f}" y="{HEIGHT - 12}" text-anchor="{anchor}">{number(step)}</text>')
    for step in breaks:
        tip = f"resumed at step {step:,}"
        shapes.append(
            f'<path d="M{frame.x(step):.1f} {HEIGHT - _BOTTOM}v-9" stroke="var(--ink)" stroke-width="2">'
            f"<title>{tip}</title></path>"
        )
    if best_step:
        shapes.append(
            f'<path d="M{frame.x(best_step):.1f} {_TOP}V{HEIGHT - _BOTTOM}" stroke="var(--faint)" '
            f'stroke-dasharray="3 4"><title>kept: step {best_step:,}</title></path>'
        )
    for one, colour in zip(series, COLOURS, strict=False):
        shapes.append(_curve(one, colour, frame))
    names = "; ".join(one.name for one in series if one.name)
    words = escape(f"{title}{f': {names}' if names else ''}, over steps")
    return (
        f"<figure><h3>{escape(title)}{_legend(series)}</h3>\n"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{words}">\n'
        + "\n".join(shapes)
        + "\n</svg></figure>"
    )


@final
@dataclass(frozen=True)
class _Frame:
    """Transformation of steps and values to coordinates in the picture."""

    last: float
    low: float
    high: float

    def x(self, step: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * step / self.last

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * share


def _curve(series: Series, colour: str, frame: _Frame) -> str:
    parts: list[str] = []
    dots: list[str] = []
    is_open = False
    # Many points get small dots, so that these do not overlap; the tooltips stay.
    radius = 2.6 if len(series.points) <= 60 else 1.2
    for step, value in series.points:
        if not math.isfinite(value):
            is_open = False
            continue
        x, y = frame.x(step), frame.y(value)
        parts.append(f"{'L' if is_open else 'M'}{x:.1f} {y:.1f}")
        is_open = True
        tip = f"step {step:,.0f}: {series.name} {number(value)}".replace(":  ", ": ")
        dots.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"><title>{escape(tip)}</title></circle>'
        )
    return f'<path d="{"".join(parts)}" fill="none" stroke="{colour}" stroke-width="1.7"/>' + "".join(dots)


def _legend(series: Sequence[Series]) -> str:
    if len(series) < 2:
        return ""
    return "".join(
        f' <span class="key" style="color:{colour}">●\u00a0{escape(one.name)}</span>'
        for one, colour in zip(series, COLOURS, strict=False)
    )


def ticks(low: float, high: float) -> list[float]:
    """Choose round values that enclose a range.

    Returns:
        At least two values, ascending; multiples of 1, 2, 2.5 or 5 times a power of ten.

    Example:
        >>> ticks(0.0, 4380.0)
        [0.0, 2000.0, 4000.0, 6000.0]
    """
    if high <= low:
        margin = abs(low) / 10 or 1.0
        low, high = low - margin, high + margin
    raw = (high - low) / WANTED_TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    width = next(power * factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if power * factor >= raw * 0.999)
    first, last = math.floor(low / width + 1e-9), math.ceil(high / width - 1e-9)
    return [multiple * width for multiple in range(first, last + 1)]


def number(value: float) -> str:
    """Write a value with few digits.

    Args:
        value: a number.

    Returns:
        Text such as "12,000", "38.22" or "5e-04".

    Example:
        >>> number(4218.0), number(38.2211), number(0.0005), number(0.25)
        ('4,218', '38.22', '5e-04', '0.25')
    """
    if value and abs(value) < 0.01:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{exponent}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) < 10 else f"{value:.2f}".rstrip("0").rstrip(".")
