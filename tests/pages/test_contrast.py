"""Colours of the page: a word on the strongest shade of its weight stays legible, light and dark."""

import re

import pytest

from heedful.pages.bundle import page_files

LEAST = 4.5
"""Contrast of small text, Web Content Accessibility Guidelines 2.2, level AA."""
LEAST_OF_DRAWINGS = 3
"""The same of lines that say something."""
STRONGEST = 0.6
"""Part of the shade in the colour behind the word of the largest weight, as in shares.js."""


def themes() -> list[dict[str, str]]:
    css = page_files()["app.css"].decode()
    return [dict(re.findall(r"--([\w-]+): (#\w{6})", rule)) for rule in css.split(":root")[1:3]]


def channels(colour: str) -> list[float]:
    return [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]


def luminance(rgb: list[float]) -> float:
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in rgb]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(ink: str, shade: str, ground: str, part: float = STRONGEST) -> float:
    mixed = [part * one + (1 - part) * other for one, other in zip(channels(shade), channels(ground), strict=True)]
    dark, light = sorted((luminance(channels(ink)), luminance(mixed)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", themes(), ids=["light", "dark"])
def test_a_word_on_its_shade_is_legible(theme: dict[str, str]):
    for shade in ("accent-shade", "against-shade"):
        assert contrast(theme["ink"], theme[shade], theme["raised"]) >= LEAST


@pytest.mark.parametrize("theme", themes(), ids=["light", "dark"])
def test_drawings_stand_out_from_their_card(theme: dict[str, str]):
    """Cells of no weight, and edges of a beam tree."""
    css = page_files()["app.css"].decode()
    (part,) = re.findall(r"\.edge \{ fill: none; stroke: var\(--faint\); stroke-opacity: ([.\d]+);", css)
    assert contrast(theme["raised"], theme["faint"], theme["raised"], float(part)) >= LEAST_OF_DRAWINGS
    assert theme["ground"] != theme["raised"]


def test_the_measure_refuses_a_shade_that_is_too_light():
    (_, dark) = themes()
    assert contrast(dark["ink"], dark["accent"], dark["raised"]) < LEAST
