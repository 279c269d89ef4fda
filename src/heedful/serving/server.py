"""HTTP server of an application: sockets, deadlines, and a clean end at SIGTERM."""

import functools
import logging
import signal
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final, final

import uvicorn
from starlette.types import ASGIApp

from heedful.errors import UsageError
from heedful.serving.limits import Limits
from heedful.serving.protocol import GuardedProtocol

BACKLOG: Final = 2048
"""Connections that the system holds until the server accepts them."""


def listen(host: str, port: int) -> socket.socket:
    """Bind the server's socket, so that a port in use is reported before models are loaded.

    Args:
        host: address or name.
        port: port number; 0 = any free one.

    Raises:
        UsageError: the address cannot be bound.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):  # UnicodeError: the name has an impossible label
        raise UsageError(f"--host {host[:80]!r}: no such address, and no name that leads to one") from None
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"--host {host} --port {port}: {reason}; choose another port: --port 5001") from None
    return bound


@final
class Server(uvicorn.Server):
    """Server that returns after a signal, once running requests are answered, and does not raise the signal again."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stop at SIGINT, SIGTERM and SIGHUP while the server runs; a second signal stops it at once.

        A SIGHUP that is ignored, as `nohup` does, stays so.

        Yields:
            Nothing.
        """
        numbers = [signal.SIGINT, signal.SIGTERM]
        if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, self._stop) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def make_server(app: ASGIApp, limits: Limits) -> Server:
    """Make the server of an application.

    Args:
        limits: deadlines and number of connections.

    Returns:
        The server; its `run` returns after SIGINT, SIGTERM or SIGHUP, when running requests are answered.
    """
    config = uvicorn.Config(
        app,
        http=functools.partial(GuardedProtocol, limits=limits),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=round(limits.drain_seconds),
        h11_max_incomplete_event_size=32_768,
    )
    logger = logging.getLogger("uvicorn.error")
    logger.handlers = [_handler()]
    logger.propagate = False
    logger.setLevel(logging.ERROR)
    # Its warnings about odd bodies would let any client fill the log.
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)
    return Server(config)


def _handler() -> logging.Handler:
    """Printer of the server's own errors, without their tracebacks, which may hold text of requests."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_BareFormatter("heedful: %(message)s"))
    return handler


@final
class _BareFormatter(logging.Formatter):
    """Formatter that names the type of an exception only."""

    def format(self, record: logging.LogRecord) -> str:
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        return f"heedful: {record.getMessage().strip()}{f': {kind}' if kind else ''}"
