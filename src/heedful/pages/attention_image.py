"""Image once for each word of its caption, dimmed where the word did not look."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, final

from heedful.pages.attention_view import AttentionView
from heedful.text.token_labels import readable_labels

_DIMMEST: Final = 0.8
"""Opacity of the dark over a region without weight."""
_MOST_WORDS: Final = 60


@final
@dataclass(frozen=True)
class ImageView(AttentionView):
    """Image and the weights of its regions for each word of the caption."""

    explanation = "The image is dark where a word of the caption did not look"
    png: bytes
    """The image as a PNG file."""
    grid: tuple[int, int]
    """Rows and columns of regions."""
    pieces: Sequence[str]
    """Tokens of the caption, of which the first 60 are drawn."""
    weights: Sequence[Sequence[float]]
    """[piece, region] in [0, 1], regions row by row."""
    region: tuple[int, int] = (1, 1)
    """Height and width of a region, by which the image keeps its shape."""

    def draw(self) -> str:
        if not self.pieces:
            return ""
        (rows, columns), (height, width) = self.grid, self.region
        ratio = f"{columns * width}/{rows * height}"
        shape = "" if height == width else f' preserveAspectRatio="none" style="aspect-ratio:{ratio}"'
        address = f"data:image/png;base64,{base64.b64encode(self.png).decode()}"
        labels = readable_labels(self.pieces)[:_MOST_WORDS]
        panels = [
            f'<figure><svg viewBox="0 0 {columns} {rows}"{shape} role="img" aria-label="{escape(label)}">'
            f'<image href="{address}" width="{columns}" height="{rows}" preserveAspectRatio="none"/>'
            f"{_veil(weights, columns)}</svg><figcaption>{escape(label)}</figcaption></figure>"
            for label, weights in zip(labels, self.weights, strict=False)
        ]
        return '<div class="looks">\n' + "\n".join(panels) + "\n</div>"


def _veil(weights: Sequence[float], columns: int) -> str:
    largest = max(weights, default=0.0) or 1.0
    return "".join(
        f'<rect x="{region % columns}" y="{region // columns}" width="1.01" height="1.01" fill="#000" '
        f'fill-opacity="{_DIMMEST * (1.0 - weight / largest):.2f}"><title>{weight:.2f}</title></rect>'
        for region, weight in enumerate(weights)
    )
