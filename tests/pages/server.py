"""Server of the page for tests: files and JSON alone, without the guards of `heedful serve`."""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from heedful.errors import HeedfulError
from heedful.pages.bundle import MEDIA_TYPES, page_files
from heedful.predictors.interface import Predictor
from heedful.predictors.page_requests import PageRequests

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: blob:"


@contextmanager
def served(models: Mapping[str, Predictor], key: str = "") -> Generator[str]:
    """Serve the page, and give its address; with a key, its data only to requests that carry it."""
    requests, lock = PageRequests(models), Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            path = address.path.strip("/") or "index.html"
            if path in requests.routes() and self._is_known():
                self._answer(
                    lambda: requests.routes()[path](
                        *(v[0] for v in parse_qs(address.query, keep_blank_values=True).values())
                    )
                )
                return
            if path in requests.routes():
                return
            name = path.removeprefix("app/")
            self._send(200, page_files()[name], MEDIA_TYPES["." + name.rpartition(".")[2]])

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            is_picture = self.headers["Content-Type"].startswith("image/")
            fields = dict(parse_qsl(urlsplit(self.path).query)) | {"picture": content} if is_picture else None
            body = fields or json.loads(content)
            if self._is_known():
                self._answer(lambda: requests.view(body))

        def _is_known(self) -> bool:
            if key in ("", self.headers.get("Authorization", "").removeprefix("Bearer ")):
                return True
            self._send(403, b'{"error": "Invalid API key"}', "application/json")
            return False

        def _answer(self, make: Any) -> None:
            try:
                with lock:
                    status, tree = 200, make()
            except HeedfulError as error:
                status, tree = 400, {"error": str(error)}
            self._send(status, json.dumps(tree, allow_nan=False).encode(), "application/json")

        def _send(self, status: int, content: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Security-Policy", POLICY)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
