"""Page files: the parts of the page that `heedful serve` sends, and one offline file made of all of them."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, Final

ENTRY: Final = "main.js"
"""Module that starts the page."""
MEDIA_TYPES: Final[dict[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
"""Media type of each kind of page file."""
_IMPORT: Final = re.compile(r"^import \{ ([^}]*) \} from '\./([a-z_]+\.js)';$", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|const|class) ([A-Za-z_]\w*))", re.MULTILINE)


@cache
def page_files() -> dict[str, bytes]:
    """Return the page's files.

    Returns:
        Content by file name: one HTML file, one style sheet, and modules.
    """
    folder = files("heedful.pages").joinpath("app")
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name.endswith(tuple(MEDIA_TYPES))}


def offline_page(title: str, view: Mapping[str, Any]) -> str:
    """Write the page with its data as one HTML file that needs no network and refuses any request.

    Args:
        view: data of a sentence, from `SentenceView.to_dict`.
    """
    script = bundled_script()
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:"
    style = page_files()["app.css"].decode("utf-8")
    # Within a script element, only "<" could begin a tag that ends it.
    data = json.dumps(view, ensure_ascii=False).replace("<", "\\u003c")
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{style}</style>\n</head>\n<body>",
            "<noscript>This page draws attention with JavaScript. 本页面需要 JavaScript。</noscript>",
            '<div id="page"></div>',
            f'<script type="application/json" id="view-data">{data}</script>',
            f'<script type="module">{script}</script>\n</body>\n</html>\n',
        ]
    )


@cache
def bundled_script() -> str:
    """Join the page's modules into one script, each in a scope of its own, in the order of their imports.

    Returns:
        The text of a module without imports.
    """
    texts = {name: content.decode("utf-8") for name, content in page_files().items() if name.endswith(".js")}
    order: list[str] = []

    def visit(name: str) -> None:
        for _, imported in _IMPORT.findall(texts[name]):
            if imported not in order:
                visit(imported)
        order.append(name)

    visit(ENTRY)
    return "const modules = {};\n" + "\n".join(_scoped(name, texts[name]) for name in order)


def _scoped(name: str, text: str) -> str:
    exported = ", ".join(_EXPORT.findall(text))
    bare = _EXPORT.sub("", _IMPORT.sub(r"const { \1 } = modules['\2'];", text))
    return f"modules['{name}'] = (() => {{\n{bare}\nreturn {{ {exported} }};\n}})();"
