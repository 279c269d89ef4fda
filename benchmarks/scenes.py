"""Captions of generated scenes: exact sentences, and whether the attention of a word lies on the object that it names.

    python benchmarks/scenes.py write scenes
    heedful train scenes/train.tsv --dev scenes/dev.tsv --test scenes/test.tsv --task captioning --out scenes.model ...
    python benchmarks/scenes.py score scenes.model scenes

The region of the largest weight counts as on the object if it overlaps the object's box; "centre" asks for the centre
of the region inside the box. Only words of colour and shape of sentences without a mistake are counted, because in
others it is unknown which object a word names.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from heedful.predictors.captioner import Captioner
from heedful.predictors.table import load
from heedful.synthetic.scenes import SIDE, Box, generate_scenes

NUMBERS = {"train": 24_000, "dev": 500, "test": 2_000}
SEED = 1


def write(folder: Path) -> None:
    for split, number in NUMBERS.items():
        (folder / split).mkdir(parents=True, exist_ok=True)
        rows: list[str] = []
        boxes: list[str] = []
        for index, scene in enumerate(generate_scenes(number, SEED, split=split)):
            Image.fromarray(scene.pixels).save(folder / split / f"{index:05d}.png", compress_level=1)
            rows.append(f"{split}/{index:05d}.png\t{scene.text}\n")
            places = (f"{word}:{box.left},{box.top},{box.right},{box.bottom}" for word, box in scene.boxes.items())
            boxes.append(f"{split}/{index:05d}.png\t{scene.text}\t{' '.join(places)}\n")
        (folder / f"{split}.tsv").write_text("".join(rows), encoding="utf-8")
        if split == "train":
            (folder / "boxes.tsv").write_text("".join(boxes), encoding="utf-8")


def is_on(box: Box, region: int, grid: tuple[int, int]) -> tuple[bool, bool]:
    """Whether a region overlaps a box, and whether its centre is inside."""
    row, column = divmod(region, grid[1])
    side = SIDE / grid[0]
    top, left = row * side, column * side
    overlaps = top < box.bottom and top + side > box.top and left < box.right and left + side > box.left
    centre = box.top <= top + side / 2 < box.bottom and box.left <= left + side / 2 < box.right
    return overlaps, centre


def score(model: Path, folder: Path, limit: int) -> None:
    captioner = load(model, kind=Captioner)
    scenes = [*generate_scenes(NUMBERS["test"], SEED, split="test")][:limit]
    paths = [folder / "test" / f"{index:05d}.png" for index in range(len(scenes))]
    captions = captioner.caption(paths, beam=1, attention=True)
    looks: list[tuple[bool, bool]] = []
    chance: list[float] = []
    num_right = 0
    for caption, scene in zip(captions, scenes, strict=True):
        if caption.text != scene.text or caption.attention is None:
            continue
        num_right += 1
        num_regions = caption.attention.shape[1]
        for word, box in scene.boxes.items():
            looks.append(is_on(box, int(caption.attention[word].argmax()), caption.grid))
            chance.append(float(np.mean([is_on(box, region, caption.grid)[0] for region in range(num_regions)])))
    overlaps, centres = np.mean(looks, axis=0)
    print(f"exact {num_right / len(scenes):.1%} of {len(scenes):,} scenes")
    print(f"largest weight on the object {overlaps:.1%} (by chance {np.mean(chance):.1%}), centre {centres:.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write").add_argument("folder", type=Path)
    scoring = commands.add_parser("score")
    scoring.add_argument("model", type=Path)
    scoring.add_argument("folder", type=Path)
    scoring.add_argument("--limit", type=int, default=NUMBERS["test"])
    options = parser.parse_args()
    if options.command == "write":
        write(options.folder)
    else:
        score(options.model, options.folder, options.limit)


if __name__ == "__main__":
    main()
