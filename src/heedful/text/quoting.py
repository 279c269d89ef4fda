"""Texts of others as messages show them: quoted in few characters, without characters that steer a terminal."""

import re
from collections.abc import Sequence
from typing import Final

_STEERING: Final = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Control characters, separators of lines and paragraphs, and overrides of the direction of writing."""
_SHOWN: Final = {code: repr(chr(code))[1:-1] for code in _STEERING} | {code: " " for code in b"\t\n\r"}


_STEERED: Final = re.compile(r"\x1b\[[\d;]*+m|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Sequence that sets colours, which is left, or a control character."""


def harmless(text: str) -> str:
    r"""Replace characters that steer a terminal by their escapes; tabs and line breaks by spaces.

    Example:
        >>> harmless("a\tb\x1b[2J")
        'a b\\x1b[2J'
    """
    return text.translate(_SHOWN)


def visible(text: str) -> str:
    r"""Replace characters that steer a terminal by their escapes, all but tabs, line feeds and colours.

    Example:
        >>> visible("a\tb\x1b[2J")
        'a\tb\\x1b[2J'
    """
    return _STEERED.sub(lambda match: match[0] if match[0][1:] else _SHOWN[ord(match[0])], text)


def shortened(text: str, most: int = 40) -> str:
    """Quote a text in about as many characters at most.

    Args:
        most: largest number of its characters.

    Returns:
        The quoted text, with an ellipsis if it was cut.

    Example:
        >>> shortened("one two three", 7)
        "'one two...'"
    """
    return repr(text if len(text) <= most else text[:most] + "...")


def listed(texts: Sequence[str], number: int = 10, most: int = 40) -> str:
    """List the first of some texts, each in about as many characters at most.

    Args:
        number: largest number of texts.
        most: largest number of characters of each.

    Example:
        >>> listed(["one", "two three", "four"], 2, 5)
        'one, two t...'
    """
    return ", ".join(harmless(text if len(text) <= most else text[:most] + "...") for text in texts[:number])
