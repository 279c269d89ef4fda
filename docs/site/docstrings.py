"""Extension of the reader of docstrings: our section `Example` becomes its `Examples`, and formulas stay as written."""

import re
from typing import Any

from griffe import Extension, Object


def as_markdown(docstring: str) -> str:
    r"""Escape what Markdown would take for marks outside of code: stars, lines behind brackets, braces.

    Example:
        >>> print(as_markdown("[*batch] is `[*batch]`, [b]_j, z_{i+1}"))
        [\*batch] is `[*batch]`, [b]\_j, z_\{i+1}
    """
    text, *example = re.split(r"^Example:", docstring, maxsplit=1, flags=re.MULTILINE)
    text = re.sub(r"(`[^`]*`)|((?<=\[)\*|(?<=[\])])_|\{)", lambda part: part[1] or f"\\{part[2]}", text)
    return "Examples:".join([text, *example])


class Examples(Extension):
    """Rewrites the docstring of every class, function and value."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring is not None:
            text = as_markdown(obj.docstring.value)
            # That of a constructor follows the class's own, which says all that its first paragraph does.
            obj.docstring.value = text.partition("\n\n")[2] if obj.name == "__init__" else text
