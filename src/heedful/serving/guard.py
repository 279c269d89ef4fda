"""Guard before all routes: Host and Origin allow-lists, body size, rate, response headers, and trailing slashes."""

import ipaddress
import re
import time
from collections.abc import Iterable, Sequence
from typing import Final, final

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.predictors.captioner import Captioner
from heedful.serving.bodies import FORM, has_picture, kind_of
from heedful.serving.limits import client_of
from heedful.serving.service import Service

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content security policy of every answer: scripts only from files of the server, no other site."""
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_HOST: Final = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::([0-9]{1,5}))?", re.IGNORECASE)
_LOCAL: Final = frozenset(("localhost", "127.0.0.1", "[::1]"))
_ALL_ADDRESSES: Final = frozenset(("0.0.0.0", "::", "[::]"))


@final
class Hosts:
    """Names that a request may use for the server; others may be a rebound name of another site."""

    def __init__(self, bound: str, allowed: Iterable[str] = ()) -> None:
        """Choose the names.

        Args:
            bound: address that the server listens on. For all addresses (0.0.0.0 or ::) every numeric address is
                allowed, which no other site can claim.
            allowed: further names, without port.
        """
        self._takes_addresses: Final = bound in _ALL_ADDRESSES
        self._names: Final = _LOCAL | {_bracketed(name.lower()) for name in (bound, *allowed)}

    def allows(self, host: str) -> bool:
        """Say whether a Host header names this server.

        Args:
            host: value of the header, with or without port.

        Example:
            >>> hosts = Hosts("127.0.0.1")
            >>> hosts.allows("localhost:5000"), hosts.allows("evil.example")
            (True, False)
        """
        match = _HOST.fullmatch(host)
        if match is None or (match[2] and int(match[2]) > 65535):
            return False
        name = match[1].lower().rstrip(".")
        return name in self._names or (self._takes_addresses and _is_address(name))


@final
class Guard:
    """ASGI application around another one, which refuses what must not reach it."""

    def __init__(self, app: ASGIApp, service: Service, hosts: Hosts, origins: Sequence[str] = ()) -> None:
        """Wrap an application.

        Args:
            service: limits, budget and figures.
            origins: origins of other sites that may use the server, such as https://example.org; ``*`` = all.
        """
        self._app: Final = app
        self._service: Final = service
        self._hosts: Final = hosts
        self._origins: Final = frozenset(origin.rstrip("/").lower() for origin in origins)
        self._num_large = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        status = 500
        inner = scope
        is_head = scope["method"] == "HEAD"
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        has_open_origin = origin is not None and self._is_listed(origin)
        is_large = False

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                answer = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    answer.setdefault(name, value)
                if has_open_origin:
                    answer["Access-Control-Allow-Origin"] = "*" if "*" in self._origins else str(origin)
                    answer.add_vary_header("Origin")
                    del answer["Cross-Origin-Resource-Policy"]
                if status in (408, 413, 429, 503):
                    answer.setdefault("Retry-After", "1")
                if status in (408, 413, 429, 503) or _has_two_lengths(headers):
                    answer["Connection"] = "close"
            await send({**message, "body": b""} if is_head and "body" in message else message)

        try:
            if (refusal := self._refusal(scope, headers, has_open_origin)) is not None:
                await refusal(scope, receive, send_with_headers)
                return
            path = str(scope["path"])
            if is_large := self._is_large(path, headers):
                self._num_large += 1
            if len(path) > 1 and path.endswith("/"):
                inner = {**scope, "path": path.rstrip("/") or "/"}
            if is_head:  # answered as GET is, without its body
                inner = {**inner, "method": "GET"}
            await self._app(inner, self._limited(receive, self._most_bytes(path, headers)), send_with_headers)
        finally:
            self._num_large -= is_large
            self._count(inner, status, time.monotonic() - started)

    def _refusal(self, scope: Scope, headers: Headers, has_open_origin: bool) -> Response | None:
        """Answer to a request that goes no further."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._hosts.allows(hosts[0]):
            return _error(400, "Invalid request: this Host is not served here; allow it with --allow-host")
        origin = headers.get("origin")
        is_own = origin is None or _is_same(origin, hosts[0])
        if not is_own and not has_open_origin:
            return _error(403, "Forbidden: requests of other sites are refused; allow one with --cors")
        if origin is None and headers.get("sec-fetch-site") == "cross-site" and scope["method"] not in ("GET", "HEAD"):
            return _error(403, "Forbidden: requests of other sites are refused")
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            allowed = {
                "Access-Control-Allow-Methods": "GET, POST",
                "Access-Control-Allow-Headers": "Authorization, Content-Type, X-API-Key",
                "Access-Control-Max-Age": "600",
            }
            return Response(status_code=204, headers=allowed if has_open_origin else None)
        if _has_two_lengths(headers):  # a proxy may believe the other one
            return _error(400, "Invalid request: Content-Length together with Transfer-Encoding")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            return _error(400, "Invalid request: Content-Length is not a number")
        if len(length) > 18 or int(length) > self._most_bytes(str(scope["path"]), headers):
            return _error(413, "Invalid request: the body is too large")
        if self._is_large(str(scope["path"]), headers) and self._num_large >= self._service.limits.large_bodies:
            return _error(503, "Slowdown: too many pictures are waiting")
        client = scope.get("client")
        try:
            self._service.budget.spend(client_of(str(client[0]) if client else ""))
        except HTTPException as error:
            return _error(error.status_code, str(error.detail), error.headers)
        if scope["method"] == "POST":
            busy = self._service.batcher.refusal(self._service.limits.answer_seconds)
            return None if busy is None else _error(busy.status_code, str(busy.detail), busy.headers)
        return None

    def _is_listed(self, origin: str) -> bool:
        return origin != "null" and ("*" in self._origins or origin.lower() in self._origins)

    def _most_bytes(self, path: str, headers: Headers) -> int:
        """Bytes of a body; only the parts of a form are kept on disk while they arrive, all else is in memory."""
        limits = self._service.limits
        if kind_of(headers) == FORM and path.rstrip("/") == "/translate_file":
            return limits.file_bytes + 100_000
        if not self._takes_picture(path, headers):
            return limits.body_bytes
        return limits.file_bytes if has_picture(headers) else limits.file_bytes * 4 // 3 + 10_000  # as base64 in JSON

    def _takes_picture(self, path: str, headers: Headers) -> bool:
        """Whether a body may be a picture: one for a captioner, or the page's."""
        captioners = {name for name, each in self._service.catalog.named.items() if isinstance(each, Captioner)}
        if path == "/page/view":
            return bool(captioners) and has_picture(headers)
        _, _, rest = path.partition("/models/")
        return rest.partition("/")[0] in captioners

    def _is_large(self, path: str, headers: Headers) -> bool:
        """Whether a body in memory may exceed the usual bound; one without a length may."""
        most = self._service.limits.body_bytes
        length = headers.get("content-length", "0" if "transfer-encoding" not in headers else str(most + 1))
        return self._takes_picture(path, headers) and int(length) > most

    def _limited(self, receive: Receive, most_bytes: int) -> Receive:
        num_bytes = 0

        async def receive_limited() -> Message:
            nonlocal num_bytes
            message = await receive()
            num_bytes += len(message.get("body", b""))
            if num_bytes > most_bytes:
                raise HTTPException(413, "Invalid request: the body is too large")
            return message

        return receive_limited

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self._service.metrics.requests.labels(route, str(status)).inc()
        self._service.metrics.seconds.observe(seconds)


def _has_two_lengths(headers: Headers) -> bool:
    return "content-length" in headers and "transfer-encoding" in headers


def _error(status: int, message: str, headers: object = None) -> Response:
    return JSONResponse({"error": message}, status, headers if isinstance(headers, dict) else None)


def _is_same(origin: str, host: str) -> bool:
    """Whether a page of this origin was sent by the server itself."""
    scheme, _, rest = origin.partition("://")
    default = {"http": ":80", "https": ":443"}.get(scheme.lower())
    return default is not None and rest.lower().removesuffix(default) == host.lower().removesuffix(default)


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name and not name.startswith("[") else name


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
