"""Language codes: the spellings that clients send, the code that is answered, and English names."""

from typing import Final

NAMES: Final[dict[str, str]] = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian",
    "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian",
    "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian",
    "nb": "Norwegian", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "pt-BR": "Portuguese (Brazil)",
    "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sv": "Swedish",
    "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese",
    "zh-Hans": "Chinese", "zh-Hant": "Chinese (traditional)",
}  # fmt: skip
"""English name of each well-known code."""
_SPELLINGS: Final[dict[str, str]] = {
    "zh": "zh-Hans",
    "zh-cn": "zh-Hans",
    "zh-sg": "zh-Hans",
    "zt": "zh-Hant",
    "zh-tw": "zh-Hant",
    "zh-hk": "zh-Hant",
    "pb": "pt-BR",
    "no": "nb",
}
_CANONICAL: Final[dict[str, str]] = {code.lower(): code for code in NAMES}


def canonical(code: str) -> str:
    """Return the spelling of a language code that the server answers with.

    Args:
        code: code as a client or a model folder spells it.

    Returns:
        Such as ``zh-Hans`` for ``zh``; an unknown code as it is.

    Example:
        >>> canonical("ZH"), canonical("pb"), canonical("EN_us"), canonical("raw")
        ('zh-Hans', 'pt-BR', 'en-US', 'raw')
    """
    lower = code.strip().replace("_", "-").lower()
    if lower in _SPELLINGS or lower in _CANONICAL:
        return _SPELLINGS.get(lower) or _CANONICAL[lower]
    primary, hyphen, region = lower.partition("-")
    if not hyphen:
        return code.strip()
    return f"{primary}-{region.upper() if len(region) == 2 else region.title()}"


def candidates(code: str) -> tuple[str, ...]:
    """List the codes that a model may be filed under, best first.

    Returns:
        The canonical code, then that of the language without script or region.

    Example:
        >>> candidates("en-GB"), candidates("zh-Hant")
        (('en-GB', 'en'), ('zh-Hant', 'zh-Hans'))
    """
    whole = canonical(code)
    without = canonical(whole.partition("-")[0])
    return (whole,) if without == whole else (whole, without)


def name_of(code: str) -> str:
    """Return the English name of a language.

    Returns:
        The name; the code itself where no name is known.
    """
    return NAMES.get(code, code)
