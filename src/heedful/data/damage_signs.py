"""Signs of damage in texts: control characters, wrong decoding, leftovers of markup."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Final

Sign = Callable[[str], object]


def _pattern(characters: str) -> Sign:
    return re.compile(characters).search


# Characters that the bytes 0x80 to 0xBF become when read as CP1252 (as Latin-1 where CP1252 has none).
_CONTINUATION: Final = "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0xC0))
_ONE: Final = f"[{re.escape(_CONTINUATION)}]"
# Two bytes: umlauts and accents, and runs of Cyrillic or Greek. Three bytes: dashes and quotes, and runs of Chinese.
# Runs, because in sound text a single letter may well precede a quotation mark or a dash.
_MOJIBAKE: Final = re.compile(f"(?:Ã|Â|â€|ï¿){_ONE}|(?:[ÐÑÎÏ]{_ONE}){{2}}|(?:[ã-é]{_ONE}{_ONE}){{2}}")


def has_mojibake(text: str) -> bool:
    """Tell whether UTF-8 was decoded as CP1252 or Latin-1 at some point.

    Returns:
        Whether it contains character sequences that are UTF-8 bytes read as CP1252 or Latin-1.

    Example:
        >>> has_mojibake("fÃ¼r"), has_mojibake("für"), has_mojibake("IRMÃ")
        (True, False, False)
    """
    return _MOJIBAKE.search(text) is not None


_ENCODED: Final = 1_000
"""Length from which on a word of ASCII is encoded data, such as a picture in Base64."""


def has_encoded_data(text: str) -> bool:
    """Tell whether a text has a word of so many letters of ASCII that these are no language.

    Example:
        >>> has_encoded_data("iVBORw0KGgo" * 100), has_encoded_data("word " * 1000)
        (True, False)
    """
    return len(text) >= _ENCODED and any(len(word) >= _ENCODED and word.isascii() for word in text.split())


def _is_decomposed(text: str) -> bool:
    return not unicodedata.is_normalized("NFC", text)


_IN_ASCII: Final[tuple[tuple[str, Sign], ...]] = (
    ("line break", _pattern("\n")),
    ("control", _pattern("[\x01-\x08\x0b-\x1f\x7f]")),
    ("markup", _pattern(r"&(?:amp|lt|gt|quot|apos|nbsp|#\d{1,6}|#x[0-9A-Fa-f]{1,6});|<(?:br|p|b|i|seg)\s*/?>")),
)
_BEYOND_ASCII: Final[tuple[tuple[str, Sign], ...]] = (
    ("control", _pattern("[\x80-\x9f\u2028\u2029]")),
    ("bidirectional", _pattern("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")),
    ("invisible", _pattern("[\u00ad\u200b\u2060\ufeff]")),
    ("private use", _pattern("[\ue000-\uf8ff\U000f0000-\U0010ffff]")),
    ("replacement", _pattern("\ufffd")),
    ("mojibake", has_mojibake),
    ("decomposed", _is_decomposed),
)


def find_signs(text: str) -> Iterator[str]:
    r"""Name the signs of damage in a text.

    Yields:
        Of "line break" (``\n``), "control", "markup", "bidirectional", "invisible", "private use", "replacement"
        (U+FFFD), "mojibake" and "decomposed" (not in normal form C), those that apply; "control" may occur twice.

    Example:
        >>> list(find_signs("Tom &amp; Mary\x0b"))
        ['control', 'markup']
    """
    for name, sign in _IN_ASCII:
        if sign(text):
            yield name
    if not text.isascii():
        for name, sign in _BEYOND_ASCII:
            if sign(text):
                yield name
