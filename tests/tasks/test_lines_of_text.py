"""Lines of text in pictures: a small model learns to read them, and shows the columns in which letters stand."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from heedful.cli.inspected_texts import caption_text
from heedful.predictors.captioner import Captioner
from heedful.predictors.table import load
from tests.requests import make_request, train
from tests.tasks.scenes import SETTINGS

ROWS = {"a": slice(4, 28), "b": slice(4, 14), "c": slice(18, 28)}
"""Rows of the bar that stands for a letter."""
OWN = (
    "model.doubly_stochastic=0",
    "model.num_row_layers=1",
    "images.region_height=32",
    "images.region_size=4",
    "training.batch_tokens=32",
    "training.alignment_weight=1",
)


def write_lines(path: Path, number: int, seed: int) -> Path:
    """Write pictures of two to four bars in many places, the file that names them, and a file of their boxes."""
    generator = np.random.default_rng(seed)
    path.with_suffix("").mkdir()
    rows: list[str] = []
    boxes: list[str] = []
    for index in range(number):
        pixels = np.full((32, 72), 230, dtype=np.uint8)
        text = "".join(generator.choice([*ROWS], generator.integers(2, 5)))
        column = int(generator.integers(1, 72 - 14 * len(text)))
        places: list[str] = []
        for place, letter in enumerate(text):
            column += int(generator.integers(2, 6))
            pixels[ROWS[letter], column : column + 7] = 20
            places.append(f"{place}:{column},0,{column + 7},32")
            column += 7
        Image.fromarray(pixels).save(path.with_suffix("") / f"{index}.png")
        rows.append(f"{path.stem}/{index}.png\t{text}\n")
        boxes.append(f"{path.stem}/{index}.png\t{' '.join(text)}\t{' '.join(places)}\n")
    path.write_text("".join(rows), encoding="utf-8")
    path.with_suffix(".boxes").write_text("".join(boxes), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lines")
    lines, dev = write_lines(folder / "train.tsv", 300, 1), write_lines(folder / "dev.tsv", 20, 2)
    limits = ("training.max_steps=700", "training.validate_every=350")
    settings = (*SETTINGS, *OWN, *limits, f"training.links={lines.with_suffix('.boxes')}")
    request = make_request((lines,), folder / "m", task="captioning", settings=settings, dev=(dev,))
    train(request, lambda progress: None, lambda info: None, lambda line: None)
    return folder


def test_a_small_model_learns_to_read(folder: Path):
    captioner = load(folder / "m", kind=Captioner)
    assert captioner.images.grid == (1, 18)
    test = write_lines(folder / "test.tsv", 60, 3)
    assert captioner.evaluate(test)["exact_match"].score >= 90.0


def test_letters_are_shown_over_the_columns_in_which_they_stand(folder: Path):
    pixels = np.full((32, 72), 230, dtype=np.uint8)
    for letter, column in zip("bca", (10, 22, 34), strict=True):
        pixels[ROWS[letter], column : column + 7] = 20
    Image.fromarray(pixels).save(folder / "one.png")
    (caption,) = load(folder / "m", kind=Captioner).caption([folder / "one.png"], attention=True)
    _, _, heading, names, *rows = caption_text(caption).split("\n")
    assert (heading, names.split()) == (
        "The region with most weight, of 1 x 18 regions:",
        ["weight", "row", "column", "character"],
    )
    columns, letters = zip(*(row.split()[2:] for row in rows), strict=True)
    assert letters == ("b", "c", "a")
    assert [*columns] == sorted(columns, key=int)
    assert caption.attention is not None
    centres = caption.attention[:3] @ (4.0 * np.arange(18) + 2.0)
    np.testing.assert_allclose(centres, (13.5, 25.5, 37.5), atol=4.0)
