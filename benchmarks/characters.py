"""Chinese characters to their structure: exact sequences for unseen fonts and characters, and the place of attention.

    python benchmarks/characters.py write characters --sequences FOLDER --fonts FOLDER
    heedful train characters/train.tsv --dev characters/dev.tsv --task captioning --out characters.model ...
    python benchmarks/characters.py score characters.model characters [--splits dev]

FOLDER has train.tsv and dev.tsv: lines of a character, one level of its structure, and its structure down to
components, as ideographic description sequences. Characters of train.tsv are drawn in eight typefaces; two others are
held out. Of dev.tsv, the first quarter of the characters chooses the model, the rest is for the test. The place of a
component is the part of the square that the sequence gives it, halves and thirds of equal size; attention is in its
place if the centre of its weights is.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fontTools.ttLib import TTCollection, TTFont
from PIL import Image, ImageDraw, ImageFont

from heedful.predictors.captioner import Captioner
from heedful.predictors.table import load

SIDE = 48
SEED = 1
TYPEFACES = {
    "sans": ("NotoSansCJK-Regular.ttc", "SC"),
    "sans bold": ("NotoSansCJK-Bold.ttc", "SC"),
    "serif": ("NotoSerifCJK-Regular.ttc", "SC"),
    "serif bold": ("NotoSerifCJK-Bold.ttc", "SC"),
    "zen hei": ("wqy-zenhei.ttc", ""),
    "kai": ("ukai.ttc", "CN"),
    "ming": ("uming.ttc", "CN"),
    "wenkai light": ("LXGWWenKai-Light.ttf", ""),
}
"""File and member of a collection."""
HELD_OUT = {"micro hei": ("wqy-microhei.ttc", ""), "wenkai": ("LXGWWenKai-Bold.ttf", "")}
NUMBER_SEEN = 1000
"""Characters of the training set that are tested in the held-out typefaces."""


class Typeface:
    """A font file, drawn at any size."""

    def __init__(self, folder: Path, name: str, member: str) -> None:
        found = sorted(folder.rglob(name))
        if not found:
            raise SystemExit(f"{name} is not under {folder}")
        self.path = found[0]
        self.index = 0
        if self.path.suffix == ".ttc":
            names = [str(font["name"].getDebugName(4)) for font in TTCollection(str(self.path)).fonts]
            self.index = next((index for index, each in enumerate(names) if each.split()[-1] == member), 0)
        self.characters = set(TTFont(str(self.path), fontNumber=self.index).getBestCmap() or ())
        self.sizes: dict[int, ImageFont.FreeTypeFont] = {}

    def draw(self, character: str, draw: random.Random) -> Image.Image | None:
        """A character of random size near the middle; None where the typeface lacks it."""
        if ord(character) not in self.characters:
            return None
        size = draw.randint(38, 46)
        font = self.sizes.setdefault(size, ImageFont.truetype(str(self.path), size, index=self.index))
        image = Image.new("L", (SIDE, SIDE), 255)
        left, top, right, bottom = font.getbbox(character)
        x = (SIDE - left - right) / 2 + draw.uniform(-2, 2)
        y = (SIDE - top - bottom) / 2 + draw.uniform(-2, 2)
        ImageDraw.Draw(image).text((x, y), character, fill=0, font=font)
        return image


def write(folder: Path, sequences: Path, fonts: Path) -> None:
    draw = random.Random(SEED)
    train, unseen = (read(sequences / f"{name}.tsv") for name in ("train", "dev"))
    seen = draw.sample(train, NUMBER_SEEN)
    known, new = ({name: Typeface(fonts, *file) for name, file in faces.items()} for faces in (TYPEFACES, HELD_OUT))
    quarter = len(unseen) // 4
    draw.shuffle(unseen)
    plans = {
        "train": (train, known),
        "dev": (unseen[:quarter], known),
        "new-typeface": (seen, new),
        "new-character": (unseen[quarter:], known),
        "new-both": (unseen[quarter:], new),
    }
    for split, (rows, faces) in plans.items():
        (folder / split).mkdir(parents=True, exist_ok=True)
        lines: list[str] = []
        for character, sequence in rows:
            # One typeface each, but all of them in training.
            for name in faces if split == "train" else [draw.choice([*faces])]:
                image = faces[name].draw(character, draw)
                if image is not None:
                    path = f"{split}/{ord(character):x}-{name.replace(' ', '-')}.png"
                    image.save(folder / path, compress_level=1)
                    lines.append(f"{path}\t{sequence}\n")
        draw.shuffle(lines)
        (folder / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")
        if split == "train":
            (folder / "boxes.tsv").write_text("".join(map(boxed, lines)), encoding="utf-8")
        print(f"{split}: {len(lines):,} pictures")


def boxed(line: str) -> str:
    """Line of a file for --links: the place of each component, and of the whole for each description character."""
    image, sequence = line.rstrip("\n").split("\t")
    boxes = (
        f"{index}:" + ",".join(f"{SIDE * edge:.2f}" for edge in box) for index, (_, box) in enumerate(places(sequence))
    )
    return f"{image}\t{' '.join(sequence)}\t{' '.join(boxes)}\n"


def read(path: Path) -> list[tuple[str, str]]:
    """Characters that consist of parts, with their structure."""
    rows = (line.split("\t") for line in path.read_text("utf-8").splitlines())
    return [(character, sequence) for character, _, sequence in rows if len(sequence) > 1]


class Box(NamedTuple):
    """Part of a square of side 1."""

    left: float
    top: float
    right: float
    bottom: float

    def part(self, left: float, top: float, right: float, bottom: float) -> "Box":
        width, height = self.right - self.left, self.bottom - self.top
        return Box(
            self.left + left * width, self.top + top * height, self.left + right * width, self.top + bottom * height
        )


THIRD = 1 / 3
WHOLE = (0.0, 0.0, 1.0, 1.0)
PARTS = {
    "⿰": ((0, 0, 0.5, 1), (0.5, 0, 1, 1)),
    "⿱": ((0, 0, 1, 0.5), (0, 0.5, 1, 1)),
    "⿲": ((0, 0, THIRD, 1), (THIRD, 0, 2 * THIRD, 1), (2 * THIRD, 0, 1, 1)),
    "⿳": ((0, 0, 1, THIRD), (0, THIRD, 1, 2 * THIRD), (0, 2 * THIRD, 1, 1)),
    "⿴": (WHOLE, (0.2, 0.2, 0.8, 0.8)),
    "⿵": (WHOLE, (0.2, 0.3, 0.8, 1)),
    "⿶": (WHOLE, (0.2, 0, 0.8, 0.7)),
    "⿷": (WHOLE, (0.3, 0.2, 1, 0.8)),
    "⿸": (WHOLE, (0.3, 0.3, 1, 1)),
    "⿹": (WHOLE, (0, 0.3, 0.7, 1)),
    "⿺": (WHOLE, (0.3, 0, 1, 0.7)),
    "⿻": (WHOLE, WHOLE),
}
"""Place of each part of a description character."""


def places(sequence: str) -> list[tuple[str, Box]]:
    """Each character of a sequence with its box, in order."""

    def walk(box: Box) -> Iterator[tuple[str, Box]]:
        character = next(rest)
        yield character, box
        for part in PARTS.get(character, ()):
            yield from walk(box.part(*part))

    rest = iter(sequence)
    return [*walk(Box(*WHOLE))]


def score(model: Path, folder: Path, splits: list[str]) -> None:
    captioner = load(model, kind=Captioner)
    for split in splits:
        rows = [line.split("\t") for line in (folder / f"{split}.tsv").read_text("utf-8").splitlines()]
        captions = captioner.caption([folder / path for path, _ in rows], beam=4, attention=True)
        num_right = 0
        hits: list[bool] = []
        areas: list[float] = []
        for caption, (_, sequence) in zip(captions, rows, strict=True):
            if caption.text != sequence or caption.attention is None:
                continue
            num_right += 1
            height, width = caption.grid
            y, x = (np.indices((height, width)).reshape(2, -1) + 0.5) / [[height], [width]]
            for weights, (character, box) in zip(caption.attention, places(sequence), strict=False):
                if character not in PARTS and box != Box(*WHOLE):
                    centre = weights @ x / weights.sum(), weights @ y / weights.sum()
                    hits.append(bool(box.left <= centre[0] <= box.right and box.top <= centre[1] <= box.bottom))
                    areas.append((box.right - box.left) * (box.bottom - box.top))
        print(
            f"{split}: exact {num_right / len(rows):.1%} of {len(rows):,}; centre of attention in the component's "
            f"place {np.mean(hits):.1%} of {len(hits):,} (the places cover {np.mean(areas):.1%})"
        )
        for least, most in ((0.3, 1.0), (0.2, 0.3), (0.1, 0.2), (0.0, 0.1)):
            part = [hit for hit, area in zip(hits, areas, strict=True) if least <= area < most]
            print(f"    places from {least:.0%} to {most:.0%} of the picture: {np.mean(part):.1%} of {len(part):,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--sequences", type=Path, required=True)
    writing.add_argument("--fonts", type=Path, default=Path("/usr/share/fonts"))
    scoring = commands.add_parser("score")
    scoring.add_argument("model", type=Path)
    scoring.add_argument("folder", type=Path)
    scoring.add_argument("--splits", nargs="+", default=["new-typeface", "new-character", "new-both"])
    options = parser.parse_args()
    if options.command == "write":
        write(options.folder, options.sequences, options.fonts)
    else:
        score(options.model, options.folder, options.splits)


if __name__ == "__main__":
    main()
