"""Connections with a deadline for the whole request, in the protocol itself, where a middleware would be too late."""

import asyncio
import json
from typing import Any, Final, cast, final

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from heedful.serving.limits import Limits

_WRITE_SECONDS: Final = 10.0
"""Seconds for the client to take the answer, after the answer's own deadline."""


@final
class GuardedProtocol(H11Protocol):
    """HTTP/1.1 connection that is closed when a request does not arrive, or its answer does not leave, in time."""

    limits: Limits
    """Bounds of time and of the number of connections."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: Limits,
    ) -> None:
        """Prepare a connection.

        Args:
            config: uvicorn's settings.
            limits: bounds of time and of the number of connections.
        """
        super().__init__(config, server_state, app_state, _loop)
        self.limits = limits
        self._deadline: asyncio.TimerHandle | None = None
        self._is_receiving = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time for the first request, or refuse one connection too many."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(503, "Service Unavailable", "Slowdown: too many connections")
            return
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time.

        Args:
            exc: reason of the loss; None for a normal end.
        """
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what arrived."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._disarm()
        super().on_response_complete()
        if not self.transport.is_closing():
            self._follow()

    @property
    def _is_answered(self) -> bool:
        cycle = cast(RequestResponseCycle | None, self.cycle)  # None until the first request
        return cycle is None or cycle.response_complete

    def _follow(self) -> None:
        """Time what the connection waits for: the rest of a request, or its answer."""
        if self.transport.is_closing():
            return
        is_answered = self._is_answered
        has_all = self.conn.their_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED)
        if has_all and not is_answered:
            if self._is_receiving or self._deadline is None:
                self._disarm()
                self._deadline = self.loop.call_later(self.limits.answer_seconds + _WRITE_SECONDS, self._abort)
        elif not has_all and (self.conn.trailing_data[0] or not is_answered):
            self._expect_request()

    def _expect_request(self) -> None:
        if self._deadline is None:
            self._is_receiving = True
            self._deadline = self.loop.call_later(self.limits.receive_seconds, self._give_up)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None
        self._is_receiving = False

    def _give_up(self) -> None:
        """Close a connection whose request did not arrive in time."""
        self._deadline = None
        if self._is_answered:
            self._refuse(408, "Request Timeout", "the request did not arrive in time")
        else:
            self._abort()

    def _abort(self) -> None:
        self._deadline = None
        self.transport.abort()

    def _refuse(self, status: int, phrase: str, message: str) -> None:
        body = json.dumps({"error": message}).encode("utf-8")
        head = (
            f"HTTP/1.1 {status} {phrase}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Retry-After: 1\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()
