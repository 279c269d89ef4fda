"""Handwritten mathematics to LaTeX: exact formulas and errors per symbol, on the strokes of CROHME.

    python benchmarks/crohme.py write crohme --strokes FOLDER
    heedful train crohme/train.tsv --dev crohme/dev.tsv --task captioning --out crohme.model ...
    heedful evaluate crohme.model crohme/test2014.tsv --metrics exact_match,token_error_rate

FOLDER has train.jsonl.gz and test2014.jsonl.gz: lines of JSON with `strokes`, each a flat list x, y, x, y of the pen's
points, and `latex`, symbols separated by spaces. Formulas are drawn so that a usual stroke has the same size in all, or
smaller where the picture would be too small. Training formulas are drawn several times, all but the first time slanted,
turned, stretched and with pens of different thickness. The validation set consists of one formula in sixteen, by a
hash of its LaTeX, in all handwritings, so that it has no formula of the training set.
"""

import argparse
import gzip
import json
import math
import random
import statistics
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw

WIDTH, HEIGHT = 192, 48
MARGIN = 3
"""Pixels around a formula."""
UNIT = 15.0
"""Longer side of a usual stroke, in pixels."""
FINENESS = 4
"""Pixels drawn per pixel of the picture, in both directions, so that lines are smooth."""
DEV_SHARE = 16
SEED = 1

Points = list[tuple[float, float]]


class Hand(NamedTuple):
    """Change of a handwriting."""

    slant: float = 0.0
    turn: float = 0.0
    """Angle in radians."""
    stretch: float = 1.0
    size: float = 1.0
    thickness: float = 1.4
    """Width of the pen, in pixels."""

    @classmethod
    def drawn(cls, draw: random.Random) -> "Hand":
        return cls(
            draw.uniform(-0.3, 0.3),
            draw.uniform(-0.07, 0.07),
            math.exp(draw.uniform(-0.2, 0.2)),
            math.exp(draw.uniform(-0.25, 0.15)),
            draw.uniform(1.0, 2.2),
        )

    def moved(self, strokes: Sequence[Points]) -> list[Points]:
        cosine, sine = math.cos(self.turn), math.sin(self.turn)

        def point(x: float, y: float) -> tuple[float, float]:
            x = self.stretch * (x - self.slant * y)
            return cosine * x - sine * y, sine * x + cosine * y

        return [[point(*each) for each in stroke] for stroke in strokes]


def picture(strokes: Sequence[Points], hand: Hand) -> Image.Image:
    """Strokes in the middle of a white picture."""
    strokes = hand.moved(strokes)
    sizes = [max(extent(stroke)) for stroke in strokes]
    width, height = extent([point for stroke in strokes for point in stroke])
    # Dots and commas say nothing about the size of the writing.
    usual = statistics.median([size for size in sizes if size > max(sizes) / 20] or [1.0]) or 1.0
    room = [(side - 2 * MARGIN) / max(size, 1e-6) for side, size in ((WIDTH, width), (HEIGHT, height))]
    scale = FINENESS * min(hand.size * UNIT / usual, *room)
    left, top = (min(point[axis] for stroke in strokes for point in stroke) for axis in (0, 1))
    x, y = ((FINENESS * side - scale * size) / 2 for side, size in ((WIDTH, width), (HEIGHT, height)))
    image = Image.new("L", (FINENESS * WIDTH, FINENESS * HEIGHT), 255)
    pen = ImageDraw.Draw(image)
    radius = FINENESS * hand.thickness / 2
    for stroke in strokes:
        points = [(x + scale * (each[0] - left), y + scale * (each[1] - top)) for each in stroke]
        pen.line(points, fill=0, width=round(2 * radius), joint="curve")
        for end in (points[0], points[-1]):
            pen.ellipse((end[0] - radius, end[1] - radius, end[0] + radius, end[1] + radius), fill=0)
    return image.resize((WIDTH, HEIGHT), Image.Resampling.BOX)


def extent(points: Points) -> tuple[float, float]:
    xs, ys = zip(*points, strict=True)
    return max(xs) - min(xs), max(ys) - min(ys)


def formulas(path: Path) -> Iterator[tuple[list[Points], str]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            row = json.loads(line)
            strokes = [[*zip(stroke[::2], stroke[1::2], strict=True)] for stroke in row["strokes"]]
            yield strokes, row["latex"]


def write(folder: Path, source: Path, copies: int) -> None:
    draw = random.Random(SEED)
    lines: dict[str, list[str]] = {"train": [], "dev": [], "test2014": []}
    for name in lines:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for file in ("train", "test2014"):
        for index, (strokes, latex) in enumerate(formulas(source / f"{file}.jsonl.gz")):
            is_dev = file == "train" and zlib.crc32(latex.encode()) % DEV_SHARE == 0
            split = "dev" if is_dev else file
            for copy in range(copies if split == "train" else 1):
                path = f"{split}/{index:05d}-{copy}.png"
                picture(strokes, Hand.drawn(draw) if copy else Hand()).save(folder / path, compress_level=1)
                lines[split].append(f"{path}\t{latex}\n")
    for split, rows in lines.items():
        if split == "train":
            draw.shuffle(rows)
        (folder / f"{split}.tsv").write_text("".join(rows), encoding="utf-8")
        print(f"{split}: {len(rows):,} pictures")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--strokes", type=Path, required=True)
    writing.add_argument("--copies", type=int, default=8, help="pictures of a training formula (default: %(default)s)")
    options = parser.parse_args()
    write(options.folder, options.strokes, options.copies)


if __name__ == "__main__":
    main()
