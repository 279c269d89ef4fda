"""Generated pictures of printed text: digits or a word, in five fonts, with slant, noise and lines through them.

The fonts are those that Matplotlib brings along.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import needed_for

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

WIDTH: Final = 96
HEIGHT: Final = 32
"""Size of a picture in pixels."""
FONTS: Final = ("DejaVuSans", "DejaVuSerif-Bold", "DejaVuSansMono-Oblique", "STIXGeneral", "cmtt10")
NUM_DIGITS: Final = 4
WORDS: Final = tuple(
    (
        "north south east west open closed paid due kitchen garden cellar office spring summer autumn winter monday "
        "tuesday friday sunday red green blue black water bread apple lemon honey silver copper marble window bridge "
        "harbour station"
    ).split()
)
_SIZES: Final = (18, 25)
"""Size of the letters in pixels, from and to; a long word has smaller ones."""
_LEAST_SIZE: Final = 11


@final
@dataclass(frozen=True, eq=False)
class PrintedText:
    """Generated picture of a text."""

    pixels: NDArray[np.uint8]
    """[row, column] grey values."""
    text: str


def generate_printed_texts(
    number: int, seed: int, word_share: float = 0.5, split: str = "train"
) -> Iterator[PrintedText]:
    """Generate pictures; a picture is a function of its index, the seed and the split.

    Args:
        number: number of pictures.
        word_share: share of pictures with a word in place of digits, in [0, 1].
        split: name of the split; other splits have other pictures.

    Yields:
        The pictures.

    Raises:
        MissingExtra: Pillow or Matplotlib is not installed.
    """
    for index in range(number):
        generator = np.random.default_rng((seed, index, *split.encode()))
        if generator.random() < word_share:
            text = str(generator.choice(WORDS))
        else:
            text = "".join(map(str, generator.integers(0, 10, NUM_DIGITS)))
        yield PrintedText(print_text(text, generator), text)


def print_text(text: str, generator: np.random.Generator) -> NDArray[np.uint8]:
    """Draw one text; the generator decides on font, place, size, slant, shades, noise and lines.

    Returns:
        [row, column] grey values.

    Raises:
        MissingExtra: Pillow or Matplotlib is not installed.
    """
    with needed_for("drawing text"):
        from PIL import Image, ImageDraw
    paper, ink = int(generator.integers(190, 256)), int(generator.integers(0, 91))
    font = _font(text, FONTS[generator.integers(len(FONTS))], int(generator.integers(_SIZES[0], _SIZES[1] + 1)))
    picture = Image.new("L", (WIDTH, HEIGHT), paper)
    left, top, right, bottom = font.getbbox(text)
    spare = WIDTH - (right - left), HEIGHT - (bottom - top)
    corner = generator.uniform(2, max(3, spare[0] - 2)) - left, generator.uniform(1, max(2, spare[1] - 1)) - top
    ImageDraw.Draw(picture).text(corner, text, fill=ink, font=font)
    slant = generator.uniform(-0.2, 0.2)
    shear = (1.0, slant, -slant * HEIGHT / 2, 0.0, 1.0, 0.0)
    picture = picture.transform(picture.size, Image.Transform.AFFINE, shear, Image.Resampling.BILINEAR, fillcolor=paper)
    picture = picture.rotate(generator.uniform(-4.0, 4.0), Image.Resampling.BILINEAR, fillcolor=paper)
    pen = ImageDraw.Draw(picture)
    for _ in range(generator.integers(0, 3)):
        heights = [int(height) for height in generator.integers(0, HEIGHT + 1, 2)]
        pen.line((0, heights[0], WIDTH, heights[1]), fill=(ink + paper) // 2, width=1)
    noise = generator.normal(0.0, generator.uniform(0.0, 25.0), (HEIGHT, WIDTH))
    return (np.asarray(picture) + noise).clip(0, 255).astype(np.uint8)


def _font(text: str, name: str, size: int) -> "FreeTypeFont":
    """Font of a size, or a smaller one in which the text fits."""
    with needed_for("drawing text"):
        import matplotlib
        from PIL import ImageFont
    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{name}.ttf"
    font = ImageFont.truetype(path, size)
    while size > _LEAST_SIZE and font.getlength(text) > WIDTH - 6:
        size -= 1
        font = ImageFont.truetype(path, size)
    return font
