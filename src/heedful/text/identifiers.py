"""Identifiers: names for programs, such as keys, colours and paths, which are no text to translate."""

import re
from typing import Final

_NAME: Final = re.compile(
    r"[A-Za-z0-9$]*+(?:_++[A-Za-z0-9$]++)++_*+"  # user_name, MAX_SIZE
    r"|[a-z][a-z0-9]*+(?:[A-Z][A-Za-z0-9]*+)++"  # userName
    r"|[a-z_$][\w$-]*+(?:\.[A-Za-z_$][\w$-]*+)++"  # menu.file.open, logo.png
    r"|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
    re.ASCII,
)
_COLOUR: Final = re.compile(r"#(?:[0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})|(?:rgb|hsl)a?\([\d\s.,%/]++\)")
_PATH: Final = re.compile(
    r"(?:~|\.{1,2})?/[^\s/]\S*+|(?:~|\.{1,2})/|[A-Za-z]:[\\/]\S*+"  # /a, ./a, C:\a
    r"|[A-Za-z][A-Za-z0-9+.-]*+:/?/\S++|(?:mailto|tel|data):\S++"
    r"|[^\s/]++/(?:[^\s/]++/)*+[^\s/]*\.[A-Za-z0-9]{1,5}"  # images/logo.png
)
_NAMING_KEY: Final = re.compile(r"(?:id|uuid|guid|slug)|.*(?:[._-]id|[a-z]Id)", re.DOTALL)
_VALUE_OF_NAMING_KEY: Final = re.compile(r"[a-z0-9][\w.:-]*+", re.ASCII)


def is_identifier(value: str, key: str = "") -> bool:
    """Tell whether a value is a name for a program.

    Args:
        key: key by which the value stands in its file.

    Example:
        >>> [is_identifier(value) for value in ("user_name", "#ff0000", "./a/b.png", "Hund", "und/oder")]
        [True, True, True, False, False]
        >>> is_identifier("hund", "id")
        True
    """
    if _NAMING_KEY.fullmatch(key) and _VALUE_OF_NAMING_KEY.fullmatch(value):
        return True
    return any(pattern.fullmatch(value) for pattern in (_NAME, _COLOUR, _PATH))
