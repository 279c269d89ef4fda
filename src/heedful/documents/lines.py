"""Lines that belong together: a sentence that a line break, a cell or a subtitle divides."""

from typing import Final

ENDS: Final = (*".!?…:;。！？：؟।", *(mark + quote for mark in ".!?…" for quote in "\"'”’»“)"))
"""Ends of sentences."""


def goes_on(line: str, following: str) -> bool:
    """Tell whether a sentence goes on in the next line.

    Args:
        following: the line after it.

    Returns:
        True if the line has no end mark, and the next begins in lower case.

    Example:
        >>> goes_on("Ein roter Hund", "läuft."), goes_on("Gasse 3", "Wien"), goes_on("Ja.", "nein")
        (True, False, False)
    """
    first = following.lstrip()[:1]
    return first.islower() and not line.rstrip().endswith(ENDS)
