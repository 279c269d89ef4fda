"""Tiny pictures of one coloured square each, with a sentence about it, for tests of captioning."""

import random
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

COLOURS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 220)}
PLACES = ("top left", "top right", "bottom left", "bottom right")
SIDE = 16

SETTINGS = (
    "model.embedding_size=16",
    "model.hidden_size=16",
    "model.annotation_size=16",
    "model.num_blocks=1",
    "model.doubly_stochastic=0.1",
    "model.attention.hidden_size=16",
    "model.dropout=0",
    "training.batch_tokens=96",
    "training.validate_every=20",
    "training.precision=float32",
    "training.export=false",
    "training.label_smoothing=0",
    "training.optimizer.learning_rate=0.01",
    "training.optimizer.schedule.warmup_steps=5",
)


def scene(colour: str, place: int) -> NDArray[np.uint8]:
    pixels = np.full((SIDE, SIDE, 3), 240, dtype=np.uint8)
    row, column = divmod(place, 2)
    pixels[row * 8 + 1 : row * 8 + 7, column * 8 + 1 : column * 8 + 7] = COLOURS[colour]
    return pixels


def features(colour: str, place: int) -> NDArray[np.float32]:
    """[4, 7] mean colour and number of each quarter of the picture."""
    pixels = scene(colour, place).astype(np.float32) / 255
    means = pixels.reshape(2, 8, 2, 8, 3).mean(axis=(1, 3)).reshape(4, 3)
    return np.concatenate((means, np.eye(4, dtype=np.float32)), axis=1)


def write_scenes(path: Path, number: int = 80, seed: int = 0, kind: str = "png") -> Path:
    """Write pictures, or arrays of features, and the file that names them."""
    source = random.Random(seed)
    folder = path.parent / path.stem
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[str] = []
    for row in range(number):
        colour, place = source.choice([*COLOURS]), source.randrange(4)
        name = folder / f"{row}.{kind}"
        if kind == "npy":
            np.save(name, features(colour, place))
        else:
            Image.fromarray(scene(colour, place)).save(name)
        rows.append(f"{path.stem}/{row}.{kind}\ta {colour} square at the {PLACES[place]}\n")
    path.write_text("".join(rows), encoding="utf-8")
    return path


def write_boxes(data: Path, path: Path) -> Path:
    """Boxes of the quarter that the words of colour and shape are about."""
    lines: list[str] = []
    for line in data.read_text("utf-8").splitlines():
        image, text = line.split("\t")
        row, column = divmod(PLACES.index(text.partition(" at the ")[2]), 2)
        box = f"{8 * column},{8 * row},{8 * column + 8},{8 * row + 8}"
        lines.append(f"{image}\t{text}\t1:{box} 2:{box}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path
