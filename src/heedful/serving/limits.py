"""Limits of a server, and the budget of requests of each client."""

import ipaddress
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, final

from starlette.exceptions import HTTPException

_MOST_CLIENTS: Final = 10_000


@final
@dataclass(frozen=True)
class Limits:
    """Upper bounds of what one request, one client and all clients together may ask for."""

    characters: int = 5000
    """Characters of a request, all its texts together."""
    alternatives: int = 10
    """Alternatives beside the best translation."""
    work: int = 20_000
    """Characters of a request times its outputs for each text."""
    texts: int = 500
    """Texts of a request."""
    requests_per_minute: int = 6000
    """Requests of one client address; 0 = any number."""
    body_bytes: int = 1_000_000
    """Bytes of the body of a request."""
    file_bytes: int = 10_000_000
    """Bytes of an uploaded file, and of its unpacked content."""
    picture_pixels: int = 24_000_000
    """Pixels of a picture, counted before it is decoded."""
    picture_bytes: int = 52_000_000
    """Bytes that decoding a picture may take for each megabyte of its file, or part of one: 13 million pixels."""
    large_bodies: int = 16
    """Bodies above `body_bytes`, of pictures, that may arrive and wait at a time, because they are in memory."""
    file_characters: int = 200_000
    """Characters of an uploaded file."""
    queue: int = 2000
    """Requests that wait for the models at a time."""
    connections: int = 2048
    """Open connections."""
    receive_seconds: float = 10.0
    """Seconds within which a whole request must arrive."""
    answer_seconds: float = 30.0
    """Seconds within which a request is answered or refused."""
    drain_seconds: float = 20.0
    """Seconds that running requests may take after a signal to stop."""


def client_of(address: str) -> str:
    """Name the client of an address: whoever has an IPv6 address has all of its /64.

    Returns:
        The network of an IPv6 address, the IPv4 address of one that holds it, and any other text as it is.

    Example:
        >>> client_of("2001:db8:1:2:3:4:5:6"), client_of("::ffff:192.0.2.1"), client_of("192.0.2.1")
        ('2001:db8:1:2::/64', '192.0.2.1', '192.0.2.1')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), 64), strict=False))


@final
class Budget:
    """Requests of each client address in the current minute, as token buckets."""

    def __init__(self, requests_per_minute: int) -> None:
        """Start with full budgets.

        Args:
            requests_per_minute: size of a budget, which is refilled evenly; 0 = any number.
        """
        self._size: Final = requests_per_minute
        self._left: Final[OrderedDict[str, tuple[float, float]]] = OrderedDict()

    def spend(self, client: str, now: float | None = None) -> None:
        """Take one request from the budget of a client.

        Args:
            now: monotonic time in seconds; None = the clock's.

        Raises:
            HTTPException: 429, the budget is empty; Retry-After says when one request fits again.
        """
        if not self._size:
            return
        seconds = time.monotonic() if now is None else now
        left, since = self._left.pop(client, (float(self._size), seconds))
        left = min(float(self._size), left + (seconds - since) * self._size / 60)
        if left < 1:
            self._left[client] = left, seconds
            wait = max(1, round((1 - left) * 60 / self._size + 0.5))
            raise HTTPException(429, "Slowdown: too many requests in a minute", {"Retry-After": str(wait)})
        self._left[client] = left - 1, seconds
        if len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
