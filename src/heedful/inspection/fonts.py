"""Fonts for pictures: installed fonts that draw the characters that Matplotlib's own font lacks."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from heedful.errors import MissingExtra

BASE_FAMILY: Final = "DejaVu Sans"  # ships with Matplotlib, so it is there everywhere
# Families that are legible at label size, simplified Chinese first; other installed fonts come after them.
PREFERRED: Final = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "SimHei",
    "Noto Sans CJK JP",
    "Noto Sans JP",
    "Yu Gothic",
    "Hiragino Sans",
    "Noto Sans CJK KR",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "Arial Unicode MS",
    "Droid Sans Fallback",
)
_REGULAR: Final = (400, "normal", "regular", "book")
_UNREADABLE: Final = (OSError, RuntimeError, ValueError, KeyError)  # exceptions from opening a damaged font
_NOTO_CJK: Final = "Noto Sans CJK (Debian and Ubuntu: fonts-noto-cjk, Fedora: google-noto-sans-cjk-fonts)"
_NOTO: Final = "Noto Sans for its script (Debian and Ubuntu: fonts-noto-core)"


@dataclass(frozen=True)
class Fonts:
    """Font families that together draw a text, and the characters that none of them has."""

    families: tuple[str, ...]
    """Families in the order in which a character is looked up."""
    missing: frozenset[str]
    """Characters that no installed font has."""

    @property
    def note(self) -> str:
        """Missing characters and the font to install for them; empty where nothing is missing."""
        if not self.missing:
            return ""
        first = min(self.missing)
        others = f" and {len(self.missing) - 1} other characters" if len(self.missing) > 1 else ""
        advice = _NOTO_CJK if unicodedata.east_asian_width(first) in "WF" else _NOTO
        return (
            f"no installed font can draw {first} (U+{ord(first):04X}){others}, so their tokens are numbered in the "
            f"picture; install one that can, such as {advice}, and draw again"
        )


def choose_fonts(text: Iterable[str]) -> Fonts:
    """Find installed fonts for every character of a text.

    Args:
        text: characters, or strings of them.

    Returns:
        Matplotlib's own font, followed by installed fonts for the characters that it lacks.

    Raises:
        MissingExtra: Matplotlib is not installed.
    """
    try:
        from matplotlib import font_manager
    except ModuleNotFoundError:
        raise MissingExtra("Matplotlib", "train", "drawing attention") from None

    families = [BASE_FAMILY]
    missing = {character for part in text for character in part if character.isprintable()}
    missing -= _covered(BASE_FAMILY, missing)
    if not missing:
        return Fonts((BASE_FAMILY,), frozenset())
    _take(_installed(), families, missing)
    if missing:
        # Matplotlib caches the list of fonts of its first run, which lacks fonts installed since then.
        known = {entry.fname for entry in font_manager.fontManager.ttflist}
        added: list[str] = []
        for path in sorted(set(font_manager.findSystemFonts()) - known):
            try:
                font_manager.fontManager.addfont(path)
            except _UNREADABLE:
                continue
            added.append(path)
        _take(_installed(frozenset(added)), families, missing)
    return Fonts(tuple(families), frozenset(missing))


def _take(names: list[str], families: list[str], missing: set[str]) -> None:
    """Add families until no character is missing: preferred ones first, then those with most of the missing ones."""
    for name in PREFERRED:
        if missing and name in names:
            _add(name, families, missing)
    others = [name for name in names if name not in PREFERRED]
    while missing and others:
        most = max(others, key=lambda name: len(_covered(name, missing)))
        if not _covered(most, missing):
            return
        others.remove(most)
        _add(most, families, missing)


def _add(name: str, families: list[str], missing: set[str]) -> None:
    if covered := _covered(name, missing):
        families.append(name)
        missing -= covered


def _installed(paths: frozenset[str] | None = None) -> list[str]:
    """Names of installed families with an upright regular face, limited to the files `paths` if given.

    Other fonts that ship with Matplotlib are left out: they are for formulas, or draw a box for every character.
    """
    from matplotlib import font_manager, get_data_path

    return sorted(
        {
            entry.name
            for entry in font_manager.fontManager.ttflist
            if (entry.weight in _REGULAR and entry.style == "normal") or entry.name in PREFERRED
            if not entry.fname.startswith(get_data_path()) and (paths is None or entry.fname in paths)
        }
    )


def _covered(name: str, characters: set[str]) -> set[str]:
    """Characters of a set that a family has outlines for."""
    from matplotlib import font_manager

    try:
        path: Any = font_manager.fontManager.findfont(
            font_manager.FontProperties(family=[name]), fallback_to_default=False
        )
        font = font_manager.get_font(path)
        if not font.scalable:  # bitmaps, such as coloured emoji, cannot be drawn at any size
            return set()
        return {character for character in characters if font.get_char_index(ord(character))}
    except _UNREADABLE:
        return set()
