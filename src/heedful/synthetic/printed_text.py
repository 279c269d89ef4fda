"""Generated pictures of printed text: digits or a word, in five fonts, with slant, noise and lines through them.

The fonts are those that Matplotlib brings along.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import needed_for
from heedful.synthetic.scenes import Box

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
        "harbour station acid axle badge barrel basket beacon bell bicycle blanket board bottle box brass brick "
        "bucket button cabin cable camera candle canvas carbon card carpet castle cedar cement chalk charge circle "
        "citrus clay clock cloud coal coffee coin column corner cotton crane crew cup curve dairy daily depot desk "
        "diesel door double drawer dozen drum dust eagle earth eight engine entry exit fabric factory farm felt fence "
        "ferry field figure film filter fire flag flour foil forest forge fox frame fruit fuel gate gauge ginger "
        "glass glue gold grain gravel guard guitar hall hammer handle hazel heavy height hinge hotel house index ink "
        "iron island ivory jacket jam january jelly jewel joint journal july juice june jungle key kiosk kiwi knife "
        "label ladder lamp latch layer leaf level light linen lock lower lumber maple march market mask matrix meadow "
        "metal meter middle milk mill mixer mobile motor museum music nail navy nickel night nine nozzle number nut "
        "oak object ocean olive onion orange oven oxygen packet paint panel paper parcel pearl pencil pepper piano "
        "pilot pine pipe pixel plaza plum pocket point pottery powder press price pump purple quality quarry quart "
        "queue quick quiet quilt rack radio rail razor ribbon rice river rocket roof rope rubber sack safety sailor "
        "salt sand saucer scale screw second seven sheet shelf ship shovel signal silk six sketch slate snow soap "
        "socket soda spade spiral square stamp steel stone storm sugar switch table tailor tank tape tariff tea "
        "ticket tiger timber tin tower track tractor truck tunnel twelve umbrella unit upper valley valve velvet "
        "vessel vinegar violet volume voyage wagon walnut wax wheat wheel white wire wood wool wrench yacht yard yarn "
        "yeast yellow zebra zero zinc zone"
    ).split()
)
NEW_WORDS: Final = WORDS[7::8]
"""Words that are left out of the split "train", so that other splits have some which are not known by heart."""
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
    boxes: dict[int, Box]
    """Box of each character by its index, over the whole height of the text."""


def generate_printed_texts(
    number: int, seed: int, word_share: float = 0.5, split: str = "train"
) -> Iterator[PrintedText]:
    """Generate pictures; a picture is a function of its index, the seed and the split.

    Args:
        number: number of pictures.
        word_share: share of pictures with a word in place of digits, in [0, 1].
        split: name of the split; other splits have other pictures, and "train" lacks some words.

    Yields:
        The pictures.

    Raises:
        MissingExtra: Pillow or Matplotlib is not installed.
    """
    words = [word for word in WORDS if split != "train" or word not in NEW_WORDS]
    for index in range(number):
        generator = np.random.default_rng((seed, index, *split.encode()))
        if generator.random() < word_share:
            text = str(generator.choice(words))
        else:
            text = "".join(map(str, generator.integers(0, 10, NUM_DIGITS)))
        yield print_text(text, generator)


def print_text(text: str, generator: np.random.Generator) -> PrintedText:
    """Draw one text; the generator decides on font, place, size, slant, shades, noise and lines.

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
    angle = generator.uniform(-4.0, 4.0)
    picture = picture.rotate(angle, Image.Resampling.BILINEAR, fillcolor=paper)
    pen = ImageDraw.Draw(picture)
    for _ in range(generator.integers(0, 3)):
        heights = [int(height) for height in generator.integers(0, HEIGHT + 1, 2)]
        pen.line((0, heights[0], WIDTH, heights[1]), fill=(ink + paper) // 2, width=1)
    noise = generator.normal(0.0, generator.uniform(0.0, 25.0), (HEIGHT, WIDTH))
    edges = [corner[0] + font.getlength(text[:number]) for number in range(len(text) + 1)]
    height = corner[1] + top, corner[1] + bottom
    boxes = {index: _box(*sides, *height, slant, angle) for index, sides in enumerate(pairwise(edges))}
    return PrintedText((np.asarray(picture) + noise).clip(0, 255).astype(np.uint8), text, boxes)


def _box(left: float, right: float, top: float, bottom: float, slant: float, angle: float) -> Box:
    """Box of a slanted and turned character, around the middles of its sides, from its edges before.

    Args:
        slant: columns to the left for each row below the middle of the picture.
        angle: degrees, against the clock.
    """
    column, row = (left + right) / 2, (top + bottom) / 2
    middles = np.array([(left, row), (right, row), (column, top), (column, bottom)]) - (WIDTH / 2, HEIGHT / 2)
    middles[:, 0] -= slant * middles[:, 1]
    cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    turned = (middles @ ((cosine, -sine), (sine, cosine)) + (WIDTH / 2, HEIGHT / 2)).round().astype(int)
    first, upper = turned.min(axis=0).clip(0, (WIDTH - 1, HEIGHT - 1))
    last, lower = turned.max(axis=0).clip((first + 1, upper + 1), (WIDTH, HEIGHT))
    return Box(int(upper), int(first), int(lower), int(last))


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
