"""Scores by length as a picture: a panel for each system, the same axes, its own line and band."""

import re
from pathlib import Path

import numpy as np
import pytest

from heedful.errors import ResourceError, ShapeError
from heedful.inspection.length_plot import Curve, save_length_plot

RANGES = ("1-5", "6-9", "10-20")


def make_curve(name: str, *scores: float) -> Curve:
    return Curve(name, scores, tuple(s - 1.0 for s in scores), tuple(s + 1.0 for s in scores))


CURVES = [make_curve(f"row {place}", 10.0 + place, 12.0, 14.0 - place) for place in range(6)]


def test_every_panel_has_a_name_and_the_axes_are_said(tmp_path: Path):
    path = tmp_path / "plot.svg"
    save_length_plot(path, CURVES, RANGES, "row 2", "BLEU", "words")
    labels = re.findall(r"<!-- (.*?) -->", path.read_bytes().decode("utf-8"))
    assert [label for label in labels if label.startswith("row ")] == [curve.name for curve in CURVES]
    # Six panels in two rows: the lowest four of their columns are labelled.
    assert labels.count("1-5") == 4
    assert "BLEU" in labels
    assert any("source length in words" in label and "dashed: row 2" in label for label in labels)


def test_the_axis_says_what_was_measured(tmp_path: Path):
    save_length_plot(tmp_path / "plot.svg", CURVES, RANGES, "", "BLEU", "words", "reference")
    assert b"<!-- reference length in words;" in (tmp_path / "plot.svg").read_bytes()


def test_one_panel_needs_no_baseline(tmp_path: Path):
    path = tmp_path / "plot.svg"
    save_length_plot(path, [make_curve("$a$_b", 1.0)], ["1-5"], "", "BLEU", "words")
    text = path.read_bytes().decode("utf-8")
    assert "dashed" not in text
    assert "$a$_b" in text


def test_a_line_and_a_band_are_drawn_in_each_panel(tmp_path: Path):
    from matplotlib.image import imread

    def blue(curves: list[Curve]) -> int:
        save_length_plot(tmp_path / "plot.png", curves, RANGES, curves[0].name, "BLEU", "words")
        image = imread(tmp_path / "plot.png")
        return int((image[:, :, 2] - image[:, :, 0] > 0.05).sum())

    one = blue(CURVES[:1])
    assert one > 1000
    assert blue(CURVES[:4]) > 3 * one
    narrow = [Curve(c.name, c.scores, c.scores, c.scores) for c in CURVES[:1]]
    assert blue(narrow) < one / 2
    for half in (Curve(c.name, c.scores, c.scores, c.highs) for c in CURVES[:1]):
        assert one * 0.4 < blue([half]) < one * 0.85
    for half in (Curve(c.name, c.scores, c.lows, c.scores) for c in CURVES[:1]):
        assert one * 0.4 < blue([half]) < one * 0.85


def test_the_axis_begins_at_zero(tmp_path: Path):
    from matplotlib.image import imread

    save_length_plot(tmp_path / "high.png", [make_curve("a", 90.0, 90.0, 90.0)], RANGES, "", "BLEU", "words")
    image = imread(tmp_path / "high.png")
    rows = np.flatnonzero((image[:, :, 2] - image[:, :, 0] > 0.3).any(axis=1))
    assert rows.max() < image.shape[0] / 3  # 90 of 91 is near the top, not in the middle


@pytest.mark.parametrize(
    ("curves", "ranges"),
    [([], RANGES), ([make_curve("a")], ()), ([make_curve("a", 1.0)], RANGES), ([Curve("a", (1.0,), (), ())], ("1",))],
)
def test_what_does_not_fit_is_refused(curves: list[Curve], ranges: tuple[str, ...], tmp_path: Path):
    with pytest.raises(ShapeError, match="length plot"):
        save_length_plot(tmp_path / "plot.png", curves, ranges, "", "BLEU", "words")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path):
    with pytest.raises(ResourceError, match=r"no.plot\.png: not written"):
        save_length_plot(tmp_path / "no" / "plot.png", CURVES, RANGES, "", "BLEU", "words")
