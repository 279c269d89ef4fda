"""`heedful demo --task printed-text`, with a training too short to learn anything, and its pictures."""

from pathlib import Path

import numpy as np
import pytest

from heedful.cli import demo_printed_text
from heedful.synthetic.printed_text import HEIGHT, NUM_DIGITS, WIDTH, WORDS, generate_printed_texts
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
