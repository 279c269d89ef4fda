"""Figures of texts: a line for each sentence, long ones on several, darker grounds for larger weights."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from heedful.errors import ResourceError
from heedful.inspection.text_plot import save_weighted_text

SENTENCES = [[("The", 0.0), (" room", 0.1), (".", 0.0)], [("Dirty", 0.7), (" ", 0.0), ("beds", 0.2), ("", 0.0)]]


def pixels(path: Path) -> NDArray[np.float64]:
    from matplotlib.image import imread

    return np.asarray(imread(path))[..., :3]


def test_each_sentence_has_lines_of_its_own(tmp_path: Path):
    heights = []
    for number, sentences in enumerate((SENTENCES[:1], SENTENCES, [*SENTENCES, [(" word", 0.0)] * 80])):
        assert save_weighted_text(tmp_path / f"{number}.png", sentences, "label: bad") == ""
        heights.append(len(pixels(tmp_path / f"{number}.png")))
    line = heights[1] - heights[0]
    assert line == pytest.approx(60, abs=2)  # 0.3 inches at 200 dots each
    assert heights[2] - heights[1] >= 3 * line


def test_the_largest_weight_has_the_darkest_ground(tmp_path: Path):
    save_weighted_text(tmp_path / "text.png", SENTENCES)
    image = pixels(tmp_path / "text.png")
    dark_blue = (image[..., 2] > image[..., 0] + 0.3) & (image[..., 0] < 0.2)
    rows = np.flatnonzero(dark_blue.any(axis=1))
    assert rows.min() > len(image) / 2  # the second sentence
    orange = image[..., 0] > image[..., 2] + 0.3
    assert orange.any()


def test_a_text_without_words_and_one_that_is_no_markup(tmp_path: Path):
    assert save_weighted_text(tmp_path / "empty.png", []) == ""
    assert save_weighted_text(tmp_path / "money.svg", [[("$x^", 0.5), (" <b>$", 0.5)]]) == ""


def test_a_folder_that_is_missing_is_one_line(tmp_path: Path):
    with pytest.raises(ResourceError, match="not written"):
        save_weighted_text(tmp_path / "none" / "text.png", SENTENCES)
