"""Images of a batch as arrays."""

import numpy as np
import pytest

from heedful.data.images import ImageConfig
from heedful.engines.images import FeatureArrays, PixelArrays, image_arrays, image_draw
from heedful.errors import ShapeError

FEATURES = FeatureArrays([np.full((length, 2), length, dtype=np.float32) for length in (3, 1, 2)])
PIXELS = PixelArrays(np.arange(2 * 3 * 8 * 4, dtype=np.uint8).reshape(2, 3, 8, 4), (4, 4))


def test_features_are_padded_no_wider_than_needed():
    arrays = FEATURES.named_arrays()
    assert [*arrays] == ["features", "num_regions"]
    assert arrays["features"].shape == (3, 3, 2)
    assert not arrays["features"][1, 1:].any()
    assert FEATURES.take((1, 2)).named_arrays()["features"].shape == (2, 2, 2)
    assert FEATURES.widened(5).named_arrays()["features"].shape == (3, 5, 2)
    assert FEATURES.with_fillers([4]).num_positions.tolist() == [3, 1, 2, 4]


def test_pictures_have_the_regions_of_their_sides():
    assert PIXELS.num_positions.tolist() == [2, 2]
    assert np.array_equal(PIXELS.take([1]).named_arrays()["pixels"], PIXELS.pixels[1:])
    assert PIXELS.with_fillers([1]).num_positions.tolist() == [2, 2, 2]
    assert PIXELS.widened(2) is PIXELS
    columns = PixelArrays(PIXELS.pixels, (8, 1))
    assert columns.take([1]).with_fillers([1]).num_positions.tolist() == [4, 4]


def test_other_shapes_are_refused():
    with pytest.raises(ShapeError, match="a multiple of 3 rows and of 4 columns"):
        PixelArrays(PIXELS.pixels, (3, 4))
    with pytest.raises(ShapeError, match="cannot be padded"):
        PIXELS.widened(3)
    for array in (np.zeros(3), np.zeros((0, 2)), np.zeros((1, 5))):
        with pytest.raises(ShapeError, match="region, feature"):
            FeatureArrays([np.zeros((1, 2), dtype=np.float32), array.astype(np.float32)])


def test_no_images_are_a_batch_too():
    config = ImageConfig(height=8, width=4, region_size=4)
    assert len(image_arrays([], config)) == 0
    assert image_arrays([], config).width == 0


def test_drawn_features_have_the_numbers_of_regions_asked_for():
    draw = image_draw(ImageConfig(kind="features", num_features=3))
    drawn = draw(np.array([2, 5]), np.random.default_rng(0))
    assert drawn.named_arrays()["features"].shape == (2, 5, 3)
