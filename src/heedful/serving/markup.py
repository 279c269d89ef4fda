"""HTML as text nodes and markup: texts are translated, tags stay as they are to the character."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from typing import Final, final

# Possessive quantifiers: no input makes the scanner go back, so its time is linear.
_TAG: Final = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<!\[CDATA\[.*?(?:\]\]>|\Z)"
    r"|<[!?][^>]*+(?:>|\Z)"
    r"|<(?P<close>/?)(?P<name>[A-Za-z][^\s/>\"'<]*+)(?P<attributes>(?:\"[^\"<]*+\"|'[^'<]*+'|[^'\"<>])*+)>",
    re.DOTALL,
)
_UNTRANSLATED: Final = frozenset(("script", "style", "code", "pre", "textarea", "svg", "math", "template"))
_VOID: Final = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)
_EXCLUDED: Final = re.compile(r"\btranslate\s*=\s*[\"']?no\b|\bclass\s*=\s*[\"'][^\"']*\bnotranslate\b", re.IGNORECASE)


@final
@dataclass(frozen=True)
class Node:
    """Piece of a document: text to translate, without entities, or markup that stays."""

    text: str
    is_text: bool


def parse(document: str) -> list[Node]:
    """Split HTML into text and markup.

    Args:
        document: HTML, whole or a fragment; faulty markup is taken as text.

    Returns:
        The nodes in order. Scripts, styles, code, and elements with ``translate="no"`` or the class ``notranslate`` are
        markup.

    Example:
        >>> [node.text for node in parse("<p>Fish &amp; <b>chips</b></p>") if node.is_text]
        ['Fish & ', 'chips']
    """
    nodes: list[Node] = []
    excluded: list[str] = []  # open elements from the outermost excluded one inwards
    position = 0
    for match in _TAG.finditer(document):
        _add_text(nodes, document[position : match.start()], bool(excluded))
        position = match.end()
        nodes.append(Node(match[0], is_text=False))
        name = (match["name"] or "").lower()
        if not name or name in _VOID or match["attributes"].endswith("/"):
            continue
        if match["close"]:
            if name in excluded:
                del excluded[len(excluded) - 1 - excluded[::-1].index(name) :]
        elif excluded or name in _UNTRANSLATED or _EXCLUDED.search(match["attributes"]):
            excluded.append(name)
    _add_text(nodes, document[position:], bool(excluded))
    return nodes


def render(nodes: Sequence[Node], outputs: Sequence[str]) -> str:
    """Put translated texts between the tags.

    Args:
        nodes: nodes of the source.
        outputs: translation of each text node.

    Returns:
        HTML, in which ``&``, ``<`` and ``>`` of the translations are escaped.
    """
    remaining = iter(outputs)
    return "".join(_escaped(next(remaining)) if node.is_text else node.text for node in nodes)


def _add_text(nodes: list[Node], text: str, is_excluded: bool) -> None:
    if text:
        has_words = bool(text.strip()) and not is_excluded
        nodes.append(Node(unescape(text) if has_words else text, is_text=has_words))


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
