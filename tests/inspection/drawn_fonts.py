"""Fonts made for a test: each character an empty square, so that no test depends on what a machine has installed."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen


def make_font(path: Path, family: str, characters: Iterable[str]) -> Path:
    """Write a TrueType font that can draw some characters."""
    names = {ord(character): f"u{ord(character):04X}" for character in characters}
    pen = TTGlyphPen(None)
    for place, point in enumerate(((0, 0), (0, 800), (800, 800), (800, 0))):
        (pen.lineTo if place else pen.moveTo)(point)
    pen.closePath()
    square = pen.glyph()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", *names.values()])
    builder.setupCharacterMap(names)
    builder.setupGlyf({name: square for name in (".notdef", *names.values())})
    builder.setupHorizontalMetrics({name: (900, 0) for name in (".notdef", *names.values())})
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2(usWeightClass=400)
    builder.setupPost()
    builder.save(path)
    return path


def install_only(monkeypatch: pytest.MonkeyPatch, *known: Path, since: Iterable[Path] = ()) -> None:
    """Let Matplotlib have its own fonts and those `known`, and find those `since` when it looks again."""
    from matplotlib import font_manager, get_data_path

    manager = font_manager.fontManager
    own = [entry for entry in manager.ttflist if entry.fname.startswith(get_data_path())]
    monkeypatch.setattr(manager, "ttflist", own)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(path) for path in since])
    for path in known:
        manager.addfont(path)
