"""Images dimmed by attention."""

import base64
import re

from heedful.pages.attention_image import ImageView

WEIGHTS = [[0.1, 0.2, 0.6, 0.0, 0.1, 0.0], [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]]


def test_a_panel_for_each_word_is_dark_where_it_did_not_look():
    drawn = ImageView("", b"picture", (2, 3), ["a", "<b>"], WEIGHTS).draw()
    assert drawn.count(f'href="data:image/png;base64,{base64.b64encode(b"picture").decode()}"') == 2
    assert re.findall("<figcaption>(.*?)</figcaption>", drawn) == ["a", "&lt;b&gt;"]
    panels = drawn.split("<figure>")[1:]
    for panel, weights in zip(panels, WEIGHTS, strict=True):
        cells = re.findall(r'<rect x="(\d)" y="(\d)".*?fill-opacity="([\d.]+)"', panel)
        assert [(int(x), int(y)) for x, y, _ in cells] == [(region % 3, region // 3) for region in range(6)]
        assert [float(dark) for *_, dark in cells] == [round(0.8 * (1 - each / max(weights)), 2) for each in weights]


def test_regions_that_are_no_squares_keep_the_shape_of_the_image():
    drawn = ImageView("", b"picture", (1, 6), ["a"], WEIGHTS[:1], (32, 4)).draw()
    assert '<svg viewBox="0 0 6 1" preserveAspectRatio="none" style="aspect-ratio:24/32" role="img"' in drawn
    assert "aspect-ratio" not in ImageView("", b"picture", (2, 3), ["a"], WEIGHTS[:1], (8, 8)).draw()


def test_nothing_is_drawn_without_words():
    assert ImageView("", b"", (1, 1), [], []).draw() == ""
