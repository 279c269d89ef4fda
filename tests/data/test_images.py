"""Reading of images."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from heedful.data.images import ImageConfig, inside, look_at, read_image
from heedful.errors import DataError

SMALL = ImageConfig(height=8, width=8, region_size=4)
GREY = ImageConfig(height=8, width=8, region_size=4, channels=1)
FEATURES = ImageConfig(kind="features", num_features=3)


def save(path: Path, picture: Image.Image, **options: object) -> Path:
    picture.save(path, **options)  # type: ignore[arg-type]
    return path


def test_pixels_of_the_right_size_are_unchanged(tmp_path: Path):
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    path = save(tmp_path / "a.png", Image.fromarray(pixels))
    assert np.array_equal(read_image(path, SMALL)[0], pixels.transpose(2, 0, 1))
    assert read_image(path, GREY).shape == (1, 1, 8, 8)


def test_a_wide_picture_is_scaled_without_distortion_and_centred_on_its_border(tmp_path: Path):
    pixels = np.full((8, 32, 3), 200, dtype=np.uint8)
    pixels[2:6, 8:24] = 0
    shown = read_image(save(tmp_path / "a.png", Image.fromarray(pixels)), SMALL)[0, 0]
    assert (shown[0] == 200).all()
    assert (shown[-1] == 200).all()
    assert (shown[3:5, 3:5] < 110).all()


def test_transparent_pixels_are_white_and_sixteen_bits_are_scaled(tmp_path: Path):
    clear = save(tmp_path / "clear.png", Image.new("RGBA", (8, 8), (0, 0, 0, 0)))
    assert (read_image(clear, SMALL) == 255).all()
    deep = save(tmp_path / "deep.png", Image.fromarray(np.full((8, 8), 65535 // 2, dtype=np.uint16)))
    assert (abs(read_image(deep, GREY).astype(int) - 127) <= 1).all()
    palette = Image.new("P", (8, 8), 1)
    palette.putpalette([0, 0, 0, 10, 20, 30])
    assert read_image(save(tmp_path / "palette.png", palette), SMALL)[0, :, 0, 0].tolist() == [10, 20, 30]


def test_of_an_animation_the_first_frame_counts(tmp_path: Path):
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue", "green")]
    for name in ("a.gif", "a.png"):
        path = save(tmp_path / name, frames[0], save_all=True, append_images=frames[1:])
        assert read_image(path, SMALL)[0, :, 4, 4].tolist() == [255, 0, 0]


def test_a_photograph_is_turned_upright(tmp_path: Path):
    pixels = np.zeros((8, 8, 3), dtype=np.uint8)
    pixels[:4] = 255
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    path = save(tmp_path / "a.png", Image.fromarray(pixels), exif=exif)
    assert (read_image(path, GREY)[0, 0, 4:] > 200).all()


def test_jpeg_and_features_are_read(tmp_path: Path):
    path = save(tmp_path / "a.jpg", Image.new("RGB", (16, 16), (100, 100, 100)))
    assert (abs(read_image(path, SMALL).astype(int) - 100) < 4).all()
    np.save(tmp_path / "a.npy", np.arange(6).reshape(2, 3))
    features = read_image(tmp_path / "a.npy", FEATURES)
    assert (features.dtype, features.tolist()) == (np.float32, [[0, 1, 2], [3, 4, 5]])
    assert look_at(tmp_path / "a.npy", "x:1") == {"kind": "features", "num_features": 3}
    assert look_at(path, "x:1") == {"kind": "pixels", "height": 16, "width": 16, "channels": 3}


@pytest.mark.parametrize(
    ("array", "complaint"),
    [
        (np.zeros((2, 4)), "4 features per region, not 3"),
        (np.zeros(3), "expected numbers"),
        (np.zeros((0, 3)), "expected numbers"),
        (np.zeros((2, 3), dtype="U1"), "expected numbers"),
        (np.full((2, 3), np.nan), "not finite"),
        (np.full((2, 3), 1e300), "not finite"),
        (np.zeros((10_001, 3), dtype=np.uint8), "10,001 regions"),
        (np.array([[{}, {}, {}]], dtype=object), "no array of numbers"),
    ],
)
def test_features_that_cannot_be_used_are_refused_in_a_line(array: np.ndarray, complaint: str, tmp_path: Path):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(DataError, match=complaint) as caught:
        read_image(tmp_path / "a.npy", FEATURES, "rows.tsv:7")
    assert str(caught.value).startswith(f"rows.tsv:7: {tmp_path / 'a.npy'}: ")
    assert "\n" not in str(caught.value)


def test_a_file_that_claims_more_features_than_it_has_is_refused(tmp_path: Path):
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((2, 3)))
    path.write_bytes(path.read_bytes().replace(b"(2, 3)", b"(2000000000, 3)")[:100])
    with pytest.raises(DataError, match="no array of numbers"):
        read_image(path, FEATURES)


def test_every_cut_of_a_picture_is_read_or_refused(tmp_path: Path):
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    for suffix in ("png", "jpg", "gif", "bmp", "webp", "tiff"):
        whole = save(tmp_path / f"a.{suffix}", Image.fromarray(pixels)).read_bytes()
        path = tmp_path / f"cut.{suffix}"
        complaints: list[str] = []
        for length in range(0, len(whole), max(1, len(whole) // 30)):
            path.write_bytes(whole[:length])
            try:
                read_image(path, SMALL)
            except DataError as error:
                complaints.append(str(error))
        assert len(complaints) > 20, suffix
        assert "\n" not in "".join(complaints)


@pytest.mark.parametrize("name", ["../a.png", "/etc/passwd", "", " ", "x/../../a.png", ".", "a\0b.png"])
def test_paths_out_of_the_folder_are_refused(name: str, tmp_path: Path):
    with pytest.raises(DataError, match=r"rows\.tsv:3: .* no path inside"):
        inside(tmp_path, name, "rows.tsv:3")


def test_paths_within_the_folder_are_found(tmp_path: Path):
    assert inside(tmp_path, "x/../b.png", "") == tmp_path / "b.png"
    assert inside(tmp_path, str(tmp_path / "c.png"), "") == tmp_path / "c.png"


def test_sides_that_regions_do_not_divide_are_refused():
    with pytest.raises(ValidationError, match="multiples of 8"):
        ImageConfig(height=20)
    with pytest.raises(ValidationError, match="no power of two"):
        ImageConfig(height=30, width=30, region_size=3)
    with pytest.raises(ValidationError, match="region_height 12 is no power of two"):
        ImageConfig(height=24, region_height=12)
    with pytest.raises(ValidationError, match="height 24 and width 64 must be multiples of 16 and 8"):
        ImageConfig(height=24, region_height=16)
    with pytest.raises(ValidationError, match="must be multiples of 16 and 8"):
        ImageConfig(height=16, width=20, region_height=16)


def test_regions_may_be_columns_of_the_picture():
    config = ImageConfig(height=32, width=24, channels=1, region_size=4, region_height=32)
    assert (config.region, config.grid, config.sizes) == ((32, 4), (1, 6), (1, 32, 4, 6))
    square = ImageConfig(height=32, width=24, region_size=8)
    assert (square.region, square.grid, square.sizes) == ((8, 8), (4, 3), (3, 8, 8, 12))
    features = ImageConfig(kind="features", num_features=7, region_height=32, height=32)
    assert features.sizes == (7, 0, 0, 0)


@pytest.mark.parametrize(("mode", "clear"), [("L", 0), ("RGB", (0, 0, 0))])
def test_a_transparent_colour_is_white(mode: str, clear: object, tmp_path: Path):
    picture = Image.new(mode, (8, 8), clear)
    picture.save(tmp_path / "a.png", transparency=clear)
    for channels in (1, 3):
        config = ImageConfig(height=8, width=8, channels=channels)
        assert (read_image(tmp_path / "a.png", config) == 255).all()
