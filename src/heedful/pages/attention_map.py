"""Heat maps of attention weights as inline SVG: the colours of the page, weights as tooltips."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from statistics import median
from typing import Final, final

from rich.cells import cell_len

from heedful.pages.attention_view import AttentionView
from heedful.text.token_labels import readable_labels, shorten

MOST_TOKENS: Final = 60
"""Longest side of a map that is drawn."""
_LEAST_WEIGHT: Final = 0.02
_CELL: Final = 18
_GAP: Final = 1
_LABEL_COLUMNS: Final = 18
_COLUMN_WIDTH: Final = 7.5
"""Width of a terminal column of text, in pixels."""


@dataclass(frozen=True)
class WeightMap(AttentionView):
    """Attention weights as a map with a name for each row and column.

    A map with a side of more than `MOST_TOKENS` tokens is not drawn.
    """

    source_pieces: Sequence[str]
    target_pieces: Sequence[str]
    weights: Sequence[Sequence[float]]
    """[target piece, source piece], in [0, 1]."""

    @property
    @abstractmethod
    def sides(self) -> str:
        """Rows and columns, in words, for readers who do not see the map."""

    def draw(self) -> str:
        columns, rows = (
            [shorten(label, _LABEL_COLUMNS) for label in readable_labels(pieces)]
            for pieces in (self.source_pieces, self.target_pieces)
        )
        if not (0 < len(columns) <= MOST_TOKENS and 0 < len(rows) <= MOST_TOKENS):
            return ""
        widths = [cell_len(label) for label in columns]
        # Labels of single characters stay upright, except longer ones such as EOS; labels of words are all turned.
        upright = 2 if median(widths) <= 2 else 0
        turned = max((width for width in widths if width > upright), default=0) * _COLUMN_WIDTH
        left = 12 + max(map(cell_len, rows)) * _COLUMN_WIDTH
        top = max(24.0, 16 + turned * 0.8)
        # Turned labels of the last columns reach to the right of the cells.
        width = left + len(columns) * _CELL + turned * 0.6 + 4
        height = top + len(rows) * _CELL + 4
        shapes = [
            f'<text x="{left - 6:.0f}" y="{top + (index + 0.72) * _CELL:.0f}" text-anchor="end">{escape(label)}</text>'
            for index, label in enumerate(rows)
        ]
        for index, label in enumerate(columns):
            x, y = left + (index + 0.5) * _CELL, top - 6
            is_upright = widths[index] <= upright
            direction = 'text-anchor="middle"' if is_upright else f'transform="rotate(-52 {x:.0f} {y:.0f})"'
            shapes.append(f'<text x="{x:.0f}" y="{y:.0f}" {direction}>{escape(label)}</text>')
        side = _CELL - _GAP
        for row, weights in enumerate(self.weights):
            for column, weight in enumerate(weights):
                if weight >= _LEAST_WEIGHT:
                    tip = escape(f"{rows[row]} from {columns[column]}: {weight:.2f}")
                    shapes.append(
                        f'<rect x="{left + column * _CELL:.0f}" y="{top + row * _CELL:.0f}" '
                        f'width="{side}" height="{side}" '
                        f'fill="var(--first)" fill-opacity="{min(1.0, weight):.2f}"><title>{tip}</title></rect>'
                    )
        frame = (
            f'<rect x="{left:.0f}" y="{top:.0f}" width="{len(columns) * _CELL}" height="{len(rows) * _CELL}" '
            'fill="none" stroke="var(--line)"/>'
        )
        words = escape(f"Attention of {self.sides}: {self.title}")
        return (
            f'<div class="wide"><svg class="map" style="width:{width:.0f}px" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'role="img" aria-label="{words}">\n' + "\n".join([*shapes, frame]) + "\n</svg></div>"
        )


@final
@dataclass(frozen=True)
class AttentionMap(WeightMap):
    """Attention weights of one output over its source: rows are target tokens, columns source tokens."""

    explanation = "Each row is an output token, each column a source token, and a darker cell a larger weight"

    @property
    def sides(self) -> str:
        return "each output token over the source tokens"


@final
@dataclass(frozen=True)
class FactMap(WeightMap):
    """Attention weights of each step over facts: rows are steps, columns facts."""

    explanation = "Each row is a step of attention, each column a fact, and a darker cell a larger weight"

    @property
    def sides(self) -> str:
        return "each step over the facts"
