"""Handwritten mathematics to LaTeX: exact formulas and errors per symbol, on the strokes of CROHME.

    python benchmarks/crohme.py arrays crohme --strokes FOLDER    # a region is a stroke of the pen
    python benchmarks/crohme.py pictures crohme --strokes FOLDER  # a region is a square of a picture
    heedful train crohme/train.tsv --dev crohme/dev.tsv --task captioning --out crohme.model ...
    heedful evaluate crohme.model crohme/test2014.tsv --metrics exact_match,token_error_rate

FOLDER has train.jsonl.gz and test2014.jsonl.gz: lines of JSON with `strokes`, each a flat list x, y, x, y of the pen's
points, and `latex`, symbols separated by spaces. Arrays describe each stroke in 122 numbers. Pictures are
drawn so that a usual stroke has the same size in all, or smaller where the picture would be too small. Training
formulas are written several times, all but the first time slanted, turned, stretched and with pens of different
thickness; in arrays the strokes are also moved, turned and scaled one by one, a few of them written backwards or at
another time. The validation set consists of one formula in sixteen, by a
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

import numpy as np
from numpy.typing import NDArray
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
POINTS = 16
"""Points of a stroke in arrays."""
BACKWARDS = 0.03
OUT_OF_ORDER = 0.03
MOST_SIZES = 4.0
"""Largest distance in arrays, in usual sizes."""
WAVELENGTHS = ((2, 4, 8, 16, 32, 64), (1, 2, 4, 8, 16), (4, 8, 16, 32, 64, 128))
"""Wavelengths of waves that describe places from left to right, from top to bottom, and in the order of writing."""

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
    width, height = extent([point for stroke in strokes for point in stroke])
    usual = usual_size(strokes)
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


def rewritten(strokes: Sequence[Points], draw: random.Random) -> list[Points]:
    """Strokes by another hand: all changed alike, then each a little by itself, and a few backwards or out of order."""
    unit = usual_size(strokes)
    changed = []
    for stroke in Hand.drawn(draw).moved(strokes):
        x, y = (unit * draw.gauss(0.0, 0.06) for _ in range(2))
        turn, width, height = draw.gauss(0.0, 0.08), *(math.exp(draw.gauss(0.0, 0.08)) for _ in range(2))
        cosine, sine = math.cos(turn), math.sin(turn)
        across, down = (statistics.fmean(point[axis] for point in stroke) for axis in (0, 1))
        points = []
        for point in stroke:
            dx, dy = width * (point[0] - across), height * (point[1] - down)
            dx, dy = cosine * dx - sine * dy, sine * dx + cosine * dy
            shake = (unit * draw.gauss(0.0, 0.02) for _ in range(2))
            points.append((across + x + dx + next(shake), down + y + dy + next(shake)))
        changed.append(points[::-1] if draw.random() < BACKWARDS else points)
    for index in range(len(changed)):
        if draw.random() < OUT_OF_ORDER:
            changed.insert(draw.randrange(len(changed)), changed.pop(index))
    return changed


def usual_size(strokes: Sequence[Points]) -> float:
    """Median of the longer sides of strokes, without dots and commas, which say nothing about the size of writing."""
    sizes = [max(extent(stroke)) for stroke in strokes]
    return statistics.median([size for size in sizes if size > max(sizes) / 20] or [1.0]) or 1.0


def stroke_features(strokes: Sequence[Points]) -> NDArray[np.float32]:
    """Description of strokes, [stroke, feature]: shape, size, place, time, and the way from and to the next one.

    Lengths are in usual sizes of a stroke of the formula; places and times are also given by sines and cosines of
    several wavelengths, whose products tell how far apart two strokes are.
    """
    unit = usual_size(strokes)
    paths = np.stack([resampled(np.array(stroke, dtype=np.float64) / unit) for stroke in strokes])
    low, high = paths.min(axis=1), paths.max(axis=1)
    sizes, centres = high - low, (high + low) / 2
    line, left = np.median(centres[:, 1]), low[:, 0].min()
    steps = np.diff(paths, axis=1)
    lengths = np.linalg.norm(steps, axis=2, keepdims=True)
    shapes = 2.0 * (paths - centres[:, None]) / np.maximum(sizes.max(axis=1), 0.1)[:, None, None]
    parts = [shapes, steps / np.maximum(lengths, 1e-6)]
    parts += [np.log(sizes + 0.05), np.log(lengths.sum(axis=1) + 0.05), np.minimum(sizes, MOST_SIZES)]
    parts += [np.stack([each[:, 1] - line for each in (low, centres, high)], axis=1)]
    first, second = slice(None, -1), slice(1, None)
    for here, there in ((second, first), (first, second)):
        gaps = np.zeros((len(paths), 9))
        ends = [one[there] - another[here] for one in (low, high) for another in (low, high)]
        gaps[here] = np.clip(np.concatenate([*ends, np.ones_like(ends[0][:, :1])], axis=1), -MOST_SIZES, MOST_SIZES)
        parts.append(gaps)
    places = [centres[:, 0] - left, centres[:, 1] - line, np.arange(float(len(paths)))]
    for place, wavelengths in zip(places, WAVELENGTHS, strict=True):
        angles = 2 * np.pi * place[:, None] / np.array(wavelengths)
        parts += [np.sin(angles), np.cos(angles)]
    return np.concatenate([part.reshape(len(paths), -1) for part in parts], axis=1).astype(np.float32)


def resampled(path: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points at equal distances along a stroke, [POINTS, 2]."""
    lengths = np.concatenate([[0.0], np.hypot(*np.diff(path, axis=0).T).cumsum()])
    places = np.linspace(0.0, lengths[-1], POINTS)
    return np.stack([np.interp(places, lengths, path[:, axis]) for axis in (0, 1)], axis=1)


def write(folder: Path, source: Path, copies: int, has_pictures: bool) -> None:
    draw = random.Random(SEED)
    lines: dict[str, list[str]] = {"train": [], "dev": [], "test2014": []}
    for name in lines:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for file in ("train", "test2014"):
        for index, (strokes, latex) in enumerate(formulas(source / f"{file}.jsonl.gz")):
            is_dev = file == "train" and zlib.crc32(latex.encode()) % DEV_SHARE == 0
            split = "dev" if is_dev else file
            for copy in range(copies if split == "train" else 1):
                path = f"{split}/{index:05d}-{copy}.{'png' if has_pictures else 'npy'}"
                if has_pictures:
                    picture(strokes, Hand.drawn(draw) if copy else Hand()).save(folder / path, compress_level=1)
                else:
                    features = stroke_features(rewritten(strokes, draw) if copy else strokes)
                    np.save(folder / path, features.astype(np.float16))
                lines[split].append(f"{path}\t{latex}\n")
    for split, rows in lines.items():
        if split == "train":
            draw.shuffle(rows)
        (folder / f"{split}.tsv").write_text("".join(rows), encoding="utf-8")
        print(f"{split}: {len(rows):,} formulas")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("arrays", "pictures"):
        writing = commands.add_parser(name)
        writing.add_argument("folder", type=Path)
        writing.add_argument("--strokes", type=Path, required=True)
        writing.add_argument(
            "--copies", type=int, default=8, help="copies of a training formula (default: %(default)s)"
        )
    options = parser.parse_args()
    write(options.folder, options.strokes, options.copies, options.command == "pictures")


if __name__ == "__main__":
    main()
