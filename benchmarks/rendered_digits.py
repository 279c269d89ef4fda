"""Strings of digits in pictures: a corpus for captioning as a form or a meter shows them.

    python benchmarks/rendered_digits.py digits --number 3300
    heedful train digits/train.tsv --test digits/test.tsv --task captioning --minutes 10 --threads 2 --out digits.model
    heedful evaluate digits.model digits/test.tsv --metrics exact_match

Every picture has four digits in one of five fonts of Matplotlib, at a random place, size, slant and darkness, with
noise and up to two lines through them. The test has 500 more.
"""

import argparse
import random
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT = 96, 32
FONTS = ("DejaVuSans", "DejaVuSerif-Bold", "DejaVuSansMono-Oblique", "STIXGeneral", "cmtt10")
NUM_DIGITS = 4
NUM_TEST = 500
SEED = 1


def draw(text: str, number: int) -> Image.Image:
    """Draw a text; the number of the picture seeds all else."""
    random_ = random.Random(f"{SEED} {number}")
    import matplotlib

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    font = ImageFont.truetype(folder / f"{random_.choice(FONTS)}.ttf", random_.randint(18, 25))
    paper, ink = random_.randint(190, 255), random_.randint(0, 90)
    picture = Image.new("L", (WIDTH, HEIGHT), paper)
    pen = ImageDraw.Draw(picture)
    left, top, right, bottom = pen.textbbox((0, 0), text, font=font)
    space = WIDTH - (right - left), HEIGHT - (bottom - top)
    corner = random_.uniform(2, max(3, space[0] - 2)) - left, random_.uniform(1, max(2, space[1] - 1)) - top
    pen.text(corner, text, fill=ink, font=font)
    slant, turn = random_.uniform(-0.2, 0.2), random_.uniform(-4.0, 4.0)
    shear = (1.0, slant, -slant * HEIGHT / 2, 0.0, 1.0, 0.0)
    picture = picture.transform(picture.size, Image.Transform.AFFINE, shear, Image.Resampling.BILINEAR, fillcolor=paper)
    picture = picture.rotate(turn, Image.Resampling.BILINEAR, fillcolor=paper)
    pen = ImageDraw.Draw(picture)
    for _ in range(random_.randint(0, 2)):
        ends = (0, random_.randint(0, HEIGHT), WIDTH, random_.randint(0, HEIGHT))
        pen.line(ends, fill=(ink + paper) // 2, width=1)
    noise = np.random.default_rng((SEED, number)).normal(0.0, random_.uniform(0.0, 25.0), (HEIGHT, WIDTH))
    return Image.fromarray((np.asarray(picture) + noise).clip(0, 255).astype(np.uint8))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--number", type=int, default=3300)
    arguments = parser.parse_args()
    pictures = arguments.folder / "pictures"
    pictures.mkdir(parents=True)
    digits = random.Random(SEED)
    first = 0
    for name, number in (("train", arguments.number), ("test", NUM_TEST)):
        rows: list[str] = []
        for index in range(first, first + number):
            text = "".join(digits.choice("0123456789") for _ in range(NUM_DIGITS))
            draw(text, index).save(pictures / f"{index:05}.png")
            rows.append(f"pictures/{index:05}.png\t{text}\n")
        (arguments.folder / f"{name}.tsv").write_text("".join(rows), encoding="utf-8")
        first += number


if __name__ == "__main__":
    main()
