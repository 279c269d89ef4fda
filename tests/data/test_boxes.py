"""Boxes of the words of captions, and the regions of pictures that they cover."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from heedful.data.boxes import Box, BoxedCaptions, regions_of, store_boxes
from heedful.data.caption_files import CaptionFile
from heedful.data.corpus import Pair
from heedful.data.corpus_links import with_links
from heedful.data.encoded import ENCODED, EncodedCorpus, EncodedSide
from heedful.data.images import ImageConfig, look_at, read_image, upright_size
from heedful.errors import DataError
from heedful.text.tokenizer import TextConfig, Tokenizer
from heedful.text.tokenizer_training import train_tokenizer
from heedful.text.vocabulary import EOS

CONFIG = ImageConfig(height=32, width=48, region_size=8)
CAPTIONS = ("a red dog", "a blue house", "dogs", "two red houses")


@pytest.fixture
def words() -> Tokenizer:
    return train_tokenizer(CAPTIONS, "words", 0, TextConfig())


def slow_regions(box: Box, size: tuple[int, int], config: ImageConfig) -> list[int]:
    """Region by region: its centre in the pixels of the picture, which is scaled to fit and centred."""
    scale = min(config.width / size[0], config.height / size[1])
    left, top = (config.width - size[0] * scale) / 2, (config.height - size[1] * scale) / 2
    rows, columns = config.grid
    inside = {
        (row, column)
        for row, column in itertools.product(range(rows), range(columns))
        if box.left <= ((column + 0.5) * config.region_size - left) / scale <= box.right
        and box.top <= ((row + 0.5) * config.region_size - top) / scale <= box.bottom
    }
    middle = (box.left + box.right) / 2 * scale + left, (box.top + box.bottom) / 2 * scale + top
    at = min(columns - 1, int(middle[0] / config.region_size)), min(rows - 1, int(middle[1] / config.region_size))
    across = {column for _, column in inside} or {
        column
        for column in range(columns)
        if box.left <= ((column + 0.5) * config.region_size - left) / scale <= box.right
    }
    down = {row for row, _ in inside} or {
        row for row in range(rows) if box.top <= ((row + 0.5) * config.region_size - top) / scale <= box.bottom
    }
    return sorted(row * columns + column for row in down or {at[1]} for column in across or {at[0]})


@pytest.mark.parametrize("size", [(48, 32), (96, 64), (96, 96), (30, 90), (480, 320)])
def test_regions_of_boxes_are_those_with_their_centre_inside(size: tuple[int, int]):
    edges = [tuple(round(side * share, 3) for share in (0.0, 0.21, 0.5, 0.77, 1.0)) for side in size]
    spans = [[*itertools.combinations(axis, 2)] for axis in edges]
    for (left, right), (top, bottom) in itertools.product(*spans):
        box = Box(left, top, right, bottom)
        assert sorted(regions_of(box, size, CONFIG)) == slow_regions(box, size, CONFIG), box


def test_a_small_box_has_the_region_of_its_centre():
    assert regions_of(Box(0, 0, 1, 1), (48, 32), CONFIG) == [0]
    assert regions_of(Box(47, 31, 48, 32), (48, 32), CONFIG) == [23]
    assert regions_of(Box(17, 9, 18, 10), (48, 32), CONFIG) == [8]


def test_words_are_linked_however_the_caption_is_cut(words: Tokenizer, tmp_path: Path):
    path = tmp_path / "boxes.tsv"
    path.write_text("a.png\ta red dog\t1:0,0,8,8 2:0,0,8,8 2:40,24,48,32\n")
    for tokenizer in (
        words,
        train_tokenizer(CAPTIONS, "characters", 0, TextConfig()),
        train_tokenizer(CAPTIONS, "pieces", 290, TextConfig()),
    ):
        ids = tokenizer.encode("a red dog")
        pieces = tokenizer.pieces(ids)
        regions, tokens = BoxedCaptions(path, tokenizer).links(Pair("a.png", "a red dog", 1), ids, (48, 32), CONFIG)
        linked = {
            number: "".join(pieces[token] for region, token in zip(regions, tokens, strict=True) if region == number)
            for number in (0, 23)
        }
        bare = {number: text.replace("▁", "").replace(" ", "") for number, text in linked.items()}
        assert bare == {0: "reddog", 23: "dog"}


def test_links_are_stored_for_the_captions_of_the_data(words: Tokenizer, tmp_path: Path):
    for name in ("a", "b"):
        Image.new("RGB", (96, 64)).save(tmp_path / f"{name}.png")
    data = tmp_path / "data.tsv"
    data.write_text("a.png\ta red dog\nb.png\ta blue house\na.png\tdogs\n")
    boxes = tmp_path / "boxes.tsv"
    boxes.write_text("b.png\ta blue house\t2:0,0,16,16\na.png\ta red dog\t1:80,48,96,64\na.png\tother\t0:0,0,1,1\n")
    file = CaptionFile((data,), (1, 2))
    rows = [(pair, [*words.encode(pair.target), EOS]) for pair in file.pairs]
    line = store_boxes(boxes, file, rows, words, CONFIG, tmp_path / "links")
    assert line == f"{boxes}: boxes of 2 captions; those of 1 more are not trained on"
    corpus = EncodedCorpus(EncodedSide.of([[0], [1], [0]]), EncodedSide.of([ids for _, ids in rows]))
    links = with_links(corpus, tmp_path / "links", 24).links
    assert links is not None
    assert [(links.source[i].tolist(), links.target[i].tolist()) for i in range(3)] == [
        ([23], [1]),
        ([0], [2]),
        ([], []),
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("a.png\ta red dog", "2 columns"),
        ("a.png\ta red dog\tdog", "'dog' is no box"),
        ("a.png\ta red dog\t ", "no box; expected"),
        ("a.png\ta red dog\t0:0,0,8,8\t1:0,0,8,8", "4 columns; .* separated by spaces"),
        ("a.png\ta red dog\t0:1,2,3", "is no box"),
        ("a.png\ta red dog\t0:1,2,3,x", "is no box"),
        ("a.png\ta red dog\t3:0,0,1,1", "of no word of its 3"),
        ("a.png\ta red dog\t-1:0,0,1,1", "of no word of its 3"),
        ("a.png\ta red dog\t0:3,0,1,1", "expected 0 <= LEFT < RIGHT"),
        ("a.png\ta red dog\t0:nan,0,1,1", "expected 0 <= LEFT < RIGHT"),
        ("a.png\ta red dog\t0:0,0,inf,1", "expected 0 <= LEFT < RIGHT"),
        ("a.png\ta red dog\t0:-3,0,1,1", "expected 0 <= LEFT < RIGHT"),
        ("a.png\ta red dog\t0:0,0,97,1", "leads out of the picture of 96 x 64 pixels"),
        ("a.png\tred dog\t0:0,0,1,1", "none of its 1 caption is trained on"),
        ("", "none of its 0 captions"),
    ],
)
def test_other_lines_are_refused_by_their_place(line: str, problem: str, words: Tokenizer, tmp_path: Path):
    Image.new("RGB", (96, 64)).save(tmp_path / "a.png")
    data, boxes = tmp_path / "data.tsv", tmp_path / "boxes.tsv"
    data.write_text("a.png\ta red dog\n")
    boxes.write_text(f"\n{line}\n")
    file = CaptionFile((data,), (1, 2))
    rows = [(pair, [*words.encode(pair.target), EOS]) for pair in file.pairs]
    with pytest.raises(DataError, match=problem) as caught:
        store_boxes(boxes, file, rows, words, CONFIG, tmp_path / "links")
    assert str(caught.value).startswith(f"{boxes}:")
    assert not (tmp_path / "links" / ENCODED).is_file()


def test_captions_with_unknown_words_keep_their_own_boxes(words: Tokenizer, tmp_path: Path):
    path = tmp_path / "boxes.tsv"
    path.write_text("a.png\ta zebra\t1:0,0,8,8\na.png\ta camel\t1:40,24,48,32\n")
    boxed = BoxedCaptions(path, words)
    assert len(boxed) == 2
    for animal, region in (("zebra", 0), ("camel", 23)):
        pair = Pair("a.png", f"a {animal}", 1)
        assert boxed.links(pair, words.encode(pair.target), (48, 32), CONFIG) == ([region], [1])


def test_a_turned_photograph_has_the_size_that_is_seen(tmp_path: Path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (96, 64)).save(tmp_path / "a.jpg", exif=exif)
    Image.new("RGB", (96, 64)).save(tmp_path / "b.jpg")
    assert upright_size(tmp_path / "a.jpg", "x:1") == (64, 96)
    assert upright_size(tmp_path / "b.jpg", "x:1") == (96, 64)
    look = look_at(tmp_path / "a.jpg", "x:1")
    assert (look["height"], look["width"]) == (96, 64)
    Image.fromarray(np.full((64, 96), 40_000, dtype=np.uint16)).save(tmp_path / "c.png", exif=exif)
    upright = read_image(tmp_path / "c.png", ImageConfig(height=96, width=64, region_size=8, channels=1))
    assert upright_size(tmp_path / "c.png", "x:1") == (64, 96)
    assert upright.min() == upright.max()  # it fills its frame
