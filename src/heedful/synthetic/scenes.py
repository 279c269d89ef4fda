"""Generated scenes of shapes with sentences about them, and the box of every object that a sentence names.

An image is a grid of three by three cells; an object lies within a cell, and the sentence names the objects row by row
with size, colour, shape and cell. Drawn with NumPy alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

SIDE: Final = 72
"""Rows and columns of a scene, in pixels."""
_CELL: Final = SIDE // 3
COLOURS: Final = {
    "red": (210, 40, 40),
    "green": (40, 160, 60),
    "blue": (50, 80, 210),
    "yellow": (225, 190, 30),
    "purple": (140, 60, 170),
    "black": (25, 25, 25),
}
SHAPES: Final = ("circle", "square", "triangle", "cross", "ring")
SIZES: Final = {"small": (4.0, 5.0), "large": (7.5, 9.0)}
"""Half the side of an object in pixels, from and to."""
PLACES: Final = (
    *("at the top left", "at the top", "at the top right"),
    *("on the left", "in the middle", "on the right"),
    *("at the bottom left", "at the bottom", "at the bottom right"),
)
_EDGE: Final = 0.5
_PAPER: Final = (215, 255)
_NOISE: Final = 6.0


class Box(NamedTuple):
    """Pixels of an object: rows top ≤ row < bottom, columns left ≤ column < right."""

    top: int
    left: int
    bottom: int
    right: int


@final
@dataclass(frozen=True, eq=False)
class Scene:
    """Generated image with a sentence about it."""

    pixels: NDArray[np.uint8]
    """[row, column, colour]"""
    text: str
    boxes: dict[int, Box]
    """Box of the object that a word names, by the index of the word, for the words of colour and shape."""


def generate_scenes(number: int, seed: int, most_objects: int = 3, split: str = "train") -> Iterator[Scene]:
    """Generate scenes; a scene is a function of its index, the seed and the split.

    Args:
        number: number of scenes.
        most_objects: largest number of objects in a scene, from 1 to 9.
        split: name of the split; other splits have other scenes.

    Yields:
        The scenes.

    Example:
        >>> [scene.text for scene in generate_scenes(1, seed=1, most_objects=1)]
        ['a small yellow cross on the left']
    """
    for index in range(number):
        yield draw_scene(np.random.default_rng((seed, index, *split.encode())), most_objects)


def draw_scene(generator: np.random.Generator, most_objects: int = 3) -> Scene:
    """Draw one scene.

    Args:
        generator: random numbers.
        most_objects: largest number of objects, from 1 to 9.
    """
    paper = generator.uniform(*_PAPER, size=3)
    pixels = np.broadcast_to(paper, (SIDE, SIDE, 3)).copy()
    cells = sorted(generator.permutation(9)[: generator.integers(1, most_objects + 1)].tolist())
    words: list[str] = []
    boxes: dict[int, Box] = {}
    for order, cell in enumerate(cells):
        size = str(generator.choice([*SIZES]))
        colour = str(generator.choice([*COLOURS]))
        shape = str(generator.choice(SHAPES))
        half = generator.uniform(*SIZES[size])
        room = _CELL / 2 - half
        row, column = ((index + 0.5) * _CELL + generator.uniform(-room, room) for index in (cell // 3, cell % 3))
        cover = _cover(shape, row, column, half)[..., None]
        shade = np.array(COLOURS[colour]) + generator.uniform(-15.0, 15.0, size=3)
        pixels += cover * (shade - pixels)
        words += [*(["and"] if order and order == len(cells) - 1 else []), "a", size, colour, shape]
        rows, columns = (np.flatnonzero(cover[..., 0].any(axis=axis)) for axis in (1, 0))
        box = Box(int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1)
        boxes |= {len(words) - 2: box, len(words) - 1: box}
        words += PLACES[cell].split()
    pixels += generator.normal(0.0, _NOISE, size=pixels.shape)
    return Scene(pixels.clip(0.0, 255.0).round().astype(np.uint8), " ".join(words), boxes)


def _cover(shape: str, row: float, column: float, half: float) -> NDArray[np.float64]:
    """[row, column] share of each pixel that a shape covers, from its distance to the edge."""
    y = np.arange(SIDE)[:, None] + 0.5 - row
    x = np.arange(SIDE)[None, :] + 0.5 - column
    square = np.maximum(abs(y), abs(x)) - half
    round_ = np.hypot(y, x) - half
    thickness = 0.32 * half
    distances = {
        "circle": round_,
        "square": square,
        "triangle": np.maximum(y - half, (2.0 * abs(x) - y - half) / np.sqrt(5.0)),
        "cross": np.maximum(square, np.minimum(abs(y), abs(x)) - thickness),
        "ring": np.maximum(round_, half - 2.0 * thickness - np.hypot(y, x)),
    }
    return (_EDGE - distances[shape]).clip(0.0, 1.0)
