"""Bodies of requests."""

import asyncio
import contextlib
import gc
import json
import time
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given, strategies
from starlette.exceptions import HTTPException
from starlette.requests import Request

from heedful.serving import bodies


def request(body: bytes, kind: str = "application/x-www-form-urlencoded") -> Request:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(b"content-type", kind.encode())]
    return Request({"type": "http", "method": "POST", "headers": headers, "query_string": b""}, receive)


def test_others_go_on_while_a_long_form_is_decoded():
    body = b"q=" + b"a%41" * 225_000
    started = time.perf_counter()
    assert bodies._pairs(body) == {"q": "aA" * 225_000}
    alone = time.perf_counter() - started

    async def longest_wait() -> float:
        reading = asyncio.create_task(bodies.read_fields(request(body)))
        longest = 0.0
        while not reading.done():
            before = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - before)
        assert reading.result() == {"q": "aA" * 225_000}
        return longest

    assert any(asyncio.run(longest_wait()) < alone / 2 for _ in range(20))  # beside other programs too


def test_short_forms_are_decoded_at_once():
    assert asyncio.run(bodies.read_fields(request(b"q=a%20b&q=c+d&source=de"))) == {"q": ["a b", "c d"], "source": "de"}


@pytest.mark.parametrize("family", ["%", "%41", "%zz", "%C3%A4", "a", "+", "=", "&"])
def test_escapes_of_any_kind_take_little_time(family: str):
    """`urllib.parse` takes 0.3 s for 900,000 signs of percent."""
    started = time.process_time()
    with contextlib.suppress(HTTPException):
        bodies._pairs(b"q=" + family.encode() * (900_000 // len(family)))
    assert time.process_time() - started < 0.15


@given(strategies.lists(strategies.sampled_from(["%", "4", "a", "&", "=", "+", "%41", "%C3", "%A4", "%00", "ä", "%z"])))
def test_forms_are_read_as_by_python(parts: list[str]):
    text = "".join(parts)
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict")
    except ValueError:
        with pytest.raises(HTTPException, match="not valid UTF-8"):
            bodies._pairs(text.encode())
    else:
        assert bodies._pairs(text.encode()) == dict(pairs)


def test_forms_with_many_fields_are_refused():
    with pytest.raises(HTTPException, match="too many fields"):
        bodies._pairs(b"a=b&" * 2_000)


def test_nothing_is_collected_while_json_is_parsed(monkeypatch: pytest.MonkeyPatch):
    """The collector looked at the objects of the whole server for each thousand of 320,000 lists in 1 MB."""
    loads, collecting = json.loads, list[bool]()

    def noted(*arguments: Any, **options: Any) -> Any:
        collecting.append(gc.isenabled())
        return loads(*arguments, **options)

    monkeypatch.setattr(bodies.json, "loads", noted)
    assert bodies.parse_json(b'{"q": [[], []]}') == {"q": [[], []]}
    with pytest.raises(HTTPException):
        bodies.parse_json(b"[")
    assert (collecting, gc.isenabled()) == ([False, False], True)
