import math
import re
from itertools import pairwise

import pytest

from heedful.pages.bundle import page_files
from heedful.pages.chart import Series, chart, number, ticks
from tests.pages.browser import chromium, needs_chromium
from tests.pages.read import Read

RANGES = [(0.0, 1.0), (0.0, 4380.0), (1.2, 5.1), (-3.0, 7.0), (5.0, 5.0), (0.0, 0.0), (2e-7, 3e-4)]


@needs_chromium
def test_the_live_page_has_the_same_ticks():
    text = page_files()["numbers.js"].decode().replace("export ", "")
    with chromium() as browser:
        page = browser.new_page()
        page.evaluate(f"(() => {{ {text}; Object.assign(window, {{ ticks }}); }})()")
        for low, high in RANGES:
            assert page.evaluate(f"ticks({low}, {high})") == pytest.approx(ticks(low, high), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_ticks_enclose_the_range_in_round_equal_steps(low: float, high: float):
    found = ticks(low, high)
    assert found[0] <= low
    assert found[-1] >= high
    widths = [after - before for before, after in pairwise(found)]
    assert 2 <= len(found) <= 7
    assert max(widths) == pytest.approx(min(widths))
    mantissa = float(f"{widths[0]:.6e}".partition("e")[0])
    assert mantissa in (1.0, 2.0, 2.5, 5.0)


def circles(page: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', page)]


def test_larger_values_stand_higher_and_later_ones_further_right():
    page = chart("t", [Series("", [(10, 1.0), (20, 3.0), (40, 2.0)])])
    (x1, y1), (x2, y2), (x3, y3) = circles(page)
    assert y2 < y3 < y1
    assert x3 - x2 == pytest.approx(2 * (x2 - x1), abs=0.2)
    assert "step 20: 3" in page


def test_gaps_are_not_drawn_over():
    page = chart("t", [Series("", [(1, 1.0), (2, math.nan), (3, 2.0), (4, 2.0)])])
    assert len(circles(page)) == 3
    curve = re.search(r'<path d="([^"]+)" fill="none"', page)
    assert curve is not None
    assert re.findall("[ML]", curve[1]) == ["M", "M", "L"]


def test_marks_and_names():
    page = chart("<t>", [Series("a", [(1, 1.0), (8, 2.0)]), Series("b&", [(1, 2.0)])], best_step=8, breaks=[3, 5])
    read = Read(page)
    assert "kept: step 8" in read.text
    assert read.text.count("resumed at step") == 2
    assert "●\u00a0b&" in read.text
    assert "<t>" in read.text
    assert ("aria-label", "<t>: a; b&, over steps") in read.attributes


def test_nothing_to_draw():
    assert chart("t", [Series("", [(1, math.nan)])]) == ""


def test_an_axis_from_zero():
    points = [Series("", [(1, 90.0), (2, 95.0)])]
    assert ">0</text>" in chart("t", points, from_zero=True)
    assert ">90</text>" in chart("t", points)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (12000.0, "12,000"), (100.0, "100"), (0.1, "0.1"), (-2.5, "-2.5"), (0.00025, "2.5e-04")],
)
def test_numbers_are_short(value: float, text: str):
    assert number(value) == text
