"""Images with attention over them."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from heedful.inspection.picture_plot import save_attention_over_image

pytest.importorskip("matplotlib")


def shape_of_ink(path: Path) -> float:
    """Width of what is dark, in heights of it."""
    dark = np.asarray(Image.open(path).convert("L")) < 60
    rows, columns = np.flatnonzero(dark.any(axis=1)), np.flatnonzero(dark.any(axis=0))
    return float((columns[-1] - columns[0] + 1) / (rows[-1] - rows[0] + 1))


@pytest.mark.parametrize(("grid", "region"), [((1, 24), (32, 4)), ((2, 6), (8, 8)), ((2, 6), (1, 1))])
def test_the_image_keeps_its_shape_whatever_its_regions(grid: tuple[int, int], region: tuple[int, int], tmp_path: Path):
    Image.new("L", (96, 32), 0).save(tmp_path / "a.png")
    weights = np.zeros((0, grid[0] * grid[1]))  # the image alone
    save_attention_over_image(tmp_path / "b.png", str(tmp_path / "a.png"), [], weights, grid, region)
    assert shape_of_ink(tmp_path / "b.png") == pytest.approx(3.0, rel=0.05)
