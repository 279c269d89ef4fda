"""Hook of the site generator: formulas become MathML when the site is built, so that pages need no script for them."""

import html
import re
from typing import Final

from latex2mathml.converter import convert

FORMULA: Final = re.compile(r'<(span|div) class="arithmatex">\s*\\[(\[](.*?)\\[)\]]\s*</\1>', re.DOTALL)


def on_page_content(content: str, **_: object) -> str:
    """Replace the formulas of a page.

    Args:
        content: HTML of the page.

    Returns:
        The HTML with MathML.
    """

    def written(match: re.Match[str]) -> str:
        is_display = match[1] == "div"
        source = html.unescape(match[2]).strip()
        formula = convert(source, display="block" if is_display else "inline")
        return f'<div class="formula">{formula}</div>' if is_display else formula

    return FORMULA.sub(written, content)
