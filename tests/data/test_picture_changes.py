"""Random changes of training pictures."""

from pathlib import Path

import numpy as np
import pytest

from heedful.data import picture_changes
from heedful.data.captioned import CaptionSampler, StoredImages, write_images
from heedful.data.picture_changes import change_pictures
from tests.data.test_captioned import CORPUS, PIXELS
from tests.tasks.scenes import write_scenes

LIMITS = {"MOST_SHIFT": 0.0, "MOST_TURN": 0.0, "MOST_SLANT": 0.0, "MOST_STRETCH": 0.0, "MOST_LIGHT": 0.0}
STILL = {**LIMITS, "MOST_NOISE": 0.0, "CONTRAST": (1.0, 1.0)}


def still(monkeypatch: pytest.MonkeyPatch, **others: float) -> None:
    for name, value in {**STILL, **others}.items():
        monkeypatch.setattr(picture_changes, name, value)


def pictures(number: int = 3) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (number, 3, 20, 30), dtype=np.uint8)


def test_without_any_change_a_picture_stays_as_it_is(monkeypatch: pytest.MonkeyPatch):
    still(monkeypatch)
    assert np.array_equal(change_pictures(pictures(), 1.0, np.random.default_rng(1)), pictures())
    assert np.array_equal(change_pictures(pictures(40), 0.5, np.random.default_rng(1)), pictures(40))


def test_a_shift_moves_a_picture_as_a_whole_and_continues_its_edge(monkeypatch: pytest.MonkeyPatch):
    still(monkeypatch, MOST_SHIFT=0.2)

    class Fixed:
        def uniform(self, low: float, high: float, size: object) -> np.ndarray:
            return np.full(size, high)

        def random(self, number: int) -> np.ndarray:
            return np.zeros(number)

        def standard_normal(self, shape: tuple[int, ...], dtype: type) -> np.ndarray:
            return np.zeros(shape, dtype)

    before = pictures()
    after = change_pictures(before, 1.0, Fixed())  # 4 rows down, 6 columns to the right
    assert np.array_equal(after[:, :, :-4, :-6], before[:, :, 4:, 6:])
    assert (after[:, :, -1, :-6] == before[:, :, -1, 6:]).all()


@pytest.mark.parametrize(
    ("name", "moves"), [("MOST_TURN", True), ("MOST_SLANT", True), ("MOST_STRETCH", True), ("MOST_LIGHT", False)]
)
def test_each_change_is_within_its_limit(monkeypatch: pytest.MonkeyPatch, name: str, moves: bool):
    limit = getattr(picture_changes, name)
    still(monkeypatch, **{name: limit})
    paper = np.full((40, 1, 41, 61), 200, dtype=np.uint8)
    paper[:, :, 18:23, 28:33] = 100
    after = change_pictures(paper, 1.0, np.random.default_rng(1)).astype(int)
    assert (after != paper).any()
    if moves:  # the square in the middle stays where it is
        assert abs(after[:, :, 20, 30] - 100).max() <= 1
        assert abs(after[:, :, :10] - 200).max() <= 1
    else:
        assert abs(after - paper).max() <= limit


def test_a_share_is_changed_and_equal_numbers_change_alike():
    many = pictures(400)
    one, same, other = (change_pictures(many, 0.25, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    changed = (one != many).any(axis=(1, 2, 3)).mean()
    assert 0.15 < changed < 0.35
    assert change_pictures(many, 0.0, np.random.default_rng(1)) is many


def test_a_resumed_training_sees_the_same_pictures(tmp_path: Path):
    write_scenes(tmp_path / "scenes.tsv", 4, kind="png")
    write_images(tmp_path, ((path, "x:1") for path in sorted((tmp_path / "scenes").iterdir())), PIXELS)
    images = StoredImages(tmp_path, PIXELS)

    def seen(start: int, number: int) -> list[bytes]:
        sampler = CaptionSampler(images, CORPUS, 4, seed=1, changed_share=1.0)
        batches = iter(sampler)
        drawn = [next(batches) for _ in range(start)]
        resumed = CaptionSampler(images, CORPUS, 4, seed=1, changed_share=1.0)
        resumed.position = sampler.position
        drawn = [each for each, _ in zip(resumed, range(number), strict=False)]
        return [each.images[0].tobytes() for each in drawn]

    assert seen(0, 9)[4:] == seen(4, 5)
    num_batches = CaptionSampler(images, CORPUS, 4, seed=1).num_batches(0)
    assert set(seen(0, num_batches)).isdisjoint(seen(num_batches, num_batches))
