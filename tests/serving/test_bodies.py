"""Bodies of requests."""

import asyncio
import time
from typing import Any

from starlette.requests import Request

from heedful.serving import bodies


def request(body: bytes, kind: str = "application/x-www-form-urlencoded") -> Request:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(b"content-type", kind.encode())]
    return Request({"type": "http", "method": "POST", "headers": headers, "query_string": b""}, receive)


def test_others_go_on_while_a_long_form_is_decoded():
    body = b"q=" + b"%" * 900_000
    started = time.perf_counter()
    assert bodies._pairs(body) == {"q": "%" * 900_000}
    alone = time.perf_counter() - started

    async def longest_wait() -> float:
        reading = asyncio.create_task(bodies.read_fields(request(body)))
        longest = 0.0
        while not reading.done():
            before = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - before)
        assert reading.result() == {"q": "%" * 900_000}
        return longest

    assert min(asyncio.run(longest_wait()) for _ in range(3)) < alone / 2


def test_short_forms_are_decoded_at_once():
    assert asyncio.run(bodies.read_fields(request(b"q=a%20b&q=c+d&source=de"))) == {"q": ["a b", "c d"], "source": "de"}
