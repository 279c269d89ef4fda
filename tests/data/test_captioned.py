"""Stored images, and batches of images with captions."""

from pathlib import Path

import numpy as np
import pytest

from heedful.data.captioned import CaptionSampler, StoredImages, captions_by_length, make_caption_batch, write_images
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.images import ImageConfig, read_image
from heedful.errors import FileRefused
from tests.tasks.scenes import write_scenes

PIXELS = ImageConfig(height=16, width=16, region_size=8)
FEATURES = ImageConfig(kind="features", num_features=7)
CORPUS = EncodedCorpus(
    EncodedSide.of([[index] for index in (0, 1, 1, 3, 2)]),
    EncodedSide.of([[5, 3], [6, 7, 3], [8, 3], [4, 4, 4, 3], [3]]),
)


@pytest.fixture(params=["png", "npy"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[StoredImages, list[Path]]:
    write_scenes(tmp_path / "scenes.tsv", 4, kind=request.param)
    paths = sorted((tmp_path / "scenes").iterdir())
    config = PIXELS if request.param == "png" else FEATURES
    (tmp_path / "data").mkdir()
    assert write_images(tmp_path / "data", ((path, "x:1") for path in paths), config) == [True] * 4
    return StoredImages(tmp_path / "data", config), paths


def test_what_is_stored_is_what_was_read(stored: tuple[StoredImages, list[Path]]):
    images, paths = stored
    assert len(images) == 4
    for path, image in zip((paths[2], paths[0]), images.take([2, 0]), strict=True):
        assert np.array_equal(image, read_image(path, images.config))


def test_a_batch_has_the_images_of_its_captions(stored: tuple[StoredImages, list[Path]]):
    images, _ = stored
    batch = make_caption_batch(images, CORPUS, np.array([3, 1, 0]))
    assert batch.target_out.tolist() == [[4, 4, 4, 3], [6, 7, 3, 0], [5, 3, 0, 0]]
    assert batch.target_in.tolist() == [[2, 4, 4, 4], [2, 6, 7, 0], [2, 5, 0, 0]]
    assert (len(batch), batch.num_units) == (3, 9)
    for row, number in enumerate((3, 1, 0)):
        (wanted,) = images.take([number])
        shown = batch.images[0][row]
        assert np.array_equal(shown if images.config.kind == "features" else shown[None], wanted)
    part = batch.rows(slice(1, 3))
    assert part.target_out.tolist() == [[6, 7, 3], [5, 3, 0]]
    assert all(np.array_equal(one, other[1:3]) for one, other in zip(part.images, batch.images, strict=True))


def test_an_epoch_has_every_caption_once_and_goes_on_from_any_position(stored: tuple[StoredImages, list[Path]]):
    images, _ = stored
    sampler = CaptionSampler(images, CORPUS, 4, seed=1)
    number = sampler.num_batches(0)
    batches = [batch for batch, _ in zip(sampler, range(number), strict=False)]
    rows = sorted(row.tolist() for batch in batches for row in (ids[ids > 0] for ids in batch.target_out))
    assert rows == sorted(ids.tolist() for ids in (CORPUS.target[index] for index in range(5)))
    later = CaptionSampler(images, CORPUS, 4, seed=1)
    later.position = sampler.position._replace(epoch=0, batch=1)
    assert np.array_equal(next(iter(later)).target_out, batches[1].target_out)
    assert sum(len(batch) for batch in captions_by_length(images, CORPUS, 2)) == 5


def test_other_sizes_and_damage_are_refused(stored: tuple[StoredImages, list[Path]], tmp_path: Path):
    images, _ = stored
    folder = tmp_path / "data"
    others = ImageConfig(height=8, width=16, region_size=8)
    with pytest.raises(FileRefused, match="prepare the data again"):
        StoredImages(folder, others if images.config.kind == "pixels" else ImageConfig(kind="features"))
    for name in ("images.data", "images.offsets"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(FileRefused):
            StoredImages(folder, images.config)
        (folder / name).write_bytes(content)
    StoredImages(folder, images.config)
