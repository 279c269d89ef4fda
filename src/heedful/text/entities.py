"""HTML entities in plain text: `&amp;` for `&` and the like, which some training pairs have from web pages."""

import re
from typing import Final

_CHARACTERS: Final = {"&amp": "&", "&lt": "<", "&gt": ">", "&quot": '"', "&apos": "'", "&#39": "'"}
_ENTITY: Final = re.compile("&(?:amp|lt|gt|quot|apos|#39)(?:;|(?![A-Za-z0-9]))")


def decoded_entities(source: str, output: str) -> tuple[str, list[int]]:
    """Decode the entities of an output whose source has none.

    Returns:
        The output as plain text, and in it the index of each character of the output, and of its end.

    Example:
        >>> decoded_entities("Fisch & Brot", "fish &amp; bread")[0]
        'fish & bread'
        >>> decoded_entities("Fisch &amp; Brot", "fish &amp; bread")[0]
        'fish &amp; bread'
    """
    indices = list(range(len(output) + 1))
    if "&" not in output or _ENTITY.search(source):
        return output, indices
    parts: list[str] = []
    last = size = 0
    for match in _ENTITY.finditer(output):
        parts += [output[last : match.start()], _CHARACTERS[match[0].removesuffix(";")]]
        size += match.start() - last
        indices[last : match.end()] = [*range(size - match.start() + last, size), *[size] * len(match[0])]
        last, size = match.end(), size + 1
    indices[last:] = range(size, size + len(output) - last + 1)
    return "".join([*parts, output[last:]]), indices
