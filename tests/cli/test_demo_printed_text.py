"""`heedful demo --task printed-text`, with a training too short to learn anything, and its pictures."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heedful.cli import demo_printed_text
from heedful.synthetic.printed_text import (
    HEIGHT,
    NEW_WORDS,
    NUM_DIGITS,
    WIDTH,
    WORDS,
    PrintedText,
    generate_printed_texts,
)
from tests.cli.command import heedful
from tests.tasks.scenes import SETTINGS

pytest.importorskip("matplotlib")


def test_pictures_are_a_function_of_seed_split_and_index():
    first, again = ([*generate_printed_texts(30, seed=3)] for _ in range(2))
    assert [each.text for each in first] == [each.text for each in again]
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one.pixels, other.pixels)
    others = [*generate_printed_texts(30, seed=3, split="test")]
    assert not any(np.array_equal(one.pixels, other.pixels) for one, other in zip(first, others, strict=True))


def test_pictures_show_digits_and_words():
    texts = [*generate_printed_texts(60, seed=1)]
    assert {each.pixels.shape for each in texts} == {(HEIGHT, WIDTH)}
    digits = [each.text for each in texts if each.text.isdigit()]
    assert 15 < len(digits) < 45
    assert {len(text) for text in digits} == {NUM_DIGITS}
    assert {each.text for each in texts if not each.text.isdigit()} <= {*WORDS}
    assert all(each.text.isdigit() for each in generate_printed_texts(20, seed=1, word_share=0.0))
    # Ink is darker than paper, and a text is no blank picture.
    assert all(each.pixels.min() < each.pixels.mean() - 40 for each in texts)


def share_in_boxes(pictures: list[PrintedText]) -> float:
    """Share of the darkest pixels, nearly all of which are of letters, that is in boxes."""
    inside = total = 0
    for each in pictures:
        in_boxes = np.zeros((HEIGHT, WIDTH), dtype=bool)
        for box in each.boxes.values():
            in_boxes[box.top : box.bottom, box.left : box.right] = True
        lightest, darkest = np.median(each.pixels), np.percentile(each.pixels, 2)
        dark = each.pixels < darkest + 0.3 * (lightest - darkest)
        inside, total = inside + int((dark & in_boxes).sum()), total + int(dark.sum())
    return inside / total


def test_boxes_are_around_characters_in_their_order():
    pictures = [*generate_printed_texts(150, seed=1)]
    for each in pictures:
        assert [*each.boxes] == [*range(len(each.text))]
        left = [box.left for box in each.boxes.values()]
        assert left == sorted(left)
        assert all(0 <= b.left < b.right <= WIDTH and 0 <= b.top < b.bottom <= HEIGHT for b in each.boxes.values())
    assert share_in_boxes(pictures) > 0.93
    # Small boxes, which the comparison would see beside their letters.
    areas = [sum((b.right - b.left) * (b.bottom - b.top) for b in each.boxes.values()) for each in pictures]
    assert np.mean(areas) < 0.4 * WIDTH * HEIGHT
    moved = [
        replace(each, boxes={i: b._replace(top=max(0, b.top - 3), bottom=b.bottom - 3) for i, b in each.boxes.items()})
        for each in pictures
    ]
    assert share_in_boxes(moved) < 0.9


def test_some_words_are_left_for_other_splits():
    words = {
        split: {each.text for each in generate_printed_texts(400, seed=1, word_share=1.0, split=split)}
        for split in ("train", "test")
    }
    assert not words["train"] & {*NEW_WORDS}
    assert words["test"] & {*NEW_WORDS}
    assert all(3 <= len(word) <= 8 and word.isalpha() and word.islower() for word in WORDS)
    assert len({*WORDS}) == len(WORDS)


def test_the_demonstration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(demo_printed_text, "NUM_PICTURES", 40)
    monkeypatch.setattr(demo_printed_text, "NUM_VALIDATION", 10)
    monkeypatch.setattr(demo_printed_text, "NUM_HELD_OUT", 20)
    monkeypatch.setattr(demo_printed_text, "SETTINGS", (*SETTINGS, "training.max_steps=2"))
    monkeypatch.chdir(tmp_path)
    done = heedful("demo", "--task", "printed-text")
    assert done.code == 0, done.err
    assert "% of 20 other pictures are read exactly" in done.out
    assert Path("printed-attention.png").read_bytes().startswith(b"\x89PNG")
    assert "next:  heedful caption printed.model printed.model/run/test/1.png" in done.out
