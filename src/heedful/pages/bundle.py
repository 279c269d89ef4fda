"""Page files: the parts of the page that `heedful serve` sends, and one offline file made of all of them."""

import base64
import gzip
import hashlib
import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from html import escape
from importlib.resources import files
from typing import Any, Final

ENTRY: Final = "pages/app/main.js"
"""Module that starts the page of a server, or of one sentence; names of modules are paths below `heedful`."""
MODEL_ENTRY: Final = "pages/standalone/standalone.js"
"""Module that starts the page with a model inside its file."""
ENGINE_ENTRY: Final = "pages/standalone/engine.js"
"""Module that runs that model, in a worker."""
_RUNTIME: Final = "js/runtime/ort.js"
_UNFINISHED: Final = (
    '<p class="frame unfinished">If this line stays, the file is cut or changed: copy it again. '
    "如果这行文字一直显示，说明文件不完整或被改动，请重新复制。</p>"
)
"""Text that the script replaces as soon as it runs."""
MEDIA_TYPES: Final[dict[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
"""Media type of each kind of page file."""
_IMPORT: Final = re.compile(r"^import \{ ([^}]*) \} from '([a-z_./]+\.js)';$", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|const|class) ([A-Za-z_]\w*))", re.MULTILINE)
_EXPORT_LIST: Final = re.compile(r"^export \{ (\w+) \};$", re.MULTILINE)


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
        title: title of the page, plain text.
        view: data of a sentence, from `SentenceView.to_dict`.

    Example:
        >>> offline_page("Guten Tag", {})[:15]
        '<!DOCTYPE html>'
    """
    return _page(title, _sentence_script(), [_json("view-data", view)])


def model_page(title: str, facts: Mapping[str, Any], model: bytes, runtime: tuple[str, bytes, str]) -> str:
    """Write the page with a model inside as one HTML file that needs no network and refuses any request.

    Args:
        facts: values that the page knows before the model is loaded: name, kind, languages, scores, examples.
        model: archive of the model (`heedful.export.archive`).
        runtime: ONNX Runtime: text of its module, its WebAssembly in gzip, and its licence, which accompanies every
            copy.
    """
    engine = _engine_script(runtime[0])
    data = [
        _json("model-facts", facts),
        _text("licence-onnxruntime", runtime[2]),
        _base64("engine-script", gzip.compress(engine.encode("utf-8"), mtime=0)),
        _base64("model-data", model),
        _base64("runtime-data", runtime[1]),
    ]
    # A worker inherits the policy. Where no worker starts, the engine is a script of the page.
    sources = f" '{_digest(engine)}' 'wasm-unsafe-eval'; worker-src blob:"
    return _page(title, bundled_script(MODEL_ENTRY), data, sources)


def _engine_script(runtime: str) -> str:
    """Script of the engine: no module, because a page from disk starts no worker that is one."""
    modules = bundled_script(ENGINE_ENTRY, runtime).replace("import.meta.url", "'file:///'")
    return f"'use strict';\n{{\n{modules}\n}}\n"


@cache
def _sentence_script() -> str:
    return bundled_script()


def _page(title: str, script: str, data: Sequence[str], sources: str = "") -> str:
    """HTML file of a script and its data; the script stands first, so that it sees where a file was cut."""
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'{sources}; style-src 'unsafe-inline'; img-src data: blob:"
    )
    style = page_files()["app.css"].decode("utf-8")
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{style}</style>\n</head>\n<body>",
            "<noscript>This page draws attention with JavaScript. 本页面需要 JavaScript。</noscript>",
            f'<div id="page">{_UNFINISHED}</div>',
            f'<script type="module">{script}</script>',
            *data,
            "</body>\n</html>\n",
        ]
    )


def _digest(script: str) -> str:
    """Source of a policy that admits a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode('utf-8')).digest()).decode('ascii')}"


def _json(name: str, value: Mapping[str, Any]) -> str:
    # Within a script element, only "<" could begin a tag that ends it.
    data = json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{data}</script>'


def _text(name: str, text: str) -> str:
    """Text that people read in the source of the page; a browser neither runs nor shows it."""
    return f'<script type="text/plain" id="{name}">\n{escape(text, quote=False)}</script>'


def _base64(name: str, content: bytes) -> str:
    return f'<script type="text/plain" id="{name}">{base64.b64encode(content).decode("ascii")}</script>'


def bundled_script(entry: str = ENTRY, runtime: str = "") -> str:
    """Join the page's modules into one script, each in a scope of its own, in the order of their imports.

    Args:
        entry: module that starts the page.
        runtime: text of the module of ONNX Runtime, for a page with a model inside.

    Returns:
        The text of a module without imports.
    """
    texts = {_RUNTIME: runtime}
    order: list[str] = []

    def visit(name: str) -> None:
        if name not in texts:
            texts[name] = files("heedful").joinpath(*name.split("/")).read_text("utf-8")
        for _, imported in _IMPORT.findall(texts[name]):
            if (path := _resolved(name, imported)) not in order:
                visit(path)
        order.append(name)

    visit(entry)
    return "const modules = {};\n" + "\n".join(_scoped(name, texts[name]) for name in order)


def _resolved(name: str, imported: str) -> str:
    """Name of a module that another one imports."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), imported))


def _scoped(name: str, text: str) -> str:
    exported = ", ".join(_EXPORT.findall(text) or _EXPORT_LIST.findall(text))
    bare = _EXPORT_LIST.sub("", _EXPORT.sub("", _IMPORT.sub(partial(_import_of, name), text)))
    return f"modules['{name}'] = (() => {{\n{bare}\nreturn {{ {exported} }};\n}})();"


def _import_of(name: str, match: re.Match[str]) -> str:
    return f"const {{ {match[1]} }} = modules['{_resolved(name, match[2])}'];"
