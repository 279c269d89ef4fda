"""Scripts (writing systems) of characters and texts, from a table of Unicode blocks."""

import re
from bisect import bisect_right
from collections import Counter
from functools import lru_cache
from typing import Any, Final

UNSPACED: Final = frozenset({"Han", "Kana", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"})
"""Scripts without spaces between words."""

# First and last code point and script of each block, sorted by first code point. Blocks also contain digits and signs;
# counting them as letters does no harm.
_BLOCKS: Final = (
    (0x0041, 0x005A, "Latin"),
    (0x0061, 0x007A, "Latin"),
    (0x00AA, 0x00AA, "Latin"),
    (0x00BA, 0x00BA, "Latin"),
    (0x00C0, 0x00D6, "Latin"),
    (0x00D8, 0x00F6, "Latin"),
    (0x00F8, 0x02AF, "Latin"),
    (0x0370, 0x03FF, "Greek"),
    (0x0400, 0x052F, "Cyrillic"),
    (0x0531, 0x058F, "Armenian"),
    (0x05D0, 0x05F4, "Hebrew"),
    (0x0620, 0x06FF, "Arabic"),
    (0x0700, 0x074F, "Syriac"),
    (0x0750, 0x077F, "Arabic"),
    (0x0780, 0x07BF, "Thaana"),
    (0x0860, 0x086F, "Syriac"),
    (0x0870, 0x08FF, "Arabic"),
    (0x0900, 0x097F, "Devanagari"),
    (0x0980, 0x09FF, "Bengali"),
    (0x0A00, 0x0A7F, "Gurmukhi"),
    (0x0A80, 0x0AFF, "Gujarati"),
    (0x0B00, 0x0B7F, "Oriya"),
    (0x0B80, 0x0BFF, "Tamil"),
    (0x0C00, 0x0C7F, "Telugu"),
    (0x0C80, 0x0CFF, "Kannada"),
    (0x0D00, 0x0D7F, "Malayalam"),
    (0x0D80, 0x0DFF, "Sinhala"),
    (0x0E01, 0x0E7F, "Thai"),
    (0x0E80, 0x0EFF, "Lao"),
    (0x0F00, 0x0FFF, "Tibetan"),
    (0x1000, 0x109F, "Myanmar"),
    (0x10A0, 0x10FF, "Georgian"),
    (0x1100, 0x11FF, "Hangul"),
    (0x1200, 0x139F, "Ethiopic"),
    (0x13A0, 0x13FF, "Cherokee"),
    (0x1780, 0x17FF, "Khmer"),
    (0x1800, 0x18AF, "Mongolian"),
    (0x1C80, 0x1C8F, "Cyrillic"),
    (0x1C90, 0x1CBF, "Georgian"),
    (0x1D00, 0x1DBF, "Latin"),
    (0x1E00, 0x1EFF, "Latin"),
    (0x1F00, 0x1FFF, "Greek"),
    (0x2C60, 0x2C7F, "Latin"),
    (0x2D00, 0x2D2F, "Georgian"),
    (0x2DE0, 0x2DFF, "Cyrillic"),
    (0x2E80, 0x2FDF, "Han"),
    (0x3005, 0x3007, "Han"),
    (0x3041, 0x30FF, "Kana"),
    (0x3105, 0x312F, "Bopomofo"),
    (0x3131, 0x318F, "Hangul"),
    (0x31F0, 0x31FF, "Kana"),
    (0x3400, 0x4DBF, "Han"),
    (0x4E00, 0x9FFF, "Han"),
    (0xA640, 0xA69F, "Cyrillic"),
    (0xA720, 0xA7FF, "Latin"),
    (0xA8E0, 0xA8FF, "Devanagari"),
    (0xA960, 0xA97F, "Hangul"),
    (0xAC00, 0xD7FF, "Hangul"),
    (0xF900, 0xFAFF, "Han"),
    (0xFB00, 0xFB06, "Latin"),
    (0xFB1D, 0xFB4F, "Hebrew"),
    (0xFB50, 0xFDFF, "Arabic"),
    (0xFE70, 0xFEFC, "Arabic"),
    (0xFF21, 0xFF3A, "Latin"),
    (0xFF41, 0xFF5A, "Latin"),
    (0xFF66, 0xFF9D, "Kana"),
    (0x20000, 0x323AF, "Han"),
)
_FIRSTS: Final = [first for first, _, _ in _BLOCKS]
_ASCII_LETTER: Final = re.compile("[A-Za-z]")


def unspaced_ranges() -> list[tuple[int, int]]:
    """List the first and last code points of the blocks of scripts without spaces between words."""
    return [(first, last) for first, last, script in _BLOCKS if script in UNSPACED]


def script_table() -> dict[str, Any]:
    """List the blocks and the scripts without spaces between words, for programs in other languages."""
    return {"blocks": _BLOCKS, "unspaced": sorted(UNSPACED)}


@lru_cache(maxsize=1 << 16)
def script_of(character: str) -> str:
    """Return the script of a character.

    Args:
        character: one character.

    Returns:
        The script's English name; "" for characters outside the table, such as ASCII digits and punctuation.

    Example:
        >>> script_of("ß"), script_of("好"), script_of("7")
        ('Latin', 'Han', '')
    """
    code = ord(character)
    _, last, script = _BLOCKS[max(0, bisect_right(_FIRSTS, code) - 1)]
    return script if _FIRSTS[0] <= code <= last else ""


def main_script(text: str) -> str:
    """Return the script of most letters of a text.

    Returns:
        The script; "Japanese" for kana, with or without Han characters; "" for a text without letters.

    Example:
        >>> main_script("Tom 说: 你好吗？"), main_script("学校に行く"), main_script("3:0")
        ('Han', 'Japanese', '')
    """
    if text.isascii():
        return "Latin" if _ASCII_LETTER.search(text) else ""
    counts = Counter(map(script_of, text))
    counts.pop("", None)
    if counts["Kana"]:
        counts["Japanese"] = counts.pop("Kana") + counts.pop("Han", 0)
    return max(sorted(counts), key=lambda script: counts[script], default="")
