"""Normal forms of texts: those of Unicode, and folded texts, without case, kinds of spaces and of quotation marks."""

import unicodedata
from typing import Final, Literal

Normalization = Literal["NFC", "NFKC", "none", "folded"]
"""Normal form of texts: that of Unicode, or folded by `fold`."""
_REPLACED: Final = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u0060\u02bc\uff07", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff\0"),
        "\u2581": " ",
    }
)
"""Quotation marks and dashes by their plain forms; invisible characters are left out. U+2581 is SentencePiece's
character for a space."""


def fold(text: str) -> str:
    """Fold a text: NFKC, no case, plain quotation marks and dashes, single spaces between words and none at the ends.

    Example:
        >>> fold("  It\u2019s  GREAT ")
        "it's great"
    """
    if text.isascii():  # the same, sooner
        return " ".join(text.replace("\0", "").replace("`", "'").lower().split())
    # Compatibility forms may decompose to marks that are replaced, and case folding to forms that compose again.
    folded = unicodedata.normalize("NFKC", text.translate(_REPLACED)).translate(_REPLACED).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def folding_tables() -> tuple[dict[str, str], dict[str, str]]:
    """List the characters that folding replaces, for programs in other languages.

    Returns:
        Replaced characters, and characters whose folded case is another text.
    """
    replaced = {chr(code): value or "" for code, value in _REPLACED.items()}
    characters = map(chr, (*range(0xD800), *range(0xE000, 0x20000)))  # without halves of pairs
    return replaced, {each: each.casefold() for each in characters if each.casefold() != each}


def normal_form(text: str, form: Normalization) -> str:
    """Convert a text to a normal form."""
    if form == "folded":
        return fold(text)
    return text if form == "none" else unicodedata.normalize(form, text)
