"""Pictures scaled band by band, held to the whole picture, made narrow and then short."""

import io
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image, ImageOps

from heedful.data import scaled_pictures
from heedful.data.images import check_picture
from heedful.data.scaled_pictures import fit, fitted
from heedful.errors import DataError

SIZES = [(1, 1), (5, 3), (30, 41), (133, 57), (64, 8)]
LIMITS = 24_000_000, 52_000_000
MEASURED = """
import io, sys
from pathlib import Path
from PIL import Image
from heedful.data.images import ImageConfig, read_picture
mode, kind = sys.argv[1:]
def peak():  # unlike that of getrusage not that of the process which started this one
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
content = sys.stdin.buffer.read()
small = io.BytesIO()
Image.new(mode, (20, 20)).save(small, kind)
read_picture(small.getvalue(), ImageConfig())
before = peak()
read_picture(content, ImageConfig())
print((peak() - before) / 1024)
"""
"""Prints the megabytes that a picture takes beyond those of a small one."""


def whole(picture: Image.Image, width: int, height: int, mode: str) -> Image.Image:
    """Turn, convert and scale a picture as a whole."""
    upright = ImageOps.exif_transpose(picture)
    if upright.mode.startswith("I"):
        upright = Image.fromarray((np.asarray(upright) / 257).round().astype(np.uint8))
    elif "transparency" in picture.info or upright.mode in ("P", "LA", "RGBA"):
        coloured = upright.convert("RGBA")
        upright = Image.alpha_composite(Image.new("RGBA", coloured.size, "white"), coloured)
    upright = upright.convert(mode)
    values = np.asarray(upright)
    border = np.concatenate([values[0], values[-1], values[:, 0], values[:, -1]])
    colour = np.median(border.reshape(len(border), -1), axis=0).round().astype(int).tolist()
    size, corner = fit(upright.size, width, height)
    canvas = Image.new(mode, (width, height), tuple(colour) if mode == "RGB" else colour[0])
    is_smaller = width < upright.width or height < upright.height
    how = Image.Resampling.BOX if is_smaller else Image.Resampling.BILINEAR
    canvas.paste(upright.resize((size[0], upright.height), how).resize(size, how), corner)
    return canvas


def drawn(size: tuple[int, int], mode: str) -> Image.Image:
    values = np.random.default_rng(size).integers(0, 256, (size[1], size[0], 4), dtype=np.uint8)
    if mode == "I;16":
        return Image.fromarray(values[..., 0].astype(np.uint16) * 257)
    if mode == "RGB with a colour that is clear":
        picture = Image.fromarray(values[..., :3] // 64 * 64)
        picture.info["transparency"] = (0, 0, 0)
        return picture
    return Image.fromarray(values[..., :3]).quantize(16) if mode == "P" else Image.fromarray(values).convert(mode)


@pytest.mark.parametrize(
    "mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "RGB with a colour that is clear"]
)
def test_bands_are_the_whole_to_the_bit(mode: str, monkeypatch: pytest.MonkeyPatch):
    for band, size in [(300, each) for each in SIZES] + [(1 << 18, (133, 57))]:
        monkeypatch.setattr(scaled_pictures, "_BAND", band)
        for orientation in range(1, 9):
            picture = drawn(size, mode)
            picture.getexif()[0x0112] = orientation
            for width, height, colours in ((48, 16, "RGB"), (64, 64, "L")):
                expected = np.asarray(whole(picture, width, height, colours))
                assert np.array_equal(np.asarray(fitted(picture, width, height, colours)), expected), (
                    size,
                    orientation,
                )


def saved(size: tuple[int, int], mode: str, kind: str, **options: bool) -> bytes:
    stream = io.BytesIO()
    Image.new(mode, size).save(stream, kind, **options)
    return stream.getvalue()


LARGEST = [("RGBA", "PNG", {}, (4300, 3000)), ("RGB", "JPEG", {"progressive": True}, (2080, 2080))]


@pytest.mark.thorough
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no such figure there")
@pytest.mark.parametrize(("mode", "kind", "options", "size"), LARGEST)
def test_the_largest_picture_of_a_megabyte_takes_sixty_megabytes(
    mode: str, kind: str, options: dict[str, bool], size: tuple[int, int]
):
    content = saved(size, mode, kind, **options)
    check_picture(content, *LIMITS)
    command = [sys.executable, "-c", MEASURED, mode, kind]
    done = subprocess.run(command, input=content, capture_output=True, check=True)
    assert 10 < float(done.stdout) <= 60, "a picture that takes nothing was not measured"


@pytest.mark.parametrize(
    ("mode", "kind", "options", "size"),
    [
        ("L", "PNG", {}, (120, 110)),
        ("RGB", "JPEG", {}, (120, 110)),
        ("RGB", "JPEG", {"progressive": True}, (70, 65)),
        ("RGB", "WEBP", {"lossless": True}, (60, 55)),
    ],
)
def test_pictures_that_take_more_are_refused_undecoded(
    mode: str, kind: str, options: dict[str, bool], size: tuple[int, int]
):
    content = saved(size, mode, kind, **options)
    with pytest.raises(DataError, match="decoding takes 0 MB, and a file of this size may take 0; scale it down"):
        check_picture(content, 24_000_000, 52_000)
    check_picture(content + bytes(1_000_000), 24_000_000, 52_000)
    check_picture(saved((50, 60), mode, kind, **options), 24_000_000, 52_000)
