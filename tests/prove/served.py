"""A folder served on this machine, for proofs in a browser, and a page that runs a model of it."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

POLICY: Final = "script-src 'self' 'wasm-unsafe-eval'"
"""Policy under which the package in JavaScript runs."""
_SITE: Final = """<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,"><body>
<script type="module" src="page.js"></script></body>
"""
_MODULE: Final = """import { gunzip } from './js/archive.js';
import { load } from './js/load.js';
import { ort } from './js/runtime/ort.js';
const wasm = await (await fetch('js/runtime/ort.wasm.gz')).arrayBuffer();
ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmBinary = await gunzip(new Uint8Array(wasm));
const model = await load('model.tgz', { ort }).catch((error) => error);
globalThis.model = model;
const said = model.message ?? 'ready';
document.body.append(Object.assign(document.createElement('p'), { id: 'ready', textContent: said }));
"""


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *args: Any, policy: str, **settings: Any) -> None:
        self._policy = policy
        super().__init__(*args, **settings)

    def end_headers(self) -> None:
        if self._policy:
            self.send_header("Content-Security-Policy", self._policy)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def write_site(folder: Path, package: Path, archive: Path) -> None:
    """Write a page that runs a model by the package, with its script in a file of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(package, folder / "js")
    shutil.copy(archive, folder / "model.tgz")
    (folder / "index.html").write_text(_SITE, encoding="utf-8")
    (folder / "page.js").write_text(_MODULE, encoding="utf-8")


@contextmanager
def served(folder: Path, policy: str = "") -> Generator[str]:
    """Serve a folder; the address ends without a slash.

    Args:
        policy: Content-Security-Policy of all files; empty = none.
    """
    handler = partial(_Handler, directory=str(folder), policy=policy)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
